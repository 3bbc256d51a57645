//! Runs a simulation in parts, and returns the results so far after each.

use super::{Simulation, StopAt};
use crate::outcome::SimulationOutcome;

impl Simulation<'_> {
    /// Runs until `seconds` after the start, and returns the results so far. They lack an
    /// unfinished stall and the last window. Another call continues the run.
    pub(crate) fn run_until(&mut self, seconds: f64) -> &SimulationOutcome {
        self.goal = StopAt::Time(seconds);
        self.play();
        self.outcome.seconds = self.now;
        let arrived = self.arrived.count_at(self.now);
        self.outcome.queued = arrived.map_or(0.0, |all| all - self.departed);
        &self.outcome
    }
}
