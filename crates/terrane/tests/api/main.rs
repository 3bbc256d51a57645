//! The public face, by its public names only.
//!
//! | module | one line |
//! |---|---|
//! | `open`, `options`, `close` | the life of a handle; who holds a database; what is persisted |
//! | `reopening` | what an opening leaves of the log of the one before |
//! | `limits`, `errors` | how long keys and values may be; what an error says |
//! | `iterators` | both ends, seeking, bounds of all kinds |
//! | `parallel_reads` | threads that help readers change no answer |
//! | `snapshots`, `deletes` | what stays as it was; ranges of keys that go |
//! | `dropped_tables` | whole tables that go with them |
//! | `keyspaces`, `batches` | trees of their own, and writes across them |
//! | `bandwidth` | budgets and rates, and who is told when they hold writers up |
//! | `checkpoint` | a second database, made while the first one is written |
//! | `log_in_a_copy` | and whose log goes round meanwhile |
//! | `designs` | another design on a live database |
//! | `events` | what happens by itself, told as it happens and later |
//! | `flushes` | flushes that merge with level 0 |
//! | `durability` | what survives, for a database and for one write |
//! | `direct_io` | tables around the page cache |
//! | `cache_warming` | what flushes and compactions put into the block cache |
//! | `figures` | counters and sizes that add up |
//! | `merge_threads` | compactions in parts that have a thread each |
//! | `compaction_reads` | what compactions read, and what they leave to readers |
//! | `damaged_tables` | tables that compactions cannot read |
//! | `disk_full` | no room, and room again |
//! | `traits` | what handles may be used for, checked by the compiler |
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have files and threads of their own")]

mod bandwidth;
mod batches;
mod cache_warming;
mod checkpoint;
mod close;
mod compaction_reads;
mod damaged_tables;
mod delete_persistence;
mod deleted_bytes;
mod deletes;
mod designs;
mod direct_io;
mod disk_full;
mod dropped_tables;
mod durability;
mod errors;
mod events;
mod figures;
mod flushes;
mod forecasts;
mod history;
mod iterators;
mod keyspaces;
mod limits;
mod log_in_a_copy;
mod merge_threads;
mod open;
mod options;
mod parallel_reads;
mod reopening;
mod snapshots;
mod support;
mod traits;
mod write_paths;
