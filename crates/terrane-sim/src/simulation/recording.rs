//! Results: windows and the end.

use super::{SOON, Simulation};
use crate::outcome::{SimulationOutcome, SimulationWindow};
use crate::tree::SimulatedTree;

impl Simulation<'_> {
    /// Ends the present window.
    pub(super) fn close_window(&mut self) {
        let seconds = self.now - self.window_from;
        if seconds <= SOON {
            return;
        }
        let (now, before) = (self.outcome.totals, self.window_start);
        let written = now.flush_bytes + now.merge_bytes - before.flush_bytes - before.merge_bytes;
        let levels = &self.tree.shape().levels;
        let window = SimulationWindow {
            rate: (now.writes - before.writes) / seconds,
            runs: (now.run_seconds - before.run_seconds) / seconds,
            level_bytes: levels.iter().map(terrane_policy::Level::size_bytes).collect(),
            level_runs: levels.iter().map(|level| level.runs.len()).collect(),
            value_bytes: self.tree.shape().value_bytes(),
            live_value_bytes: self.tree.shape().live_value_bytes(),
            write_amplification: written / (now.user_bytes - before.user_bytes).max(1.0),
            ..std::mem::replace(&mut self.window, SimulationWindow::default())
        };
        self.outcome.windows.push(window);
        (self.window_from, self.window_start) = (self.now, now);
    }

    /// Returns the results and the tree.
    pub(super) fn end(mut self) -> (SimulationOutcome, SimulatedTree) {
        self.unblock();
        // Drop a short last window: its averages are not representative.
        if self.now - self.window_from > self.setup.window_seconds / 2.0 {
            self.close_window();
        }
        self.outcome.seconds = self.now;
        self.outcome.queued =
            self.arrived.count_at(self.now).map_or(0.0, |all| all - self.departed);
        (self.outcome, self.tree)
    }
}
