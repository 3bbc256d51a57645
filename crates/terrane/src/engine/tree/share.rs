//! The part of an active memtable that some threads fill before the memtable is measured again.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// What the threads of a share may do. Numbers are estimates and order nothing, so accesses are relaxed, and
/// concurrent updates may be lost.
#[derive(Debug, Default)]
pub(crate) struct Share {
    /// The bytes that the threads can write before the memtable must be measured again.
    space: AtomicI64,
    /// How far the threads are ahead of the schedule of the tree, in nanoseconds; see `spread`.
    ahead_nanos: AtomicU64,
}

impl Share {
    /// Reserves `bytes` of the last measured free space. Returns false if the share does not suffice, so that
    /// the memtable must be measured again.
    #[inline]
    pub(crate) fn reserve(&self, bytes: u64) -> bool {
        let left = self.space.load(Ordering::Relaxed).saturating_sub_unsigned(bytes);
        if left >= 0 {
            self.space.store(left, Ordering::Relaxed);
        }
        left >= 0
    }

    /// Sets the free space after a measurement.
    pub(crate) fn set_space(&self, bytes: u64) {
        self.space.store(i64::try_from(bytes).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Makes the next write sleep, because it is `ahead` of a schedule.
    pub(crate) fn pause(&self, ahead: Duration) {
        let nanos = u64::try_from(ahead.as_nanos()).unwrap_or(u64::MAX);
        self.ahead_nanos.store(nanos, Ordering::Relaxed);
    }

    /// Returns true if the next write sleeps.
    #[inline]
    pub(crate) fn is_paused(&self) -> bool {
        self.ahead_nanos.load(Ordering::Relaxed) != 0
    }

    /// Returns how far the threads were ahead of the schedule, and forgets it.
    pub(crate) fn take_pause(&self) -> Duration {
        Duration::from_nanos(self.ahead_nanos.swap(0, Ordering::Relaxed))
    }
}
