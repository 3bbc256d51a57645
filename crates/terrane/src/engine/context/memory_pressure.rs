//! Keeps the block cache within the memory that the system has left.
//!
//! The memory budget is what the database may take while nobody else needs the memory. The application and
//! other processes do not know it, and the cache is the only part that can be given back at once. A thread
//! therefore reads from time to time how much memory every limit leaves, and the cache takes no more than
//! that, less a reserve. It never takes less than its smallest share, and grows again as memory becomes free.
//!
//! Without threads nothing is read, so that results depend on the calls alone. A small cache is left alone as
//! well: giving it back would help nobody, and reading takes some 0.1 ms.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::options::{FreeMemory, MemoryGauge};

/// The size of a cache from which on it is given back.
const CACHE_BYTES_MIN: u64 = 64 << 20;

/// One part in this many of a limit is left free, within the bounds below.
const RESERVE_PARTS: u64 = 16;
const RESERVE_MIN: u64 = 8 << 20;
const RESERVE_MAX: u64 = 1 << 30;

/// The shortest and the longest time between two readings.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
const INTERVAL_MAX: Duration = Duration::from_secs(10);

/// The time between two readings while the cache grows or less than half of a limit is free.
const INTERVAL_BUSY: Duration = Duration::from_secs(1);

/// The time is the shortest while one part in this many of a limit, or less, is free beside the reserve.
const NEAR_PARTS: u64 = 8;

/// What the system leaves to the block cache of a database.
#[derive(Debug)]
pub(crate) struct MemoryPressure {
    /// Set once it is read.
    gauge: OnceLock<MemoryGauge>,
    /// What the cache may take.
    cache_bytes_max: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    next: Instant,
    interval: Duration,
    /// What the cache took at the last reading.
    cache_bytes: u64,
    /// The limit that leaves the least, from when the cache must be given back until it may be as large as
    /// it would be.
    scarce: Option<Scarcity>,
    /// What was last reported.
    is_reported: bool,
}

/// A shortage of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scarcity {
    pub(crate) free: FreeMemory,
    /// What the cache may take.
    pub(crate) cache_bytes: u64,
}

impl Default for MemoryPressure {
    fn default() -> Self {
        let state = State {
            next: Instant::now(),
            interval: INTERVAL_BUSY,
            cache_bytes: 0,
            scarce: None,
            is_reported: false,
        };
        let cache_bytes_max = AtomicU64::new(u64::MAX);
        Self { gauge: OnceLock::new(), cache_bytes_max, state: Mutex::new(state) }
    }
}

impl MemoryPressure {
    /// Begins to read, for a cache that may take up to `cache_bytes` bytes, unless it is small.
    pub(crate) fn watch(&self, cache_bytes: u64) {
        if cache_bytes >= CACHE_BYTES_MIN {
            self.gauge.get_or_init(MemoryGauge::of_process);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time until memory should be read again; `None` if it is never read.
    pub(crate) fn time_to_reading(&self) -> Option<Duration> {
        self.gauge.get()?;
        Some(self.lock().next.saturating_duration_since(Instant::now()))
    }

    /// Returns what the cache may take, which takes `cache_bytes` now and would take `wanted`. Reads the
    /// memory that is free if that is due.
    pub(crate) fn cache_bytes_max(&self, cache_bytes: u64, wanted: u64) -> u64 {
        let Some(gauge) = self.gauge.get() else { return u64::MAX };
        let mut state = self.lock();
        let now = Instant::now();
        if now >= state.next {
            // With the lock, so that a reading never replaces a later one.
            let least = least_left(cache_bytes, gauge.read());
            // Relaxed: the value guards no other memory.
            let max = least.as_ref().map_or(u64::MAX, |least| least.cache_bytes);
            self.cache_bytes_max.store(max, Ordering::Relaxed);
            state.update(cache_bytes, least, wanted);
            state.next = now + state.interval;
        }
        self.cache_bytes_max.load(Ordering::Relaxed)
    }

    /// Returns how a shortage has changed since the last call: it has begun, or it has ended (`None`).
    pub(crate) fn take_change(&self) -> Option<Option<Scarcity>> {
        let mut state = self.lock();
        let is_scarce = state.scarce.is_some();
        (state.is_reported != is_scarce).then(|| {
            state.is_reported = is_scarce;
            state.scarce.clone()
        })
    }
}

impl State {
    fn update(&mut self, cache_bytes: u64, least: Option<Scarcity>, wanted: u64) {
        let is_growing = cache_bytes.abs_diff(self.cache_bytes) > CACHE_BYTES_MIN / 4;
        self.cache_bytes = cache_bytes;
        // Whether memory is short once this process or others take that part of the limit.
        let is_near = |part: u64| {
            let near = |least: &Scarcity| cache_bytes.saturating_add(least.free.limit / part);
            least.as_ref().is_some_and(|least| least.cache_bytes < near(least))
        };
        self.interval = if is_near(NEAR_PARTS) {
            INTERVAL_MIN
        } else if is_growing || is_near(2) {
            INTERVAL_BUSY
        } else {
            (self.interval * 2).clamp(INTERVAL_BUSY, INTERVAL_MAX)
        };
        let begins = least.as_ref().is_some_and(|least| least.cache_bytes < cache_bytes);
        let is_less = |least: &Scarcity| least.cache_bytes < wanted;
        self.scarce = least.filter(is_less).filter(|_| begins || self.scarce.is_some());
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
        let (mut state, wanted) = (pressure.lock(), 4 * GIB);
        // For each step: what the cache takes, what is free, whether memory is short, and the interval.
        for (cache, bytes, is_short, interval) in [
            (0, 2 * GIB, false, INTERVAL_MIN),
            (GIB, 3 * GIB + GIB / 2, false, INTERVAL_MIN),
            (GIB, 5 * GIB, false, INTERVAL_BUSY),
            (2 * GIB, GIB / 2, true, INTERVAL_MIN),
            (GIB + GIB / 2, GIB, true, INTERVAL_MIN),
            (GIB + GIB / 2, 2 * GIB, true, INTERVAL_MIN),
            (GIB + GIB / 2, 4 * GIB, false, INTERVAL_MIN),
            (2 * GIB, 20 * GIB, false, INTERVAL_BUSY),
            (2 * GIB, 20 * GIB, false, INTERVAL_BUSY * 2),
            (2 * GIB, 20 * GIB, false, INTERVAL_BUSY * 4),
            (2 * GIB, 20 * GIB, false, INTERVAL_BUSY * 8),
            (2 * GIB, 20 * GIB, false, INTERVAL_MAX),
        ] {
            let least = least_left(cache, vec![free(bytes, 32 * GIB)]);
            state.update(cache, least, wanted);
            assert_eq!(state.scarce.is_some(), is_short, "{cache} {bytes}");
            assert_eq!(state.interval, interval, "{cache} {bytes}");
        }
    }

    #[test]
    fn nothing_is_read_for_a_small_cache() {
        let pressure = MemoryPressure::default();
        pressure.watch(1 << 20);
        assert_eq!(pressure.cache_bytes_max(0, GIB), u64::MAX);
        assert_eq!(pressure.time_to_reading(), None);
        pressure.watch(GIB);
        assert_eq!(pressure.time_to_reading(), Some(Duration::ZERO));
    }
}
