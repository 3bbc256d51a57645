//! Value files: values that are stored apart from their keys.
//!
//! ```text
//! | header | record | record | ... |
//! ```
//!
//! A value file belongs to one tree. It is written once from front to back, synced before the
//! manifest refers to it, and never changed or renamed, like a table. Tables refer to its values by
//! [`ValuePointer`](crate::files::value_pointer::ValuePointer)s. A record repeats key and sequence number,
//! so that a file can be checked without the tables.
//!
//! A segment of the log can serve as a value file as well: it then has a second name, and its values
//! lie in log records instead.
//!
//! | module | one line |
//! |---|---|
//! | `format` | headers and records |
//! | `writer` | writes a file |
//! | `file` | a file in use: reads its values, and removes it when it is obsolete |
//! | `files` | the value files of a version |
//! | `logged` | log segments from which values of memtables are read |
//! | `together` | reads values for the keys of a batch |
//! | `scan` | reads all records of a file |
//! | `fuzz` | fuzz targets |

mod file;
mod files;
mod format;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod logged;
mod scan;
#[cfg(test)]
mod tests;
mod together;
mod writer;

pub(crate) use file::ValueFile;
pub(crate) use files::ValueFiles;
pub(crate) use format::{VALUE_FILE_HEADER_BYTES, ValueFileHeader};
pub(crate) use logged::{LoggedFile, LoggedFiles};
pub(crate) use scan::scan_value_file;
pub(crate) use together::SeparatedEntry;
pub(crate) use writer::{FinishedValueFile, ValueFileWriter};
