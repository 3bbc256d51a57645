//! The public interface: thin types over the engine, which check arguments and hold the handle of the
//! open database. Algorithms live in [`engine`](crate::engine).
//!
//! | module | one line |
//! |---|---|
//! | `db` | an open database, its default keyspace and its administration |
//! | `keyspace` | one tree of the database: reads, writes, functions, estimates |
//! | `write_batch`, `write_options` | atomic writes, and their durability and times to live |
//! | `deferred_delays` | delays of writes that the caller waits for by itself |
//! | `snapshot`, `iterator`, `keys` | consistent reads, in order |
//! | `transaction` | optimistic transactions |
//! | `ingest`, `changes` | sorted data in; committed writes out |
//! | `maintenance` | long operations that another thread can cancel |
//! | `open_keyspaces` | opens many keyspaces at once |
//! | `tree_view`, `gather_stats`, `serialize` | the state of trees, the metrics, and both for `serde` |
//! | `asynchronous` | the operations as futures |
//! | `memtable` | a memtable without a database, for benchmarks |
//! | `handle` | the open database, which all handles share |

#[cfg(feature = "async")]
pub(crate) mod asynchronous;
pub(crate) mod changes;
pub(crate) mod db;
pub(crate) mod deferred_delays;
mod gather_stats;
pub(crate) mod handle;
pub(crate) mod ingest;
pub(crate) mod iterator;
pub(crate) mod keys;
pub(crate) mod keyspace;
pub(crate) mod maintenance;
pub mod memtable;
mod open_keyspaces;
#[cfg(feature = "serde")]
mod serialize;
pub(crate) mod snapshot;
pub(crate) mod transaction;
pub(crate) mod tree_view;
pub(crate) mod write_batch;
pub(crate) mod write_options;
