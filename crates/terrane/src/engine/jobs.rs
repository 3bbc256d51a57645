//! Flushes, compactions and the threads that run them.
//!
//! | module | one line |
//! |---|---|
//! | `gate` | which merges run, and how fast |
//! | `picking` | asks policy for the next job |
//! | `late_deletes` | reports deletes that miss their deadline |
//! | `merge_io` | the inputs and the outputs of merges |
//! | `record` | a job's record in the manifest |
//! | `flush` | writes an immutable memtable into tables |
//! | `ingest` | an ingest's tables |
//! | `pacer` | reports a compaction's progress to the gate |
//! | `subcompactions` | cuts a merge by key |
//! | `merge_group` | merges tables that share keys |
//! | `compact` | runs a compaction |
//! | `workers` | threads, and callers that wait for jobs |

mod compact;
mod flush;
mod gate;
mod ingest;
mod late_deletes;
mod merge_group;
mod merge_io;
mod pacer;
mod picking;
mod record;
mod subcompactions;
mod workers;

pub(crate) use compact::report_inactive_filter;
pub(crate) use ingest::IngestTables;
pub(crate) use workers::Jobs;
