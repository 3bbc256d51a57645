//! The write-ahead log.
//!
//! One log serves all keyspaces of a database. It is a chain of segments: preallocated, reused files of
//! fixed length. A record survives the death of the process once it is written to the current segment.
//! The storage decides how: through a memory map, which takes no system call, or with a positioned write,
//! which may fail midway ([`Segment::write`](crate::files::storage::Segment::write)). A partly written
//! record is invalid, and the next record overwrites it.
//!
//! A position in the log ([`Lsn`](crate::base::types::Lsn)) counts bytes from the first record ever
//! written. Every memtable records the position at which it began. Once it is flushed, its keyspace
//! no longer needs records before the start of the next memtable; a segment is freed when no
//! keyspace needs it.
//!
//! | module | one line |
//! |---|---|
//! | `format` | headers and records, byte by byte |
//! | `notes` | the notes in a header, byte by byte |
//! | `writer` | the end of the log and its state |
//! | `segment` | the current segment |
//! | `append` | encodes records into the current segment under the lock |
//! | `slice` | places records of several concurrent writers in the current segment |
//! | `zero_tail` | the zeros after the last record of a segment |
//! | `next_segment` | switches from one segment to the next |
//! | `free_segments` | preallocated and reused segment files |
//! | `refusal` | the pause after a full disk has refused a file |
//! | `requests` | requests to background threads, so that no writer blocks |
//! | `sync` | group commit: one sync for many writers |
//! | `segment_reader`, `recover` | read the log back and decide where it ends |
//! | `value_places` | finds large values in records |
//! | `log_notes` | the manifest versions noted in headers |
//! | `segment_directory` | the segments by position, for threads without the lock |
//! | `retained_segments` | segments that are kept for readers of changes |
//! | `change_scan` | reads committed batches of a log in use |

mod append;
mod change_scan;
mod format;
mod free_segments;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod gather;
mod log_notes;
mod next_segment;
mod notes;
mod recover;
mod refusal;
mod requests;
mod retained_segments;
mod segment;
mod segment_directory;
mod segment_reader;
mod slice;
mod sync;
#[cfg(test)]
mod tests;
mod value_places;
mod writer;
mod zero_tail;

pub(crate) use change_scan::{ChangeScan, Gone, LogInUse, LoggedBatch, ReadLimit, Scanned};
pub(crate) use format::RecordKind;
pub(crate) use log_notes::LogNotes;
pub(crate) use next_segment::{EndedEarly, Ending};
pub(crate) use notes::state_copy;
pub(crate) use recover::{LogBatch, Recovery, Replayed, ReplayedFile};
pub(crate) use requests::{
    EndedSegment, HeaderSync, PagePrefault, SegmentCleaning, SegmentCreation, SegmentRequests,
};
pub(crate) use retained_segments::{LogPart, LogRetention};
pub(crate) use segment_directory::{SegmentDirectory, SegmentPlace};
pub(crate) use segment_reader::{Next, SegmentReader};
pub(crate) use slice::{LogSlice, PreparedRecord, RecordBuffer, RecordOps};
pub(crate) use sync::LogSync;
pub(crate) use value_places::{LogFile, SegmentPart, payload_at, values_in_segment};
pub(crate) use writer::{LogConfig, LogCopy, LogEnvironment, LogWriter};

/// Returns the name of a log file. The number identifies the file, not the segment that the file
/// holds.
pub(crate) fn segment_file_name(number: u64) -> String {
    format!("{number:06}.log")
}

/// Returns the number in the name of a log file; `None` for any other name.
pub(crate) fn segment_file_number(name: &str) -> Option<u64> {
    let number: u64 = name.strip_suffix(".log")?.parse().ok()?;
    (segment_file_name(number) == name).then_some(number)
}
