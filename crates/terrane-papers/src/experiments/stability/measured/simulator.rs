//! The same designs, records, times and budget in the simulator.

use anyhow::Result;
use terrane::Design;
use terrane_sim::{
    Arrival, InitialTree, MachineModel, ReadLoad, Simulation, SimulationSetup, Skew, WriteLoad,
    WriteMix, initial_tree,
};

use super::sizes::{RECORD_BYTES, StabilitySizes};
use crate::experiments::stability::scale::StabilityScale;

/// Returns the writes per second in the testing phase of a design.
pub(super) fn greatest_rate(sizes: &StabilitySizes, design: &str) -> Result<f64> {
    let design: Design = design.parse()?;
    let mut machine =
        MachineModel { budget: Some(sizes.budget() as f64), slots: 16, ..MachineModel::default() };
    // The budget limits writes; reads are not scarce.
    machine.device.bytes_per_second = 2e9;
    let workload = WriteLoad {
        records: sizes.records() as f64,
        key_bytes: 16.0,
        record_bytes: RECORD_BYTES as f64,
        skew: Skew::Uniform,
        arrival: Arrival::Closed,
        writers: 1,
        mix: WriteMix::default(),
        reads: ReadLoad::default(),
    };
    let setup = SimulationSetup {
        window_seconds: sizes.seconds() / 60.0,
        ..SimulationSetup::new(design, workload, machine)
    };
    let tree = initial_tree(&setup, InitialTree::Loaded, sizes.seed);
    let (outcome, _) = Simulation::new(&setup, tree).run(sizes.seconds());
    Ok(outcome.rate_from(sizes.warm_up()))
}
