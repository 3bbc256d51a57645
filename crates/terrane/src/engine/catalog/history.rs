//! The operation history: counts of each operation, across openings.
//!
//! Counts decay with a half-life of one day, so that the history describes the current workload. Only
//! the time for which the database is open counts: nothing decays while it is closed. The history is
//! saved with the edit of each flush, which is committed anyway, and when the database is closed; a
//! crash loses the counts since the last flush.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Catalog;
use crate::base::stats::OperationCounts;
use crate::files::manifest::{Change, Manifest};

/// The half-life of counts.
const HALF_LIFE_MICROS: f64 = 24.0 * 3600.0 * 1e6;

/// The operation history of a database.
#[derive(Debug)]
pub(crate) struct OperationHistory {
    decayed: Mutex<DecayedCounts>,
    opened_micros: u64,
}

#[derive(Debug)]
struct DecayedCounts {
    numbers: [f64; 8],
    /// The counts of this opening that are included in `numbers`.
    counted: OperationCounts,
    /// The counts of this opening that are saved in the manifest.
    saved: OperationCounts,
}

impl DecayedCounts {
    /// Decays the counts by the elapsed time, and adds the operations since the last call. These
    /// are assumed to be spread evenly over that time, and decay accordingly, so the result does
    /// not depend on how often this is called.
    fn add(&mut self, now: &OperationCounts) {
        let new = now.since(&self.counted);
        let half_lives = new.open_micros as f64 / HALF_LIFE_MICROS;
        let left = 0.5_f64.powf(half_lives);
        let of_new = match half_lives * std::f64::consts::LN_2 {
            // The limit of the quotient. For such short times, the difference would lose all
            // precision.
            short if short < 1e-9 => 1.0,
            passed => (1.0 - left) / passed,
        };
        for (number, new) in self.numbers.iter_mut().zip(new.numbers()) {
            *number = *number * left + new as f64 * of_new;
        }
        // The clock may have been set back.
        let open_micros = now.open_micros.max(self.counted.open_micros);
        self.counted = OperationCounts { open_micros, ..*now };
    }

    fn counts(&self) -> OperationCounts {
        let mut numbers = self.numbers.iter();
        OperationCounts::of_numbers(|| numbers.next().map_or(0, |number| number.round() as u64))
    }
}

impl OperationHistory {
    /// Continues the saved history.
    pub(crate) fn new(saved: &OperationCounts, opened_micros: u64) -> Self {
        let decayed = DecayedCounts {
            numbers: saved.numbers().map(|number| number as f64),
            counted: OperationCounts::default(),
            saved: OperationCounts::default(),
        };
        Self { decayed: Mutex::new(decayed), opened_micros }
    }

    fn lock(&self) -> MutexGuard<'_, DecayedCounts> {
        self.decayed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Catalog {
    /// Returns the operations since the database was opened.
    pub(crate) fn operations(&self) -> OperationCounts {
        let open = self.context.clock.now_micros().saturating_sub(self.history.opened_micros);
        OperationCounts::of(&self.context.counters, open)
    }

    /// Returns the history, including the operations since the database was opened.
    pub(crate) fn operation_history(&self) -> OperationCounts {
        if !self.context.health.is_of_this_process() {
            // The lock of the history may be held for ever.
            return self.operations();
        }
        let mut decayed = self.history.lock();
        decayed.add(&self.operations());
        decayed.counts()
    }

    /// Returns the change that saves the history with an edit.
    pub(crate) fn history_change(&self) -> Change {
        let mut decayed = self.history.lock();
        let now = self.operations();
        decayed.add(&now);
        decayed.saved = now;
        Change::Operations(decayed.counts())
    }

    /// Saves the history when the database is closed, unless the saved history is still current.
    pub(crate) fn save_history(&self) {
        let has_news = self.operations().since(&self.history.lock().saved).total() > 0;
        let mut guard = self.lock_manifest();
        let Some(manifest) = guard.as_mut().filter(|manifest| !Manifest::is_doubtful(manifest))
        else {
            return;
        };
        if has_news {
            let change = self.history_change();
            // A failure loses only history.
            let committed = self.commit(manifest, vec![change]);
            drop(guard);
            if committed.is_ok() {
                self.note_manifest_version();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(writes: u64, gets: u64, open_micros: u64) -> OperationCounts {
        let mut numbers = [writes, 0, 0, gets, 0, 0, 0, open_micros].into_iter();
        OperationCounts::of_numbers(|| numbers.next().unwrap())
    }

    #[test]
    fn old_operations_decay_and_new_ones_replace_them() {
        const DAY: u64 = HALF_LIFE_MICROS as u64;
        let history = OperationHistory::new(&counts(1000, 0, DAY), 0);
        let mut decayed = history.lock();
        decayed.add(&counts(0, 0, 0));
        assert_eq!(decayed.counts(), counts(1000, 0, DAY));
        decayed.add(&counts(0, 600_000, DAY));
        // Of operations spread evenly over a half-life, 1 / (2 ln 2) remain.
        assert_eq!((decayed.counts().writes, decayed.counts().gets), (500, 432_809));
    }

    #[test]
    fn the_history_does_not_depend_on_how_often_it_is_read() {
        const DAY: u64 = HALF_LIFE_MICROS as u64;
        let counts_after = |looks: u64| {
            let history = OperationHistory::new(&counts(1000, 0, 0), 0);
            let mut decayed = history.lock();
            for step in 1..=looks {
                decayed.add(&counts(0, 3_000_000 * step / looks, 3 * DAY * step / looks));
            }
            decayed.counts()
        };
        assert_eq!(counts_after(1), counts_after(1000));
        assert_eq!(counts_after(1).writes, 125);
    }
}
