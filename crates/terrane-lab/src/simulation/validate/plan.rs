//! The workload of a comparison, and its set-up in the simulator.

use terrane::Design;
use terrane_sim::{
    Arrival, Device, MachineModel, ReadLoad, SimulationSetup, Skew, WriteLoad, WriteMix,
};

use crate::simulation::calibrate;

/// The workload of a comparison.
pub(super) struct ValidationPlan {
    pub(super) records: u64,
    pub(super) writes: u64,
    pub(super) record_bytes: usize,
    pub(super) skew: Skew,
    pub(super) mix: WriteMix,
    pub(super) seed: u64,
}

impl ValidationPlan {
    /// Returns updates of records with this many bytes together.
    pub(super) fn updates(data_bytes: u64, record_bytes: usize, skew: Skew, seed: u64) -> Self {
        let (records, mix) = (data_bytes / record_bytes as u64, WriteMix::default());
        Self { records, writes: 0, record_bytes, skew, mix, seed }
    }
}

/// A device so fast that its cost is negligible.
pub(super) fn fast_device() -> Device {
    Device { bytes_per_second: 1e15, request_seconds: 0.0, request_bytes: 1e6, concurrency: 1 }
}

/// Returns the set-up of a simulation with one writer.
pub(super) fn setup(
    plan: &ValidationPlan,
    design: &Design,
    machine: MachineModel,
    arrival: Arrival,
) -> SimulationSetup {
    let workload = WriteLoad {
        records: plan.records as f64,
        key_bytes: calibrate::KEY_BYTES as f64,
        record_bytes: plan.record_bytes as f64,
        skew: plan.skew,
        arrival,
        writers: 1,
        mix: plan.mix,
        reads: ReadLoad::default(),
    };
    SimulationSetup {
        window_seconds: 0.05,
        ..SimulationSetup::new(design.clone(), workload, machine)
    }
}
