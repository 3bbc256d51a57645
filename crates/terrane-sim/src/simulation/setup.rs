//! The input of a simulation.

use terrane_policy::Design;

use crate::machine::MachineModel;
use crate::workload::WriteLoad;

/// The input of a simulation.
#[derive(Debug, Clone)]
pub struct SimulationSetup {
    /// The design of the tree.
    pub design: Design,
    /// The writes.
    pub workload: WriteLoad,
    /// The costs.
    pub machine: MachineModel,
    /// The length of a window, in seconds.
    pub window_seconds: f64,
    /// The maximum number of tables; larger trees get larger tables instead.
    pub tables_max: usize,
    /// An external limit on the rate: from each time on, in seconds, the maximum writes per second.
    pub rate_limits: Vec<(f64, f64)>,
    /// Checks the soundness of every compaction and the invariants of every tree, and records the
    /// completion times of writes. For tests: it takes most of the time.
    pub check: bool,
}

impl SimulationSetup {
    /// Returns a setup with windows of half a minute and without checks.
    pub fn new(design: Design, workload: WriteLoad, machine: MachineModel) -> Self {
        Self {
            design,
            workload,
            machine,
            window_seconds: 30.0,
            tables_max: 20_000,
            rate_limits: Vec::new(),
            check: false,
        }
    }
}
