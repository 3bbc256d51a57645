//! The paper's machine, records and designs.

use anyhow::Result;
use terrane::Design;
use terrane_sim::{
    Arrival, InitialTree, MachineModel, SimulatedTree, Simulation, SimulationOutcome,
    SimulationSetup, Skew, TwoPhases, WriteLoad, initial_tree, two_phases,
};

/// Two memtables in all experiments but bLSM's: one is written to while the other is flushed.
const BUFFERS: &str = "buffer=128MiB; buffers=1; violation=stop";

/// A p99 that is a matter of stalls, and one that is not, in seconds.
pub(super) const LONG: f64 = 5.0;
pub(super) const SHORT: f64 = 1.0;

/// Sizes.
pub(super) struct Setting {
    pub(super) hours: f64,
    pub(super) records: f64,
}

/// Full leveling with a ratio: three levels for the paper's records and a ratio of ten.
pub(super) fn leveling(ratio: u32) -> String {
    format!("leveling T={ratio}; granularity=level; intake=exact; limit=global(2x); {BUFFERS}")
}

/// Full tiering with a ratio. With a ratio of two a level gathers one run, and acts by its size.
pub(super) fn tiering(ratio: u32) -> String {
    format!(
        "tiering T={ratio}; trigger=level-saturation+run-count; intake=exact; limit=global(2x); \
         {BUFFERS}"
    )
}

/// LevelDB's tree (§6.1): four runs of level 0 merge, twelve are too many, one merge at a time.
pub(super) fn partitioned(table: &str, movement: &str) -> String {
    format!(
        "1-leveling T=10; granularity=level,file; L0=4; base=1280MiB; table={table}; \
         movement={movement}; delay=8; stop=12; limit=level0; scheduler=single; {BUFFERS}"
    )
}

impl Setting {
    pub(super) fn seconds(&self) -> f64 {
        self.hours * 3600.0
    }

    pub(super) fn warm_up(&self) -> f64 {
        self.seconds() / 6.0
    }

    pub(super) fn setup(&self, design: &str) -> Result<SimulationSetup> {
        let design: Design = design.parse()?;
        let mut machine =
            MachineModel { budget: Some(100e6), slots: 16, ..MachineModel::default() };
        // Reads are not what is scarce: the budget is of writes.
        machine.device.bytes_per_second = 2e9;
        let workload = WriteLoad {
            records: self.records,
            record_bytes: 1024.0,
            skew: Skew::Uniform,
            arrival: Arrival::Closed,
            writers: 1,
        };
        let window_seconds = (self.seconds() / 60.0).min(30.0);
        Ok(SimulationSetup { window_seconds, ..SimulationSetup::new(design, workload, machine) })
    }

    /// A tree to begin with: loaded where levels move as a whole, and settled, with all levels full,
    /// where they are full most of the time anyway.
    pub(super) fn loaded(&self, setup: &SimulationSetup) -> SimulatedTree {
        let moves_tables = setup.design.strategy.granularity.at(1).tables().is_some();
        initial_tree(
            setup,
            if moves_tables { InitialTree::Settled } else { InitialTree::Loaded },
            1,
        )
    }

    /// Both phases of a design.
    pub(super) fn phases(&self, design: &str) -> Result<TwoPhases> {
        let setup = self.setup(design)?;
        let tree = self.loaded(&setup);
        Ok(two_phases(&setup, &tree, (self.seconds(), self.warm_up()), 0.95))
    }

    /// A design under some arrivals.
    pub(super) fn under(&self, design: &str, arrival: Arrival) -> Result<SimulationOutcome> {
        let mut setup = self.setup(design)?;
        let tree = self.loaded(&setup);
        setup.workload.arrival = arrival;
        Ok(Simulation::new(&setup, tree).run(self.seconds()).0)
    }
}

/// Seconds at which p99 is a matter of a stall.
pub(super) fn p99(outcome: &SimulationOutcome) -> f64 {
    outcome.latencies.quantile(0.99)
}

/// How much rates of windows differ after a time: standard deviation over mean.
pub(super) fn variation(outcome: &SimulationOutcome, from_seconds: f64) -> f64 {
    let length = outcome.seconds / outcome.windows.len().max(1) as f64;
    let skip = (from_seconds / length) as usize;
    let rates: Vec<f64> = outcome.windows.iter().skip(skip).map(|window| window.rate).collect();
    let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    let square = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>();
    (square / rates.len().max(1) as f64).sqrt() / mean.max(1e-9)
}

/// A curve over time, as wide as a table.
pub(super) fn curve(values: impl Iterator<Item = f64>) -> String {
    use crate::sparkline::{sparkline, squeezed};
    let values: Vec<f64> = values.collect();
    let highest = values.iter().copied().fold(0.0, f64::max);
    format!("`{}`", sparkline(&squeezed(&values, 40), highest))
}

/// Headers of [`row`].
pub(super) const HEADERS: [&str; 8] =
    ["", "writes/s", "over time", "stalled", "longest", "runs", "p50", "p99"];

/// A phase in a row of a table.
pub(super) fn row(name: &str, outcome: &SimulationOutcome, rate_from: f64) -> Vec<String> {
    use crate::human::seconds;
    vec![
        name.to_owned(),
        crate::human::number(outcome.rate_from(rate_from)),
        curve(outcome.windows.iter().map(|window| window.rate)),
        seconds(outcome.stalled_seconds(None)),
        seconds(outcome.longest_stall()),
        format!("{:.1}", outcome.mean_runs()),
        seconds(outcome.latencies.quantile(0.5)),
        seconds(p99(outcome)),
    ]
}
