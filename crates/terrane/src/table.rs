//! Tables: immutable sorted files.
//!
//! ```text
//! +--------------+-----+----------------+-----+--------+------------+-------+------------+--------+
//! | data block 0 | ... | data block n-1 | pad | filter | range      | index | properties | footer |
//! |              |     |                |     |        | tombstones |       |            |        |
//! +--------------+-----+----------------+-----+--------+------------+-------+------------+--------+
//! ```
//!
//! Every part but the footer is followed by its compression and its checksum ([`stored`]). A table
//! is written once from front to back, synced, and never changed or renamed; its name tells its
//! number and which opening of which database wrote it, so that no two tables ever share one.
//!
//! Entries are ordered by key, and within a key from new to old. All versions of a key are in one
//! table of a run. Each module documents its part byte by byte.

mod block;
mod cursor;
mod filter;
mod footer;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod index;
#[cfg(feature = "micro")]
mod micro;
mod properties;
mod range_block;
mod read_ahead;
mod reader;
mod salvage;
mod sink;
mod stored;
#[cfg(test)]
mod tests;
mod verify;
mod warming;
mod writer;

pub(crate) use cursor::TableCursor;
pub(crate) use filter::filter_hash;
pub(crate) use footer::{FOOTER_BYTES, Footer};
#[cfg(feature = "micro")]
pub(crate) use micro::{MicroBlock, MicroFilter};
pub(crate) use reader::{Found, ReadPath, Table, TableEnvironment};
pub(crate) use salvage::SalvageCursor;
pub(crate) use stored::TableFileId;
pub use warming::CacheWarming;
pub(crate) use warming::{Heat, Warmer};
pub(crate) use writer::{FinishedTable, TableConfig, TableWriter};
