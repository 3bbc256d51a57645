//! Keeps the block cache within the memory that the system has left.
//!
//! The memory budget is what the database may take while nobody else needs the memory. The application and
//! other processes do not know it, and the cache is the only part that can be given back at once. A thread of
//! its own therefore reads from time to time how much memory every limit leaves, and the cache takes no more
//! than that, less a reserve. It never takes less than its smallest share, and grows again as memory becomes
//! free.
//!
//! Without threads nothing is read, so that results depend on the calls alone. A small cache is left alone as
//! well: giving it back would help nobody.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::options::FreeMemory;

/// The size of a cache from which on it is given back.
pub(crate) const CACHE_BYTES_MIN: u64 = 64 << 20;

/// One part in this many of a limit is left free, within the bounds below.
const RESERVE_PARTS: u64 = 16;
const RESERVE_MIN: u64 = 8 << 20;
const RESERVE_MAX: u64 = 1 << 30;

/// Half of the free memory lasts for the time between two readings if processes take no more than this per
/// second.
const BYTES_PER_SECOND: u64 = 1 << 30;

/// The shortest and the longest time between two readings.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
const INTERVAL_MAX: Duration = Duration::from_secs(10);

/// What the system leaves to the block cache of a database.
#[derive(Debug)]
pub(crate) struct MemoryPressure {
    /// What the cache may take.
    cache_bytes_max: AtomicU64,
    /// What the cache would take.
    wanted: AtomicU64,
    state: Mutex<State>,
    stopped: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The limit that leaves the least, from when the cache must be given back until it may be as large as
    /// it would be.
    scarce: Option<Scarcity>,
    is_stopped: bool,
}

/// A shortage of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scarcity {
    pub(crate) free: FreeMemory,
    /// What the cache may take.
    pub(crate) cache_bytes: u64,
}

/// What a reading has changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MemoryReading {
    /// What the cache should take now.
    pub(crate) cache_bytes: u64,
    /// A shortage that has begun, or `None` if one has ended.
    pub(crate) change: Option<Option<Scarcity>>,
    /// The time until the next reading.
    pub(crate) interval: Duration,
}

impl Default for MemoryPressure {
    fn default() -> Self {
        Self {
            cache_bytes_max: AtomicU64::new(u64::MAX),
            wanted: AtomicU64::new(0),
            state: Mutex::default(),
            stopped: Condvar::new(),
        }
    }
}

impl MemoryPressure {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what the cache may take of the `wanted` bytes that the budget grants it.
    pub(crate) fn cache_bytes(&self, wanted: u64) -> u64 {
        // Relaxed: the values guard no other memory.
        self.wanted.store(wanted, Ordering::Relaxed);
        wanted.min(self.cache_bytes_max.load(Ordering::Relaxed))
    }

