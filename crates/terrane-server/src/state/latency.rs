//! The pauses that `LATENCY` reports: commands and syncs that took at least a threshold.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use terrane::{Clock, SystemClock};

/// A command took long.
pub(crate) const COMMAND: &str = "command";
/// A sync before the answers to writes took long.
pub(crate) const SYNC: &str = "aof-fsync-always";

/// The number of recent pauses kept of each kind, as in Redis.
const KEPT: usize = 160;

/// The last pauses by kind.
#[derive(Debug, Default)]
pub(crate) struct LatencyMonitor(Mutex<BTreeMap<&'static str, Pauses>>);

/// The pauses of a kind.
#[derive(Debug, Default)]
struct Pauses {
    longest_millis: u64,
    /// Oldest first, one for each second.
    recent: VecDeque<Pause>,
}

/// The longest pause of a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pause {
    /// Seconds since the Unix epoch.
    pub(crate) at: u64,
    pub(crate) millis: u64,
}

/// The last and the longest pause of a kind.
#[derive(Debug)]
pub(crate) struct Latest {
    pub(crate) event: &'static str,
    pub(crate) last: Pause,
    pub(crate) longest_millis: u64,
}

impl LatencyMonitor {
    /// Adds a pause that ends now.
    pub(crate) fn add(&self, event: &'static str, took: Duration) {
        self.add_at(event, took, SystemClock.now_micros() / 1_000_000);
    }

    fn add_at(&self, event: &'static str, took: Duration, at: u64) {
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pauses = events.entry(event).or_default();
        pauses.longest_millis = pauses.longest_millis.max(millis);
        match pauses.recent.back_mut() {
            Some(last) if last.at == at => last.millis = last.millis.max(millis),
            _ => pauses.recent.push_back(Pause { at, millis }),
        }
        if pauses.recent.len() > KEPT {
            pauses.recent.pop_front();
        }
    }

    /// Returns the last pause of each kind that has occurred.
    pub(crate) fn latest(&self) -> Vec<Latest> {
        let events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let latest = events.iter().filter_map(|(event, pauses)| {
            let longest_millis = pauses.longest_millis;
            Some(Latest { event, last: *pauses.recent.back()?, longest_millis })
        });
        latest.collect()
    }

    /// Returns the pauses of a kind, oldest first.
    pub(crate) fn history(&self, event: &str) -> Vec<Pause> {
        let events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pauses = events.get(event);
        pauses.map_or_else(Vec::new, |pauses| pauses.recent.iter().copied().collect())
    }

    /// Forgets the pauses of the kinds that `is_meant` accepts; returns the number of these kinds.
    pub(crate) fn reset(&self, is_meant: impl Fn(&str) -> bool) -> usize {
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = events.len();
        events.retain(|event, _| !is_meant(event));
        before - events.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_its_longest_pause() {
        let monitor = LatencyMonitor::default();
        for (millis, at) in [(5, 10), (9, 10), (7, 10), (3, 12)] {
            monitor.add_at(COMMAND, Duration::from_millis(millis), at);
        }
        let pauses = [Pause { at: 10, millis: 9 }, Pause { at: 12, millis: 3 }];
        assert_eq!(monitor.history(COMMAND), pauses);
        let latest = monitor.latest();
        assert_eq!((latest[0].last, latest[0].longest_millis), (pauses[1], 9));
        assert!(monitor.history(SYNC).is_empty());
    }

    #[test]
    fn the_oldest_pauses_are_forgotten() {
        let monitor = LatencyMonitor::default();
        (0..1000).for_each(|at| monitor.add_at(SYNC, Duration::from_millis(1000 - at), at));
        let history = monitor.history(SYNC);
        assert_eq!((history.len(), history[0].at), (KEPT, 840));
        assert_eq!(monitor.latest()[0].longest_millis, 1000);
        assert_eq!((monitor.reset(|event| event == SYNC), monitor.latest().len()), (1, 0));
    }
}
