//! The same designs, records, times and budget in the simulator.

use anyhow::Result;
use terrane::Design;
use terrane_sim::{
    Arrival, InitialTree, MachineModel, Simulation, SimulationSetup, Skew, WriteLoad, initial_tree,
};

use super::setting::{RECORD_BYTES, Setting};

/// Writes a second in the testing phase of a design.
pub(super) fn greatest_rate(setting: &Setting, design: &str) -> Result<f64> {
    let design: Design = design.parse()?;
    let mut machine = MachineModel {
        budget: Some(setting.budget() as f64),
        slots: 16,
        ..MachineModel::default()
    };
    // Reads are not what is scarce: the budget is of writes.
    machine.device.bytes_per_second = 2e9;
    let workload = WriteLoad {
        records: setting.records() as f64,
        record_bytes: RECORD_BYTES as f64,
        skew: Skew::Uniform,
        arrival: Arrival::Closed,
        writers: 1,
    };
    let setup = SimulationSetup {
        window_seconds: setting.seconds() / 60.0,
        ..SimulationSetup::new(design, workload, machine)
    };
    let tree = initial_tree(&setup, InitialTree::Loaded, setting.seed);
    let (outcome, _) = Simulation::new(&setup, tree).run(setting.seconds());
    Ok(outcome.rate_from(setting.warm_up()))
}
