//! The same designs, records, times and budget in the simulator.

use anyhow::Result;
use terrane::Design;
use terrane_sim::{Arrival, Machine, Setup, Simulation, Skew, Start, Workload, begin};

use super::setting::{RECORD_BYTES, Setting};

/// Writes a second in the testing phase of a design.
pub(super) fn greatest_rate(setting: &Setting, design: &str) -> Result<f64> {
    let design: Design = design.parse()?;
    let mut machine =
        Machine { budget: Some(setting.budget() as f64), places: 16, ..Machine::default() };
    // Reads are not what is scarce: the budget is of writes.
    machine.device.bytes_per_second = 2e9;
    let workload = Workload {
        records: setting.records() as f64,
        record_bytes: RECORD_BYTES as f64,
        skew: Skew::Uniform,
        arrival: Arrival::Closed,
        writers: 1,
    };
    let setup =
        Setup { window_seconds: setting.seconds() / 60.0, ..Setup::new(design, workload, machine) };
    let tree = begin(&setup, Start::Loaded, setting.seed);
    let (outcome, _) = Simulation::new(&setup, tree).run(setting.seconds());
    Ok(outcome.rate_from(setting.warm_up()))
}