    /// Returns what the cache may take of the machine's memory, as last read.
    pub(crate) fn cache_bytes_max(&self) -> usize {
        usize::try_from(self.cache_bytes_max.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    /// Evaluates a reading. The cache takes `cache_bytes` now, and may always take `least`.
    pub(crate) fn update(
        &self,
        (cache_bytes, least): (u64, u64),
        free: Vec<FreeMemory>,
    ) -> MemoryReading {
        let wanted = self.wanted.load(Ordering::Relaxed);
        let bytes_free = free.iter().map(|free| free.bytes).min();
        let left = least_left(cache_bytes, free)
            .map(|left| Scarcity { cache_bytes: left.cache_bytes.max(least), ..left });
        let max = left.as_ref().map_or(u64::MAX, |left| left.cache_bytes);
        self.cache_bytes_max.store(max, Ordering::Relaxed);
        let mut state = self.lock();
        let is_short = max < wanted && (max < cache_bytes || state.scarce.is_some());
        let change =
            (is_short != state.scarce.is_some()).then(|| left.clone().filter(|_| is_short));
        state.scarce = left.filter(|_| is_short);
        let millis = bytes_free.map_or(u64::MAX, |free| free / 2 / (BYTES_PER_SECOND / 1000));
        let interval = Duration::from_millis(millis).clamp(INTERVAL_MIN, INTERVAL_MAX);
        MemoryReading { cache_bytes: wanted.min(max), change, interval }
    }

    /// Waits until the next reading is due. Returns false once the database stops its threads.
    pub(crate) fn wait(&self, interval: Duration) -> bool {
        let state = self.lock();
        let waited = self.stopped.wait_timeout_while(state, interval, |state| !state.is_stopped);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.is_stopped
    }

    /// Ends the wait for the next reading.
    pub(crate) fn stop(&self) {
        self.lock().is_stopped = true;
        self.stopped.notify_all();
    }
}

/// Returns the limit that leaves the least to a cache which takes `cache_bytes` now.
fn least_left(cache_bytes: u64, free: Vec<FreeMemory>) -> Option<Scarcity> {
    let left = |free: FreeMemory| {
        let reserve = (free.limit / RESERVE_PARTS).clamp(RESERVE_MIN, RESERVE_MAX);
        let cache_bytes = cache_bytes.saturating_add(free.bytes).saturating_sub(reserve);
        Scarcity { free, cache_bytes }
    };
    free.into_iter().map(left).min_by_key(|left| left.cache_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn free(bytes: u64, limit: u64) -> FreeMemory {
        FreeMemory { bytes, limit, source: format!("{limit}") }
    }

    #[test]
    fn the_limit_that_leaves_the_least_decides() {
        let least = least_left(GIB, vec![free(20 * GIB, 32 * GIB), free(GIB, 2 * GIB)]).unwrap();
        // A sixteenth of 2 GiB is left free.
        assert_eq!(least.cache_bytes, 2 * GIB - GIB / 8);
        assert_eq!(least.free.source, (2 * GIB).to_string());
        assert_eq!(least_left(0, vec![free(0, GIB)]).unwrap().cache_bytes, 0);
        assert!(least_left(GIB, Vec::new()).is_none());
    }

    #[test]
    fn a_shortage_begins_when_memory_must_be_given_back_and_ends_when_all_fits() {
        let pressure = MemoryPressure::default();
        assert_eq!(pressure.cache_bytes(4 * GIB), 4 * GIB);
        let half = GIB / 2;
        // For each step: what the cache takes, what is free, what the cache may take, and whether a shortage
        // begins or ends.
        for (cache, bytes, max, change) in [
            (0, 2 * GIB, GIB, None),
            (GIB, 2 * GIB, 2 * GIB, None),
            (2 * GIB, half, GIB + half, Some(true)),
            (GIB + half, GIB, GIB + half, None),
            (GIB + half, 0, half, None),
            (half, 0, half, None),
            (half, 4 * GIB, 3 * GIB + half, None),
            (half, 5 * GIB, 4 * GIB, Some(false)),
            (2 * GIB, 20 * GIB, 4 * GIB, None),
        ] {
            let reading = pressure.update((cache, half), vec![free(bytes, 32 * GIB)]);
            assert_eq!(reading.cache_bytes, max, "{cache} {bytes}");
            assert_eq!(pressure.cache_bytes(4 * GIB), max, "{cache} {bytes}");
            let begins = reading.change.map(|change| change.is_some());
            assert_eq!(begins, change, "{cache} {bytes}");
        }
    }

    #[test]
    fn memory_is_read_before_it_can_be_used_up() {
        let pressure = MemoryPressure::default();
        let interval = |bytes| pressure.update((0, 0), vec![free(bytes, 32 * GIB)]).interval;
        assert_eq!(interval(0), INTERVAL_MIN);
        assert!((490..510).contains(&interval(GIB).as_millis()));
        assert_eq!(interval(30 * GIB), INTERVAL_MAX);
        assert_eq!(pressure.update((0, 0), Vec::new()).interval, INTERVAL_MAX);
    }

    #[test]
    fn the_wait_ends_when_threads_are_stopped() {
        let pressure = MemoryPressure::default();
        assert!(pressure.wait(Duration::from_millis(1)));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| pressure.wait(Duration::from_secs(600)));
            pressure.stop();
            assert!(!waits.join().unwrap());
        });
    }
}
