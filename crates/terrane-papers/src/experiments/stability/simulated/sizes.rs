//! The paper's machine, records and designs.

use anyhow::Result;
use terrane::Design;
use terrane_sim::{
    Arrival, InitialTree, MachineModel, ReadLoad, SimulatedTree, SimulationSetup, Skew, WriteLoad,
    WriteMix, initial_tree,
};

use crate::experiments::stability::phase::PhaseMeasurement;
use crate::experiments::stability::plan::PhasePlan;
use crate::experiments::stability::scale::{SIZE_TIERED, StabilityScale, TABLE_SIZES, TableSize};

/// Two memtables in all experiments except bLSM's: one takes writes while the other is flushed.
const BUFFERS: &str = "buffer=128MiB; buffers=1; violation=stop";

/// The bytes of a memtable, and of a record in a table.
const BUFFER_BYTES: f64 = 128.0 * (1 << 20) as f64;
const RECORD_BYTES: f64 = 1050.0;

/// The length of a phase and the records of the tree.
pub(super) struct SimulatedSizes {
    pub(super) hours: f64,
    pub(super) records: f64,
}

impl SimulatedSizes {
    pub(super) fn warm_up(&self) -> f64 {
        self.seconds() / 6.0
    }

    /// Returns the levels below level 0 of leveling with a ratio.
    pub(super) fn levels(&self, ratio: u32) -> u32 {
        let flushes = self.records * RECORD_BYTES / BUFFER_BYTES;
        flushes.log(f64::from(ratio)).ceil().max(1.0) as u32
    }

    pub(super) fn setup(&self, design: &str) -> Result<SimulationSetup> {
        let design: Design = design.parse()?;
        let mut machine =
            MachineModel { budget: Some(100e6), slots: 16, ..MachineModel::default() };
        // The budget limits writes; reads are not scarce.
        machine.device.bytes_per_second = 2e9;
        let workload = WriteLoad {
            records: self.records,
            key_bytes: 16.0,
            record_bytes: 1024.0,
            skew: Skew::Uniform,
            arrival: Arrival::Closed,
            writers: 1,
            mix: WriteMix::default(),
            reads: ReadLoad::default(),
        };
        let window_seconds = (self.seconds() / 60.0).min(30.0);
        Ok(SimulationSetup { window_seconds, ..SimulationSetup::new(design, workload, machine) })
    }

    /// Returns the tree to start from: loaded if its levels move as a whole, else settled with all
    /// levels full, because they are full most of the time.
    pub(super) fn loaded(&self, setup: &SimulationSetup) -> SimulatedTree {
        let moves_tables = setup.design.strategy.granularity.at(1).tables().is_some();
        let tree = if moves_tables { InitialTree::Settled } else { InitialTree::Loaded };
        initial_tree(setup, tree, 1)
    }
}

impl StabilityScale for SimulatedSizes {
    /// With a ratio of two a level gathers one run, and compacts by its size.
    fn tiering(&self, ratio: u32) -> String {
        format!(
            "tiering T={ratio}; trigger=level-saturation+run-count; intake=exact; \
             limit=global(2x); {BUFFERS}"
        )
    }

    /// Three levels for the paper's records and a ratio of ten.
    fn leveling(&self, ratio: u32) -> String {
        format!("leveling T={ratio}; granularity=level; intake=exact; limit=global(2x); {BUFFERS}")
    }

    fn size_tiered(&self, most: u32) -> String {
        format!("{SIZE_TIERED}; trigger=concurrent(2,{most},1.2); {BUFFERS}")
    }

    fn filled_leveling(&self, ratio: u32) -> String {
        let mut base = self.records * RECORD_BYTES * 1.02;
        while base > BUFFER_BYTES * f64::from(ratio) * 1.5 {
            base /= f64::from(ratio);
        }
        format!("{}; base={}", self.leveling(ratio), base as u64)
    }

    /// Four runs of level 0 start a merge, twelve stop writers, and one merge runs at a time.
    fn partitioned(&self, table_mebibytes: f64, movement: &str) -> String {
        format!(
            "1-leveling T=10; granularity=level,file; L0=4; base=1280MiB; \
             table={table_mebibytes}MiB; movement={movement}; delay=8; stop=12; limit=level0; \
             scheduler=single; {BUFFERS}"
        )
    }

    fn production(&self, subject: &str) -> PhasePlan {
        let design = "1-leveling T=10; granularity=level,file; L0=4; base=256MiB; buffer=64MiB; \
                      buffers=1; table=64MiB; delay=20; stop=36; violation=slow-down";
        PhasePlan { has_warm_up: false, ..PhasePlan::testing(subject, design) }
    }

    /// 1 GB of memory, split between the active and the immutable memtable; a ratio of ten, at most
    /// two runs per level (§4.2).
    fn blsm(&self) -> String {
        "blsm-spring; buffer=512MiB".to_owned()
    }

    fn table_sizes(&self) -> &'static [TableSize] {
        &TABLE_SIZES
    }

    fn mebibytes(&self, paper: f64) -> u64 {
        (paper * f64::from(1 << 20)) as u64
    }

    fn rate(&self, paper: f64) -> f64 {
        paper
    }

    fn latency(&self, paper_seconds: f64) -> f64 {
        paper_seconds
    }

    fn simulated_rate(&self, _: &str) -> Result<Option<f64>> {
        Ok(None)
    }

    fn seconds(&self) -> f64 {
        self.hours * 3600.0
    }

    fn tail(&self) -> (&'static str, fn(&PhaseMeasurement) -> f64) {
        ("p99.9", |measurement| measurement.p99_9)
    }
}
