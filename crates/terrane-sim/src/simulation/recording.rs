//! Records results: windows, and the final outcome.

use terrane_policy::{Level, TreeShape};

use super::{SOON, Simulation};
use crate::outcome::{SimulationOutcome, SimulationWindow};
use crate::tree::SimulatedTree;

impl Simulation<'_> {
    /// Ends the current window.
    pub(super) fn close_window(&mut self) {
        let seconds = self.now - self.window_from;
        if seconds <= SOON {
            return;
        }
        let latencies = self.take_window_latencies();
        let (now, before) = (self.outcome.totals, self.window_start);
        let shapes = || self.trees.iter().map(|tree| tree.tree.shape());
        let depth = shapes().map(|shape| shape.levels.len()).max().unwrap_or(0);
        let levels_at = |number: usize| shapes().filter_map(move |shape| shape.levels.get(number));
        let queued = self.queued();
        let window = SimulationWindow {
            queued,
            latencies,
            rate: (now.writes - before.writes) / seconds,
            writes: now.writes - before.writes,
            user_bytes: now.user_bytes - before.user_bytes,
            written_bytes: now.written_bytes() - before.written_bytes(),
            runs: (now.run_seconds - before.run_seconds) / seconds,
            level_bytes: (0..depth).map(|at| levels_at(at).map(Level::size_bytes).sum()).collect(),
            level_runs: (0..depth)
                .map(|at| levels_at(at).map(|level| level.runs.len()).sum())
                .collect(),
            value_bytes: shapes().map(TreeShape::value_bytes).sum(),
            live_value_bytes: shapes().map(TreeShape::live_value_bytes).sum(),
            ..std::mem::take(&mut self.window)
        };
        self.outcome.windows.push(window);
        (self.window_from, self.window_start) = (self.now, now);
    }

    /// Returns the writes that have arrived but are not completed.
    fn queued(&self) -> f64 {
        // The difference of two large numbers may be a rounding error below zero.
        self.arrived.count_at(self.now).map_or(0.0, |all| (all - self.departed).max(0.0))
    }

    /// Returns the results and the trees.
    pub(super) fn end(mut self) -> (SimulationOutcome, Vec<SimulatedTree>) {
        self.unblock();
        self.trace_progress();
        // Drop a short last window: its averages are not representative.
        if self.now - self.window_from > self.setup.window_seconds / 2.0 {
            self.close_window();
        }
        self.outcome.seconds = self.now;
        self.outcome.queued = self.queued();
        let trees = self.trees.into_iter().map(|tree| tree.tree.without_recording());
        (self.outcome, trees.collect())
    }
}
