//! Read-only openings alongside a writer: each yields a consistent state, or says that the writer
//! moved on.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have threads and variables of their own")]
#![allow(clippy::disallowed_types, reason = "a test damages a file in place")]

mod damage;
mod files;
mod openings;
mod workload;
