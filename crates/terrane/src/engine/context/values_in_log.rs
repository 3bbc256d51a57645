//! Which values of a tree may stay in the log.

/// From this length on, a value is not copied into a memtable if it may stay in the log: the copy costs more
/// than the system call of a later read.
const POINTED_BYTES: u64 = 64 << 10;

/// A memtable copies no value that is longer than this part of it, because few of them would fill it.
const POINTED_PARTS: u64 = 16;

/// Which values of a tree may stay in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValuesInLog {
    /// The length from which the places of values are noted for the flush.
    pub(crate) noted_from: u64,
    /// The length from which values are inserted into memtables as pointers to their places.
    pub(crate) pointed_from: u64,
}

impl ValuesInLog {
    /// Returns the lengths for a tree that separates values from `threshold` on and has memtables of
    /// `buffer_bytes`.
    pub(crate) fn of(threshold: u64, buffer_bytes: u64) -> Self {
        let least = POINTED_BYTES.min(buffer_bytes / POINTED_PARTS);
        Self { noted_from: threshold, pointed_from: threshold.max(least) }
    }
}
