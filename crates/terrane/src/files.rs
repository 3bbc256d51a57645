//! The files of a database: how they are stored, read, written and kept in memory. No module here decides
//! which file to write; that is the engine's.
//!
//! | module | one line |
//! |---|---|
//! | `storage` | files on disk, in memory, and with faults |
//! | `batch`, `wal` | encoded operations, and the log of them |
//! | `table` | sorted tables |
//! | `value_pointer`, `value_file` | values stored apart from their keys |
//! | `manifest` | the durable list of the tables of each tree |
//! | `consistency`, `log_directory` | relations between manifest, log and tables; the directory of the log |
//! | `buffer`, `value` | blocks in memory, and the values that readers hold in them |
//! | `hot_records` | entries of tables in memory without their block |
//! | `io_rings`, `io_threads`, `shared_read` | reads that overlap, with one system call or on other threads; reads of files that a writer may change |

pub(crate) mod batch;
pub(crate) mod buffer;
pub(crate) mod consistency;
pub(crate) mod hot_records;
pub(crate) mod io_rings;
pub(crate) mod io_threads;
pub(crate) mod log_directory;
pub(crate) mod manifest;
pub(crate) mod shared_read;
pub mod storage;
pub(crate) mod table;
pub(crate) mod value;
pub(crate) mod value_file;
pub(crate) mod value_pointer;
pub(crate) mod wal;
