//! What the database was asked for, kept over its openings.
//!
//! What is done fades with time, so that what is remembered is the workload as it is: of what was done
//! a day ago a half is left. Only the time counts for which the database is open: one that rests
//! forgets nothing. It is kept with the edit of each flush, which is made anyway, and when the database
//! is closed; a crash loses what was counted since.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::engine::Engine;
use crate::manifest::{Change, Manifest};
use crate::stats::OperationCounts;

/// The time in which what was done counts for half as much.
const HALF_LIFE_MICROS: f64 = 24.0 * 3600.0 * 1e6;

/// What is remembered, and up to where it was counted.
#[derive(Debug)]
pub(crate) struct Remembered {
    faded: Mutex<Faded>,
    opened_micros: u64,
}

#[derive(Debug)]
struct Faded {
    numbers: [f64; 8],
    /// What of this opening is in them.
    counted: OperationCounts,
    /// What of this opening is in the manifest.
    kept: OperationCounts,
}

impl Faded {
    /// Adds what was done since the last time, after time has passed for what was there. What is added
    /// is taken to have come evenly, and has faded as well: so it is the same however often one looks.
    fn add(&mut self, now: &OperationCounts) {
        let new = now.since(&self.counted);
        let half_lives = new.open_micros as f64 / HALF_LIFE_MICROS;
        let left = 0.5_f64.powf(half_lives);
        let of_new = match half_lives * std::f64::consts::LN_2 {
            // The limit, where a difference of nearly equal numbers says nothing.
            short if short < 1e-9 => 1.0,
            passed => (1.0 - left) / passed,
        };
        for (number, new) in self.numbers.iter_mut().zip(new.numbers()) {
            *number = *number * left + new as f64 * of_new;
        }
        // A clock may be set back.
        let open_micros = now.open_micros.max(self.counted.open_micros);
        self.counted = OperationCounts { open_micros, ..*now };
    }

    fn counts(&self) -> OperationCounts {
        let mut numbers = self.numbers.iter();
        OperationCounts::of_numbers(|| numbers.next().map_or(0, |number| number.round() as u64))
    }
}

impl Remembered {
    /// Goes on from what was kept.
    pub(crate) fn new(kept: &OperationCounts, opened_micros: u64) -> Self {
        let faded = Faded {
            numbers: kept.numbers().map(|number| number as f64),
            counted: OperationCounts::default(),
            kept: OperationCounts::default(),
        };
        Self { faded: Mutex::new(faded), opened_micros }
    }

    fn lock(&self) -> MutexGuard<'_, Faded> {
        self.faded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// What was done since the database was opened.
    pub(crate) fn operations(&self) -> OperationCounts {
        let open = self.clock.now_micros().saturating_sub(self.remembered.opened_micros);
        OperationCounts::of(&self.counters, open)
    }

    /// What is remembered, with what was done since the database was opened.
    pub(crate) fn remembered_operations(&self) -> OperationCounts {
        let mut faded = self.remembered.lock();
        faded.add(&self.operations());
        faded.counts()
    }

    /// What is to be kept with an edit.
    pub(crate) fn operations_to_keep(&self) -> Change {
        let mut faded = self.remembered.lock();
        let now = self.operations();
        faded.add(&now);
        faded.kept = now;
        Change::Operations(faded.counts())
    }

    /// Keeps what was counted since the last edit that did, when the database is closed.
    pub(crate) fn keep_operations(&self) {
        let has_news = self.operations().since(&self.remembered.lock().kept).total() > 0;
        let mut guard = self.lock_manifest();
        let Some(manifest) = guard.as_mut().filter(|manifest| !Manifest::is_doubtful(manifest))
        else {
            return;
        };
        if has_news {
            let change = self.operations_to_keep();
            // History, not state: what cannot be kept is forgotten.
            let kept = self.commit(manifest, vec![change]);
            drop(guard);
            if kept.is_ok() {
                self.note_manifest();
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
    fn what_was_done_fades_and_what_is_done_takes_its_place() {
        const DAY: u64 = HALF_LIFE_MICROS as u64;
        let remembered = Remembered::new(&counts(1000, 0, DAY), 0);
        let mut faded = remembered.lock();
        faded.add(&counts(0, 0, 0));
        assert_eq!(faded.counts(), counts(1000, 0, DAY));
        faded.add(&counts(0, 600_000, DAY));
        // Of what came evenly in a half-life, 1 / (2 ln 2) is left.
        assert_eq!((faded.counts().writes, faded.counts().gets), (500, 432_809));
    }

    #[test]
    fn looking_often_is_as_looking_once() {
        const DAY: u64 = HALF_LIFE_MICROS as u64;
        let counts_after = |looks: u64| {
            let remembered = Remembered::new(&counts(1000, 0, 0), 0);
            let mut faded = remembered.lock();
            for step in 1..=looks {
                faded.add(&counts(0, 3_000_000 * step / looks, 3 * DAY * step / looks));
            }
            faded.counts()
        };
        assert_eq!(counts_after(1), counts_after(1000));
        assert_eq!(counts_after(1).writes, 125);
    }
}
