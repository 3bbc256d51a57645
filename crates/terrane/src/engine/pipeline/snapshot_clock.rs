//! The clock by which reads decide which values have expired, and the times of snapshots.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::base::clock::Clock;

/// The times of all snapshots, in microseconds since the Unix epoch, each with its number of
/// snapshots.
#[derive(Debug)]
pub(crate) struct SnapshotClock {
    clock: Arc<dyn Clock>,
    /// The latest time up to which merges may have dropped values. No reader reads as of an earlier
    /// time, even if the clock is set back.
    dropped: AtomicU64,
    held: Mutex<BTreeMap<u64, usize>>,
}

impl SnapshotClock {
    pub(super) fn new(clock: &Arc<dyn Clock>) -> Self {
        Self { clock: Arc::clone(clock), dropped: AtomicU64::new(0), held: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds the current time, in microseconds since the Unix epoch.
    ///
    /// The clock is read under the lock, so a snapshot that a call of [`Self::oldest_or_now`]
    /// misses reads as of the time that the call returned, or later.
    pub(crate) fn hold(&self) -> u64 {
        let mut held = self.lock();
        let now = self.now_micros();
        *held.entry(now).or_default() += 1;
        now
    }

    /// Releases a time.
    pub(crate) fn release(&self, micros: u64) {
        let mut held = self.lock();
        if let Some(count) = held.get_mut(&micros) {
            *count -= 1;
            if *count == 0 {
                held.remove(&micros);
            }
        }
    }

    /// Returns the oldest time that is held.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.lock().keys().next().copied()
    }

    /// Returns the time up to which expired values are invisible to all current and later readers.
    pub(crate) fn oldest_or_now(&self) -> u64 {
        let held = self.lock();
        let now = self.now_micros();
        let up_to = held.keys().next().map_or(now, |oldest| now.min(*oldest));
        // Stored before the caller drops anything. Release pairs with the load in `now_micros`.
        self.dropped.fetch_max(up_to, Ordering::Release);
        up_to
    }
}

impl Clock for SnapshotClock {
    /// Returns the time of reads and snapshots that begin now.
    #[inline]
    fn now_micros(&self) -> u64 {
        self.clock.now_micros().max(self.dropped.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::base::clock::ManualClock;

    #[test]
    fn a_time_is_held_until_its_last_snapshot_is_released() {
        let clock = Arc::new(ManualClock::new(10));
        let times = SnapshotClock::new(&(Arc::clone(&clock) as Arc<dyn Clock>));
        assert_eq!((times.oldest(), times.oldest_or_now()), (None, 10));
        let (a, b) = (times.hold(), times.hold());
        clock.advance(Duration::from_micros(10));
        let later = times.hold();
        assert_eq!((a, b, later, times.oldest_or_now()), (10, 10, 20, 10));
        times.release(a);
        assert_eq!(times.oldest(), Some(10));
        times.release(b);
        assert_eq!((times.oldest(), times.oldest_or_now()), (Some(20), 20));
        times.release(later);
        clock.advance(Duration::from_micros(1));
        assert_eq!((times.oldest(), times.oldest_or_now()), (None, 21));
    }

    /// A clock that can be set to any time.
    #[derive(Debug)]
    struct AnyClock(AtomicU64);

    impl Clock for AnyClock {
        fn now_micros(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn nobody_reads_as_of_a_time_before_values_were_dropped() {
        let clock = Arc::new(AnyClock(AtomicU64::new(100)));
        let times = SnapshotClock::new(&(Arc::clone(&clock) as Arc<dyn Clock>));
        assert_eq!((times.now_micros(), times.oldest_or_now()), (100, 100));
        clock.0.store(50, Ordering::Relaxed);
        assert_eq!((times.now_micros(), times.hold(), times.oldest_or_now()), (100, 100, 100));
        clock.0.store(200, Ordering::Relaxed);
        assert_eq!((times.now_micros(), times.oldest_or_now()), (200, 100));
    }
}
