//! The public API, by its public names only.
//!
//! | module | one line |
//! |---|---|
//! | `open`, `options`, `close` | the life of a handle; locks; stored options |
//! | `destroy` | the removal of a database, even after an interrupted removal |
//! | `opening_designs` | designs and options of openings that create or change a database |
//! | `related_files` | damage that shows only when several files are compared |
//! | `repair` | a database repaired after each kind of damage that opening refuses |
//! | `lock_lost` | a directory that another process takes |
//! | `reopening` | the log after an opening |
//! | `limits`, `errors` | the length of keys and values; the text of errors |
//! | `estimates` | ranges of all types, keys without values, clearing, estimates |
//! | `iterators` | both ends, seeks, bounds of all kinds |
//! | `parallel_reads` | read threads change no answer |
//! | `snapshots`, `deletes` | what a snapshot sees; deletes of keys and ranges |
//! | `dropped_tables` | tables dropped unread under a range delete |
//! | `keyspace_names` | renaming keyspaces, with crashes and faults |
//! | `keyspaces`, `batches` | several trees, and writes across them |
//! | `asynchronous` | futures and streams, on several executors |
//! | `bandwidth` | I/O budgets and write rates, and the events of stalled writers |
//! | `checkpoint` | a second database, made while the first one is written |
//! | `checkpoint_log` | a checkpoint while the log is reused |
//! | `checkpoint_opened` | a checkpoint of a database that is open for reading |
//! | `designs` | design changes on a live database |
//! | `memtable_auto` | the choice of a memtable by the operations |
//! | `memtable_settings` | settings of memtables change memory, counts or processor time |
//! | `rotation_cpu` | memtables are created before they are needed |
//! | `events` | calls of the listener, and the list of past events |
//! | `flushes` | flushes that merge with level 0 |
//! | `durability` | what survives a crash, per database and per write |
//! | `direct_io` | tables that bypass the page cache |
//! | `hot_records` | records in memory without their block |
//! | `cache_warming` | blocks that flushes and compactions add to the cache |
//! | `statistics` | counters and sizes are consistent |
//! | `merge_threads` | subcompactions |
//! | `maintenance` | operations that another thread cancels and watches |
//! | `compaction_filters` | the effect of filters on values, and the readers that see it |
//! | `compaction_reads` | which bytes compactions read |
//! | `damaged_tables` | tables that compactions cannot read |
//! | `disk_full` | a full disk, and space again |
//! | `open_files` | few table files stay open |
//! | `separated_values` | values that are stored apart from their keys |
//! | `traits` | the traits of handles, checked by the compiler |
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have files and threads of their own")]

mod asynchronous;
mod bandwidth;
mod batches;
mod cache_warming;
mod checkpoint;
mod checkpoint_log;
mod checkpoint_opened;
mod close;
mod compaction_filters;
mod compaction_reads;
mod damaged_tables;
mod delete_persistence;
mod deleted_bytes;
mod deletes;
mod designs;
mod destroy;
mod direct_io;
mod disk_full;
mod disk_reserve;
mod dropped_tables;
mod durability;
mod errors;
mod estimates;
mod events;
mod expiry;
mod explain;
mod fairness;
mod flushes;
mod forecasts;
mod history;
mod hot_records;
mod iterators;
mod keyspace_names;
mod keyspaces;
mod limits;
mod lock_lost;
mod log_files;
mod maintenance;
mod memtable_auto;
mod memtable_settings;
mod merge_threads;
mod merges;
mod open;
mod open_files;
mod opening_designs;
mod options;
mod parallel_reads;
mod reads_together;
mod related_files;
mod reopening;
mod repair;
mod rotation_cpu;
mod scans;
mod separated_values;
mod snapshots;
mod statistics;
mod support;
mod traits;
mod truncated_tables;
mod values_in_log;
mod write_paths;
