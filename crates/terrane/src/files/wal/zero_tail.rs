//! The known zeros after the last record of a segment.
//!
//! A writer that appends under the lock writes zeros after its record. A writer without the lock
//! cannot, because the next record may be there already. It therefore places its record only where the
//! segment is known to hold zeros, which a background thread writes ahead of the writers. A new file
//! has zeros already, but writing them provides its pages. If the process dies before it writes a
//! record, recovery reads zeros there instead of damage.
//!
//! Invariants:
//! 1. No record is placed at or beyond the end without the lock. Before a record is appended under the
//!    lock, the end is moved past it; it is moved back if the write fails.
//! 2. Zeros are written only from the end on, with the mutex held, so no zeros overwrite a record.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::files::storage::RecordWriter;

/// The number of bytes zeroed in one step under the mutex, which takes about 20 microseconds.
const STEP_BYTES: u64 = 128 << 10;

/// The end of the zeros of a segment, and the handle to write more.
#[derive(Debug)]
pub(super) struct ZeroTail {
    path: Arc<Path>,
    writer: Arc<dyn RecordWriter>,
    len: u64,
    end: AtomicU64,
    /// Held while zeros are written.
    zeroing: Mutex<()>,
}

impl ZeroTail {
    /// The zeros of the file `path` of `len` bytes, which begin at `end`.
    pub(super) fn new(path: &Path, writer: Arc<dyn RecordWriter>, len: u64, end: u64) -> Self {
        Self { path: path.into(), writer, len, end: AtomicU64::new(end), zeroing: Mutex::new(()) }
    }

    /// The file.
    pub(super) fn path(&self) -> &Arc<Path> {
        &self.path
    }

    pub(super) fn writer(&self) -> &Arc<dyn RecordWriter> {
        &self.writer
    }

    /// Returns the offset before which all bytes after the last record are zeros.
    pub(super) fn end(&self) -> u64 {
        // Acquire pairs with the releases below: a record is stored after the zeros.
        self.end.load(Ordering::Acquire)
    }

    /// Prepares to append a record and its terminator, which end at `end`, with the lock.
    #[inline]
    pub(super) fn move_behind(&self, end: u64) {
        if self.end() < end {
            let _zeroing = self.zeroing.lock().unwrap_or_else(PoisonError::into_inner);
            self.end.fetch_max(end, Ordering::Release);
        }
    }

    /// Prepares to write again from `offset`, where the last record ends, because the bytes written
    /// there are not a record.
    #[cold]
    pub(super) fn move_back(&self, offset: u64) {
        let _zeroing = self.zeroing.lock().unwrap_or_else(PoisonError::into_inner);
        self.end.fetch_min(offset, Ordering::Release);
    }

    /// Writes zeros from the end up to `upto`. Calls `between` after each step.
    pub(super) fn extend(&self, upto: u64, between: impl Fn()) {
        let upto = upto.min(self.len);
        while self.end() < upto {
            let zeroing = self.zeroing.lock().unwrap_or_else(PoisonError::into_inner);
            let end = self.end();
            // Ends at a multiple of the step, so that the system can use large pages.
            let count = upto.min((end / STEP_BYTES + 1) * STEP_BYTES).saturating_sub(end);
            // If that fails, the end stays, and writers append with the lock.
            if count == 0 || self.writer.write_zeros(end, count).is_err() {
                return;
            }
            self.end.store(end + count, Ordering::Release);
            drop(zeroing);
            between();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::storage::{Access, MemoryStorage, Storage};

    #[test]
    fn zeros_are_written_behind_what_was_appended() {
        let storage = MemoryStorage::new(1);
        let path = Path::new("1.log");
        let mut segment = storage.create_segment(path, 1 << 20).unwrap();
        segment.write(0, &[7; 1 << 20]).unwrap();
        let zero_tail = ZeroTail::new(path, segment.record_writer().unwrap(), 1 << 20, 528);
        zero_tail.extend(1000, || ());
        zero_tail.move_behind(2000);
        zero_tail.extend(1500, || ());
        zero_tail.extend(300_000, || ());
        let steps = std::cell::Cell::new(0);
        zero_tail.extend(u64::MAX, || steps.set(steps.get() + 1));
        assert_eq!(steps.get(), (1 << 20) / STEP_BYTES - 2);
        assert_eq!(zero_tail.end(), 1 << 20);
        segment.write(400_000, &[7; 900]).unwrap();
        zero_tail.move_back(400_000);
        zero_tail.move_behind(400_100);
        zero_tail.extend(400_800, || ());
        assert_eq!(zero_tail.end(), 400_800);
        let mut bytes = vec![0; 1 << 20];
        storage.open(path, Access::Buffered).unwrap().read_at(0, &mut bytes).unwrap();
        let kept = |index: usize| {
            index < 528
                || [1000..2000, 400_000..400_100, 400_800..400_900]
                    .iter()
                    .any(|range| range.contains(&index))
        };
        for (index, byte) in bytes.into_iter().enumerate() {
            assert_eq!(byte == 7, kept(index), "at {index}");
        }
    }
}
