//! The paper's sizes, times and designs, scaled down.

use std::time::Duration;

use anyhow::Result;
use terrane_workload::{Distribution, RunOptions, ValueSize};

use super::simulator;
use crate::experiments::stability::phase::PhaseMeasurement;
use crate::experiments::stability::plan::PhasePlan;
use crate::experiments::stability::scale::{SIZE_TIERED, StabilityScale, TABLE_SIZES, TableSize};

/// The paper's sizes (§3.1).
const PAPER_BUFFER_BYTES: f64 = 134_217_728.0;
const PAPER_BUDGET: f64 = 100e6;
const PAPER_SECONDS: f64 = 7200.0;

/// The bytes per second that the flushes and merges of a database may write, at every scale.
const BUDGET: u64 = 2_000_000;
/// The size of a memtable at a scale of 1.
const BUFFER_BYTES: f64 = 196_608.0;
const SECONDS: f64 = 240.0;
/// The number of memtables that all records would fill. The paper's 780 memtables give the same
/// number of levels.
const MEMTABLES: f64 = 600.0;
/// Sizes stop shrinking at this scale: smaller tables would be mostly headers.
const SIZES_LEAST: f64 = 1.0 / 32.0;

pub(super) const KEY_BYTES: usize = 16;
pub(super) const RECORD_BYTES: usize = 1024;

/// Latencies below this many seconds of the paper are short in the paper's figures.
const SHORT_SECONDS: f64 = 5.0;

/// The scale and the seed of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct StabilitySizes {
    pub(super) scale: f64,
    pub(super) rounds: usize,
    pub(super) seed: u64,
}

impl StabilitySizes {
    fn sizes(&self) -> f64 {
        self.scale.max(SIZES_LEAST)
    }

    pub(super) fn budget(&self) -> u64 {
        BUDGET
    }

    pub(super) fn buffer_bytes(&self) -> u64 {
        (BUFFER_BYTES * self.sizes()) as u64
    }

    pub(super) fn records(&self) -> u64 {
        (MEMTABLES * self.buffer_bytes() as f64 / RECORD_BYTES as f64) as u64
    }

    pub(super) fn data_bytes(&self) -> f64 {
        self.records() as f64 * RECORD_BYTES as f64
    }

    pub(super) fn warm_up(&self) -> f64 {
        self.seconds() / 6.0
    }

    /// Returns the ratio of the paper's time to write a memtable to ours.
    pub(super) fn speed_up(&self) -> f64 {
        let here = self.buffer_bytes() as f64 / self.budget() as f64;
        PAPER_BUFFER_BYTES / PAPER_BUDGET / here
    }

    /// Returns the latency in seconds above which latencies come from stalls.
    pub(super) fn short(&self) -> f64 {
        SHORT_SECONDS / self.speed_up()
    }

    /// Returns the options of the records that are loaded and updated.
    pub(super) fn run(&self, is_skewed: bool) -> RunOptions {
        let skewed = Distribution::Zipf { theta: 0.99 };
        RunOptions {
            num: self.records(),
            key_size_bytes: KEY_BYTES,
            value_size: ValueSize::fixed(RECORD_BYTES - KEY_BYTES),
            distribution: Some(if is_skewed { skewed } else { Distribution::Uniform }),
            seed: self.seed,
            ..RunOptions::default()
        }
    }

    /// Returns the settings for two memtables, and for writers that continue until they must stop.
    fn buffers(&self) -> String {
        format!("buffer={}; buffers=1; violation=stop", self.buffer_bytes())
    }

    /// Returns the number of levels of full leveling or tiering with a ratio.
    fn levels(ratio: u32) -> u32 {
        (MEMTABLES.ln() / f64::from(ratio).ln()).ceil() as u32
    }
}

impl StabilityScale for StabilitySizes {
    /// With a ratio of two a level gathers one run, and compacts by its size.
    fn tiering(&self, ratio: u32) -> String {
        format!(
            "tiering T={ratio}; trigger=level-saturation+run-count; intake=exact; \
             limit=global(2x); {}",
            self.buffers()
        )
    }

    /// At most twice as many runs as levels (§5.1.1).
    fn leveling(&self, ratio: u32) -> String {
        let runs = 2 * Self::levels(ratio);
        format!(
            "leveling T={ratio}; granularity=level; intake=exact; limit=global({runs}); {}",
            self.buffers()
        )
    }

    fn size_tiered(&self, most: u32) -> String {
        format!("{SIZE_TIERED}; trigger=concurrent(2,{most},1.2); {}", self.buffers())
    }

    fn filled_leveling(&self, ratio: u32) -> String {
        let mut base = self.data_bytes() * 1.05;
        while base > self.buffer_bytes() as f64 * f64::from(ratio) * 1.5 {
            base /= f64::from(ratio);
        }
        format!("{}; base={}", self.leveling(ratio), base as u64)
    }

    /// Four runs of level 0 start a merge, twelve stop writers, and one merge runs at a time.
    fn partitioned(&self, table_mebibytes: f64, movement: &str) -> String {
        format!(
            "1-leveling T=10; granularity=level,file; L0=4; base={}; table={}; \
             movement={movement}; delay=8; stop=12; limit=level0; scheduler=single; {}",
            self.mebibytes(1280.0),
            self.mebibytes(table_mebibytes),
            self.buffers()
        )
    }

    fn production(&self, subject: &str) -> PhasePlan {
        let [base, memtable] = [256.0, 64.0].map(|paper| self.mebibytes(paper));
        let design = format!(
            "1-leveling T=10; granularity=level,file; L0=4; base={base}; buffer={memtable}; \
             buffers=1; table={memtable}; delay=20; stop=36; violation=slow-down",
        );
        PhasePlan::testing(subject, design)
    }

    /// A memtable of 1 GB, a ratio of ten, at most two runs a level (§4.2).
    fn blsm(&self) -> String {
        format!(
            "leveling T=10; granularity=level; intake=exact; buffer={}; buffers=1; \
             limit=local(2x); violation=slow-down; scheduler=gear",
            self.mebibytes(1024.0)
        )
    }

    /// Omits the smallest size: 12 KiB here would be a dozen records per table, and ten thousand
    /// files.
    fn table_sizes(&self) -> &'static [TableSize] {
        &TABLE_SIZES[1..]
    }

    fn mebibytes(&self, paper: f64) -> u64 {
        let bytes = paper * f64::from(1 << 20) / PAPER_BUFFER_BYTES * self.buffer_bytes() as f64;
        bytes as u64
    }

    /// Scales a rate of the paper by the ratio of the I/O budgets.
    fn rate(&self, paper: f64) -> f64 {
        paper * self.budget() as f64 / PAPER_BUDGET
    }

    fn latency(&self, paper_seconds: f64) -> f64 {
        paper_seconds / self.speed_up()
    }

    fn simulated_rate(&self, design: &str) -> Result<Option<f64>> {
        simulator::greatest_rate(self, design).map(Some)
    }

    fn seconds(&self) -> f64 {
        SECONDS * self.scale
    }

    fn tail(&self) -> (&'static str, fn(&PhaseMeasurement) -> f64) {
        ("p99", |measurement| measurement.p99)
    }
}

/// The number of memtables that the budget can write in a phase of the paper.
pub(super) const PAPER_MEMTABLES: f64 = PAPER_SECONDS * PAPER_BUDGET / PAPER_BUFFER_BYTES;

/// Converts seconds to a time of at least a millisecond.
pub(super) fn time(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.max(1e-3))
}
