//! Progress of an evaluation on standard error.

use std::time::Duration;

use indicatif::ProgressBar;
use terrane_workload::stability::Watch;
use terrane_workload::{Glance, Progress};

use crate::host::progress;
use crate::output::human;

/// A progress bar for one phase.
pub(super) struct PhaseMeter {
    bar: ProgressBar,
    /// The engine's total stall time at the start of the phase.
    stalled_before: std::cell::Cell<Option<u64>>,
}

impl PhaseMeter {
    /// Returns a bar with a label.
    pub(super) fn new(label: String) -> Self {
        Self { bar: progress::bar(1, label), stalled_before: std::cell::Cell::new(None) }
    }
}

impl Watch for PhaseMeter {
    fn look(&self, elapsed: Duration, total: Duration, glance: &Glance) {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let stalled = glance.stall_micros.unwrap_or(0);
        let before = self.stalled_before.get().unwrap_or(stalled);
        self.stalled_before.set(Some(before));
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_length(millis(total));
        self.bar.set_position(millis(elapsed));
        let left = human::duration(total.saturating_sub(elapsed));
        let runs = glance.components.map(|runs| format!(" │ {}", human::counted(runs, "run")));
        let stalled = Duration::from_micros(stalled.saturating_sub(before));
        let stalled = match glance.stall_micros {
            Some(_) => format!(" │ stalled {}", human::duration(stalled)),
            None => String::new(),
        };
        self.bar.set_message(format!("{left} left{}{stalled}", runs.unwrap_or_default()));
    }
}

impl Drop for PhaseMeter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A progress bar for the load.
pub(super) struct LoadMeter(ProgressBar);

impl LoadMeter {
    /// Returns a bar with a label.
    pub(super) fn new(label: String) -> Self {
        Self(progress::bar(1, label))
    }
}

impl Progress for LoadMeter {
    fn update(&self, done: u64, total: u64, elapsed: Duration) {
        self.0.set_length(total);
        self.0.set_position(done);
        let rate = done as f64 / elapsed.as_secs_f64().max(1e-9);
        self.0.set_message(format!("{}/s", human::number(rate)));
    }
}

impl Drop for LoadMeter {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
