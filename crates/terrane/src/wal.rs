//! The write-ahead log.
//!
//! One log serves all keyspaces of a database. It is a chain of segments: files of fixed length,
//! made in advance and used again, that records are copied into. At any durability but `Sync` a
//! write costs no system call; what was copied survives the death of the process.
//!
//! A position in the log ([`Lsn`](crate::types::Lsn)) counts bytes from the first record ever
//! written. Every memtable knows the position at which it began, and once it is flushed everything
//! before the next one's is no longer needed; segments are freed when no keyspace needs them.
//!
//! | module | one line |
//! |---|---|
//! | `format` | headers and records, byte by byte |
//! | `writer` | the end of the log, with all that belongs to it |
//! | `segment` | the segment that is being written |
//! | `append` | encodes records into it |
//! | `next_segment` | moves from segment to segment |
//! | `spares` | files made in advance, freed, and written again |
//! | `ahead` | what other threads do for it before it has to wait |
//! | `sync` | makes the log durable for many writers at once |
//! | `segment_reader`, `recover` | read it back, and decide where it ends |

mod ahead;
mod append;
mod format;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod next_segment;
mod recover;
mod segment;
mod segment_reader;
mod spares;
mod sync;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use ahead::{Ahead, HeaderSync, WantedClean, WantedPages, WantedSpare};
pub(crate) use format::{RecordKind, clear_note};
pub(crate) use recover::{Recovery, Replayed, ReplayedFile};
pub(crate) use segment_reader::{Next, SegmentReader};
pub(crate) use sync::LogSync;
pub(crate) use writer::{LogConfig, LogCopy, LogEnvironment, LogWriter};

/// The name of a log file. Its number is that of the file, not that of the segment in it.
pub(crate) fn segment_file_name(number: u64) -> String {
    format!("{number:06}.log")
}

/// The number of a log file, if the name is one.
pub(crate) fn segment_file_number(name: &str) -> Option<u64> {
    let number: u64 = name.strip_suffix(".log")?.parse().ok()?;
    (segment_file_name(number) == name).then_some(number)
}
