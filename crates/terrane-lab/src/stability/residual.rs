//! The differences between a measured run and its replay in the simulator.

use terrane_sim::SimulationOutcome;

use super::counted::CountedRun;

/// The tolerated differences between replay and run: relative for write amplification, runs and
/// rate; for runs also an absolute number; for the time that writers waited, a share of the run.
const AMPLIFICATION_WITHIN: f64 = 0.1;
const RUNS_WITHIN: f64 = 0.1;
const RUNS_APART: f64 = 1.0;
const HELD_WITHIN: f64 = 0.1;
const RATE_WITHIN: f64 = 0.05;

/// Figures of the run and of its replay.
#[derive(Debug, Clone, Copy)]
pub struct Residual {
    /// Bytes written to tables per byte of user data, on average over the run, measured and replayed.
    pub write_amplification: (f64, f64),
    /// The mean number of runs.
    pub runs: (f64, f64),
    /// The share of the time for which writers were stopped or delayed.
    pub held: (f64, f64),
    /// Completed writes per second.
    pub rate: (f64, f64),
}

/// Returns the difference between two figures, relative to the measured one.
fn difference((measured, replayed): (f64, f64)) -> f64 {
    (replayed / measured.max(1e-9) - 1.0).abs()
}

impl Residual {
    pub(super) fn of(run: &CountedRun, replay: &SimulationOutcome) -> Self {
        let counts = &run.running;
        let (seconds, writers) = (run.seconds.max(1e-9), f64::from(run.writers.max(1)));
        let replayed = replay.stalled_seconds(None) + replay.totals.delayed_seconds / writers;
        let simulated = replay.seconds.max(1e-9);
        Self {
            write_amplification: (
                run.write_amplification,
                // A replay without a write differs from the run by all of its rate, and is no basis.
                replay.totals.mean_write_amplification().unwrap_or(0.0),
            ),
            runs: (run.runs, replay.mean_runs()),
            held: (counts.held_seconds / writers / seconds, replayed / simulated),
            rate: (counts.writes / seconds, replay.totals.writes / simulated),
        }
    }

    /// Returns the distance between replay and run: 1 if one figure differs by exactly its tolerance
    /// and the others do not differ.
    pub(super) fn misfit(&self) -> f64 {
        let runs = (RUNS_WITHIN * self.runs.0).max(RUNS_APART);
        let parts = [
            difference(self.write_amplification) / AMPLIFICATION_WITHIN,
            (self.runs.1 - self.runs.0).abs() / runs,
            (self.held.1 - self.held.0).abs() / HELD_WITHIN,
            difference(self.rate) / RATE_WITHIN,
        ];
        parts.iter().map(|part| part * part).sum()
    }

    /// Returns the figures that differ by more than their tolerance, in words.
    pub fn differences(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut say = |name: &str, (measured, replayed): (f64, f64)| {
            found.push(format!("{name} {measured:.2} measured, {replayed:.2} replayed"));
        };
        if difference(self.write_amplification) > AMPLIFICATION_WITHIN {
            say("write amplification", self.write_amplification);
        }
        if difference(self.runs) > RUNS_WITHIN && (self.runs.0 - self.runs.1).abs() > RUNS_APART {
            say("runs", self.runs);
        }
        if (self.held.0 - self.held.1).abs() > HELD_WITHIN {
            say("share of the time in which writers waited", self.held);
        }
        if difference(self.rate) > RATE_WITHIN {
            say("writes/s", self.rate);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_that_differs_is_no_basis() {
        let close = Residual {
            write_amplification: (4.0, 4.2),
            runs: (8.0, 8.5),
            held: (0.02, 0.0),
            rate: (1000.0, 1001.0),
        };
        assert_eq!(close.differences(), [""; 0]);
        let few = Residual { runs: (1.0, 2.0), ..close };
        assert_eq!(few.differences(), [""; 0]);
        let far = Residual { write_amplification: (4.0, 2.0), held: (0.5, 0.0), ..close };
        let found = far.differences();
        assert!(found.len() == 2 && found[0].contains("4.00 measured, 2.00"), "{found:?}");
    }
}
