//! Reports for tests: both phases on an in-memory map, each long enough for a thread to be
//! scheduled on a busy machine.

use std::time::Duration;

use terrane_workload::stability::{Arrival, TwoPhaseOptions, TwoPhaseReport, Unwatched, evaluate};
use terrane_workload::{RunOptions, ValueSize};

use super::subject::MapSubject;

/// Returns the report for writes that arrive as given.
pub(super) fn report(arrival: Arrival) -> TwoPhaseReport {
    let run = RunOptions { num: 100, value_size: ValueSize::fixed(10), ..RunOptions::default() };
    let options = TwoPhaseOptions {
        testing: Duration::from_millis(500),
        running: Duration::from_millis(300),
        warm_up: Duration::ZERO,
        utilization: 0.1,
        arrival,
        run: run.clone(),
        ..TwoPhaseOptions::default()
    };
    evaluate(&mut MapSubject::load(&run).unwrap(), &options, &|_| Box::new(Unwatched)).unwrap()
}
