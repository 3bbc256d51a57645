//! Ingests: sorted data that becomes tables and is added to a tree as one write.
//!
//! | module | one line |
//! |---|---|
//! | `calls` | the calls: order, errors, replaced values and later writes |
//! | `model` | random operations and ingests on random designs, with snapshots and reopenings |
//! | `crashes` | a crash at each operation of a script with ingests |
//! | `faults` | each operation of a script with ingests fails once, or from then on |
//! | `concurrent` | writers and readers see an ingest at one moment |
//! | `locking` | writers that come between the two moments of an ingest |
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have threads of their own")]

mod calls;
mod concurrent;
mod crashes;
mod faults;
mod locking;
mod model;
