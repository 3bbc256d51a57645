//! Tables: immutable sorted files.
//!
//! ```text
//! +--------------+-----+----------------+-----+--------+------------+-------+------------+--------+
//! | data block 0 | ... | data block n-1 | pad | filter | range      | index | properties | footer |
//! |              |     |                |     |        | tombstones |       |            |        |
//! +--------------+-----+----------------+-----+--------+------------+-------+------------+--------+
//! ```
//!
//! Every part except the footer is followed by its compression and its checksum ([`stored`]). A
//! table is written once from front to back, synced, and never changed or renamed. Its name contains
//! its number and the random number of the opening that wrote it, so that no two tables share a name.
//!
//! Entries are ordered by key, and the versions of a key newest first. All versions of a key are in one
//! table of a run. Each module documents its part byte by byte.
//!
//! | module | one line |
//! |---|---|
//! | `writer`, `sink` | write a table; the file behind it |
//! | `block`, `filter`, `index`, `range_block`, `properties`, `footer`, `stored` | the parts |
//! | `packing`, `zstd` | compressed blocks |
//! | `reader`, `open_table`, `open_files`, `blocks`, `lookup` | lifecycle, opening, the files that are open, the read path, lookups |
//! | `in_order` | announces blocks that are read in order |
//! | `resident`, `hot` | lookups that read no file; lookups whose block is not in memory |
//! | `cursor`, `scan_window`, `scan_lengths` | scans; what they read at once; what they have needed |
//! | `together` | blocks of several tables in one request |
//! | `read_ahead`, `sequential_file` | reading a whole table once |
//! | `slots`, `warming` | the slots of blocks; keeps new blocks in memory |
//! | `verify`, `salvage` | checks a table; reads a damaged one |

mod block;
mod blocks;
mod cursor;
mod filter;
mod footer;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod hot;
mod in_order;
mod index;
mod lookup;
#[cfg(feature = "micro")]
mod micro;
mod open_files;
mod open_table;
mod packing;
mod padding;
mod properties;
mod range_block;
mod read_ahead;
mod reader;
#[cfg(feature = "async")]
mod resident;
mod salvage;
mod scan_lengths;
mod scan_window;
mod sequential_file;
mod sink;
mod slots;
mod stored;
#[cfg(test)]
mod tests;
mod together;
mod verify;
mod warming;
mod writer;
mod zstd;

pub(crate) use block::Stretch;
pub(crate) use cursor::TableCursor;
pub(crate) use filter::filter_hash;
pub(crate) use footer::{FOOTER_BYTES, Footer};
pub(crate) use lookup::FoundVersion;
#[cfg(feature = "micro")]
pub(crate) use micro::{MicroBlock, MicroFilter};
pub(crate) use open_files::{OpenFiles, TableReader};
pub(crate) use packing::check_compression;
pub(crate) use reader::{Table, TableEnvironment};
pub(crate) use salvage::SalvageCursor;
pub(crate) use scan_lengths::ScanLengths;
pub(crate) use scan_window::ScanPace;
pub(crate) use sink::{SINK_BYTES, Sink, UnsyncedFile};
pub(crate) use slots::WarmSlots;
pub(crate) use stored::TableFileId;
pub(crate) use together::{load_together, read_for_seek};
pub use warming::CacheWarming;
pub(crate) use warming::{Heat, ReadsMeanwhile, Warmer};
pub(crate) use writer::{FinishedTable, TableConfig, TableWriter};
