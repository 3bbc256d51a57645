//! Writers that are delayed without a sleep.

use std::cell::Cell;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

thread_local! {
    /// Whether the delays of this thread are deferred, and until when it is delayed.
    static DEFERRED: Cell<(bool, Option<Instant>)> = const { Cell::new((false, None)) };
}

/// While it exists, no write of this thread sleeps because writers are delayed: those to a tree that falls behind, and
/// those above the maximum rate of a design. The thread waits by itself, or does something else, until the time that
/// [`until`](Self::until) returns. Writers that are stopped still wait; see
/// [`Keyspace::is_stalled`](crate::Keyspace::is_stalled). For event loops, which serve readers meanwhile.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = terrane::Db::open(dir.path())?;
/// use terrane::DeferredDelays;
/// let deferred = DeferredDelays::begin();
/// db.put("apple", "red")?;
/// assert!(DeferredDelays::until().is_none(), "nothing falls behind");
/// drop(deferred);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct DeferredDelays {
    /// The end belongs to the thread of the beginning.
    of_thread: PhantomData<*const ()>,
}

impl DeferredDelays {
    /// Defers the delays of this thread from now on, for all databases.
    #[must_use]
    pub fn begin() -> Self {
        DEFERRED.set((true, None));
        Self { of_thread: PhantomData }
    }

    /// Returns the time before which this thread should not write again; `None` if no write of it was delayed since
    /// the beginning. The time may have passed.
    #[inline]
    pub fn until() -> Option<Instant> {
        DEFERRED.get().1
    }
}

impl Drop for DeferredDelays {
    fn drop(&mut self) {
        DEFERRED.set((false, None));
    }
}

/// Returns whether delays of this thread are deferred.
pub(crate) fn is_deferring() -> bool {
    DEFERRED.get().0
}

/// Delays this thread by `more` than it is delayed already, and at least by `least`. Returns by how much that delays
/// it longer.
pub(crate) fn defer(more: Duration, least: Duration) -> Duration {
    let now = Instant::now();
    let (is_deferring, until) = DEFERRED.get();
    let before = until.map_or(now, |until| until.max(now));
    let after = (before + more).max(now + least);
    if after > now {
        DEFERRED.set((is_deferring, Some(after)));
    }
    after - before
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    #[test]
    fn delays_add_up_and_rates_do_not() {
        let deferred = DeferredDelays::begin();
        assert!(is_deferring() && defer(Duration::ZERO, Duration::ZERO).is_zero());
        assert!(DeferredDelays::until().is_none());
        assert_eq!(defer(1000 * MILLI, Duration::ZERO), 1000 * MILLI);
        assert_eq!(defer(500 * MILLI, Duration::ZERO), 500 * MILLI);
        // A rate says how far ahead writers are in all.
        assert_eq!(defer(Duration::ZERO, 700 * MILLI), Duration::ZERO);
        assert!((400 * MILLI..=501 * MILLI).contains(&defer(Duration::ZERO, 2000 * MILLI)));
        let left = DeferredDelays::until().unwrap() - Instant::now();
        assert!((1800 * MILLI..=2000 * MILLI).contains(&left), "{left:?}");
        drop(deferred);
        assert!(!is_deferring() && DeferredDelays::until().is_none());
    }
}
