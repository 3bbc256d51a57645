//! The values of a memtable that are already in the log.
//!
//! A flush need not rewrite a large value that is in a log segment: the segment gets a second name
//! as a value file, and the table points into it. The log is then the only copy, so it is synced
//! before the table refers to it, and the file is not reused when the log no longer needs it.

use crate::base::types::SeqNo;
use crate::files::table::filter_hash;
use crate::files::value_pointer::{ValueFileName, ValuePointer};

/// The maximum number of values of a memtable that are taken from the log. It bounds the memory for
/// their places. A memtable with more values than this has small ones, which are cheap to rewrite.
pub(crate) const LOGGED_VALUES_MAX: usize = 1 << 18;

/// The place of a value in the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoggedValue {
    pub(crate) seq: SeqNo,
    /// The hash of its key.
    pub(crate) hash: u64,
    /// The index of its segment in [`LoggedValues::segments`].
    pub(crate) segment: u32,
    pub(crate) len: u32,
    /// The offset of the value in the file of the segment.
    pub(crate) offset: u64,
}

/// The values in the log, by sequence number.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoggedValues {
    /// The names of the segments as value files.
    segments: Vec<ValueFileName>,
    /// In ascending order of sequence numbers.
    values: Vec<LoggedValue>,
}

impl LoggedValues {
    pub(crate) fn new(segments: Vec<ValueFileName>, mut values: Vec<LoggedValue>) -> Self {
        values.sort_unstable_by_key(|value| value.seq);
        Self { segments, values }
    }

    /// Returns the memory that this takes, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.values.capacity() * size_of::<LoggedValue>()
    }

    /// Returns the pointer to the value of an entry, if one of the segments contains the value.
    pub(super) fn find(&self, key: &[u8], seq: SeqNo, value: &[u8]) -> Option<ValuePointer> {
        let at = self.values.binary_search_by_key(&seq, |value| value.seq).ok()?;
        let found = self.values.get(at)?;
        // The sequence number identifies the entry. A different length or key would indicate a bug;
        // such a value is rewritten.
        if found.len as usize != value.len() || found.hash != filter_hash(key) {
            return None;
        }
        let name = self.segments.get(found.segment as usize)?;
        let checksum = name.checksum(found.offset, value);
        Some(ValuePointer { file: name.number, offset: found.offset, len: found.len, checksum })
    }
}
