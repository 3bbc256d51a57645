//! The log places of a memtable's large values, noted while the values are written, and the segments to
//! which its entries point.
//!
//! A flush that takes values from the log needs their places, and would otherwise read the log to
//! find them. Values whose places were not noted are not lost: the flush writes them to a value
//! file.

use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use terrane_memtable::Padded;

use crate::base::stats::stripe_of_thread;
use crate::base::types::{Lsn, SeqNo};
use crate::engine::context::ValuesInLog;
use crate::engine::merge::LOGGED_VALUES_MAX;
use crate::files::value_file::LoggedFile;
use crate::files::value_pointer::ValueFileName;

/// The number of lists. Each thread appends to one of them, so threads rarely share a list.
const PARTS: usize = 8;

/// The first capacity of a list.
const CAPACITY_MIN: usize = 64;

/// A large value in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoggedValueRef {
    pub(crate) seq: SeqNo,
    /// The hash of its key.
    pub(crate) hash: u64,
    /// Where its bytes begin.
    pub(crate) at: Lsn,
    pub(crate) len: u32,
    pub(crate) key_len: u32,
}

/// The noted values of a memtable, each at least as long as `lengths` says.
#[derive(Debug)]
pub(crate) struct LoggedValueRefs {
    lengths: ValuesInLog,
    parts: [Padded<Mutex<Vec<LoggedValueRef>>>; PARTS],
    /// The total capacity of all lists. No more values are noted once it would exceed
    /// [`LOGGED_VALUES_MAX`].
    capacity: AtomicUsize,
    /// The segments to which entries of the memtable point, which exist as long as the memtable does.
    files: Mutex<Vec<Arc<LoggedFile>>>,
    /// The length of the values to which entries point.
    pointed_bytes: AtomicU64,
}

impl LoggedValueRefs {
    pub(super) fn new(lengths: ValuesInLog) -> Self {
        let parts = std::array::from_fn(|_| Padded::default());
        let capacity = AtomicUsize::new(0);
        let (files, pointed_bytes) = (Mutex::default(), AtomicU64::new(0));
        Self { lengths, parts, capacity, files, pointed_bytes }
    }

    /// Returns the name of the segment at `path` as a value file. If no entry points to it yet, calls `add`
    /// and keeps the segment that it returns.
    pub(crate) fn file_name(
        &self,
        path: &Path,
        add: impl FnOnce() -> Option<Arc<LoggedFile>>,
    ) -> Option<ValueFileName> {
        let mut files = lock(&self.files);
        // The newest one is probably the right one.
        if let Some(file) = files.iter().rev().find(|file| file.log_path() == path) {
            return Some(file.name());
        }
        let file = add()?;
        let name = file.name();
        files.push(file);
        Some(name)
    }

    /// Returns the names of the segments to which entries point.
    pub(crate) fn file_names(&self) -> Vec<ValueFileName> {
        lock(&self.files).iter().map(|file| file.name()).collect()
    }

    /// Counts a value to which an entry points.
    pub(crate) fn count_pointed(&self, bytes: usize) {
        // Relaxed: only a count.
        self.pointed_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Returns the length of the values to which entries point.
    pub(crate) fn pointed_bytes(&self) -> u64 {
        self.pointed_bytes.load(Ordering::Relaxed)
    }

    /// Returns which values are noted.
    #[inline]
    pub(crate) fn lengths(&self) -> ValuesInLog {
        self.lengths
    }

    /// Returns the memory that this takes, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        // Relaxed: only a count.
        self.capacity.load(Ordering::Relaxed) * size_of::<LoggedValueRef>()
    }

    /// Notes a value.
    pub(crate) fn add(&self, value: LoggedValueRef) {
        let mut part = lock(&self.parts[stripe_of_thread() % PARTS]);
        if part.len() == part.capacity() {
            let more = part.len().max(CAPACITY_MIN);
            // Relaxed: only a count. Concurrent threads may exceed the limit by one list each.
            if self.capacity.load(Ordering::Relaxed) + more > LOGGED_VALUES_MAX {
                return;
            }
            self.capacity.fetch_add(more, Ordering::Relaxed);
            part.reserve_exact(more);
        }
        part.push(value);
    }

    /// Returns the values of at least `len_min` bytes, in log order. The memtable's writers must
    /// have finished.
    pub(crate) fn list(&self, len_min: u64) -> Vec<LoggedValueRef> {
        let mut values = Vec::new();
        for part in &self.parts {
            let is_large = |value: &&LoggedValueRef| u64::from(value.len) >= len_min;
            values.extend(lock(part).iter().filter(is_large).copied());
        }
        values.sort_unstable_by_key(|value| value.at);
        values
    }
}

fn lock<T>(part: &Mutex<Vec<T>>) -> MutexGuard<'_, Vec<T>> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_many_threads_are_listed_in_order_and_their_number_is_bounded() {
        let refs = LoggedValueRefs::new(ValuesInLog::of(100, 1 << 20));
        let value =
            |at: u64| LoggedValueRef { seq: at, hash: 0, at: Lsn(at), len: at as u32, key_len: 1 };
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let refs = &refs;
                scope.spawn(move || (0..300).for_each(|i| refs.add(value(3 * i + thread))));
            }
        });
        let listed: Vec<u64> = refs.list(10).iter().map(|value| value.at.0).collect();
        assert_eq!(listed, (10..900).collect::<Vec<_>>());
        (0..LOGGED_VALUES_MAX as u64 * 2).for_each(|at| refs.add(value(at)));
        assert!(refs.memory_bytes() <= LOGGED_VALUES_MAX * size_of::<LoggedValueRef>());
        assert!(refs.list(0).len() >= LOGGED_VALUES_MAX / 4);
    }
}
