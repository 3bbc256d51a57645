//! One evaluation: the parent's request to a child process, and the child's answer.

use serde::{Deserialize, Serialize};

use crate::settings::Settings;

/// The request to a child process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) engine: String,
    /// An empty folder for the database.
    pub(super) dir: std::path::PathBuf,
    pub(super) records: u64,
    pub(super) value_bytes: usize,
    pub(super) testing_seconds: f64,
    pub(super) warm_up_seconds: f64,
    pub(super) running_seconds: f64,
    /// The fractions of its own maximum at which the engine runs.
    pub(super) utilizations: Vec<f64>,
    /// The maximum of the reference engine; the engine also runs at this rate.
    pub(super) reference_per_second: Option<f64>,
    pub(super) seed: u64,
    pub(super) settings: Settings,
}

/// The answer of a child process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Evaluation {
    /// The writes per second of the testing phase.
    pub(super) maximum_per_second: f64,
    pub(super) testing: Phase,
    /// The results for each utilization, in the order of the request.
    pub(super) runs: Vec<Phase>,
    /// The results at the maximum of the reference engine.
    pub(super) at_reference: Option<Phase>,
}

/// Figures of one phase.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Phase {
    pub(super) offered_per_second: f64,
    pub(super) done_per_second: f64,
    pub(super) write: Micros,
    pub(super) processing: Micros,
    /// The driver's error: how late idle clients started writes.
    pub(super) driver_late: Micros,
    pub(super) slowest_second_share: Option<f64>,
    pub(super) longest_stall_seconds: f64,
    /// The number of writes that were waiting when the phase ended.
    pub(super) unfinished: u64,
    pub(super) is_sustainable: bool,
    /// The criteria that were not met, in words.
    pub(super) not_met: Vec<String>,
    /// The maximum number of sorted runs, if the engine reports it.
    pub(super) runs_max: Option<u64>,
}

/// A latency in microseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Micros {
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
    pub(super) p99_9: f64,
    pub(super) p99_99: f64,
    pub(super) max: f64,
}

impl Evaluation {
    /// Formats a line for the progress display.
    pub(super) fn summary(&self) -> String {
        let mut text = format!("{:>10.0} writes/s at most", self.maximum_per_second);
        for run in self.runs.iter().chain(&self.at_reference) {
            let verdict = if run.is_sustainable { "" } else { " NOT sustainable" };
            text += &format!(
                "; {:.0}/s p99.9 {:.2} ms{verdict}",
                run.offered_per_second,
                run.write.p99_9 / 1e3
            );
        }
        text
    }
}
