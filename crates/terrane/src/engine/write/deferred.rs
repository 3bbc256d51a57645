//! Delays of writers that do not sleep: their thread collects the delays and decides how to wait.

use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    /// The delays that this thread currently collects.
    static COLLECTED: Cell<Option<Collected>> = const { Cell::new(None) };
}

/// The delays of the writes to one database.
#[derive(Debug, Clone, Copy)]
struct Collected {
    /// The number of the database.
    database: u64,
    /// The time until which the writes are delayed.
    until: Option<Instant>,
}

/// Runs `writes`. Meanwhile, this thread's writes to the database add their delays to `until`.
pub(crate) fn collect_delays<T>(
    database: u64,
    until: &mut Option<Instant>,
    writes: impl FnOnce() -> T,
) -> T {
    let outer = COLLECTED.replace(Some(Collected { database, until: *until }));
    let _scope = Scope { outer, until };
    writes()
}

/// Ends the collection, even if a write panics.
struct Scope<'a> {
    outer: Option<Collected>,
    until: &'a mut Option<Instant>,
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        let collected = COLLECTED.replace(self.outer);
        *self.until = collected.and_then(|collected| collected.until);
    }
}

/// Extends this thread's delay by `more`, and to at least `least` from now. Returns the extension;
/// `None` if the thread does not collect the delays of the database.
pub(super) fn defer(database: u64, more: Duration, least: Duration) -> Option<Duration> {
    let collected = COLLECTED.get().filter(|collected| collected.database == database)?;
    let now = Instant::now();
    let before = collected.until.map_or(now, |until| until.max(now));
    let after = (before + more).max(now + least);
    if after > now {
        COLLECTED.set(Some(Collected { until: Some(after), ..collected }));
    }
    Some(after - before)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    #[test]
    fn delays_add_up_and_rates_do_not() {
        let mut until = None;
        let defer = |more: u32, least: u32| defer(1, more * MILLI, least * MILLI);
        collect_delays(1, &mut until, || assert_eq!(defer(0, 0), Some(Duration::ZERO)));
        assert!(until.is_none());
        collect_delays(1, &mut until, || {
            assert_eq!(defer(1000, 0), Some(1000 * MILLI));
            assert_eq!(defer(500, 0), Some(500 * MILLI));
        });
        // Previously collected delays count.
        collect_delays(1, &mut until, || {
            // For a rate, the delay is how far writers are ahead in total.
            assert_eq!(defer(0, 700), Some(Duration::ZERO));
            assert!((400 * MILLI..=501 * MILLI).contains(&defer(0, 2000).unwrap()));
        });
        let left = until.unwrap() - Instant::now();
        assert!((1800 * MILLI..=2000 * MILLI).contains(&left), "{left:?}");
        assert!(defer(1000, 0).is_none());
    }

    #[test]
    fn delays_of_each_database_are_collected_apart() {
        let (mut first, mut second) = (None, None);
        collect_delays(1, &mut first, || {
            assert!(defer(2, MILLI, MILLI).is_none());
            collect_delays(2, &mut second, || {
                assert!(defer(1, MILLI, MILLI).is_none());
                assert!(defer(2, MILLI, MILLI).is_some());
            });
        });
        assert!(first.is_none() && second.is_some());
    }
}
