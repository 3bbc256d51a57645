//! Sizes, times and designs: the paper's, smaller.

use std::time::Duration;

use terrane_workload::{Distribution, RunOptions, ValueSize};

/// Of the paper (§3.1).
const PAPER_BUFFER_BYTES: f64 = 134_217_728.0;
const PAPER_BUDGET: f64 = 100e6;
const PAPER_SECONDS: f64 = 7200.0;

/// Bytes that flushes and merges of a database may write in a second, at every scale.
const BUDGET: u64 = 2_000_000;
/// At a scale of 1.
const BUFFER_BYTES: f64 = 196_608.0;
const SECONDS: f64 = 240.0;
/// Records over those of a memtable. The paper has 780; these have as many levels.
const MEMTABLES: f64 = 600.0;
/// Sizes go no further down with the scale than this: tables would be headers and little else.
const SIZES_LEAST: f64 = 1.0 / 32.0;

pub(super) const KEY_BYTES: usize = 16;
pub(super) const RECORD_BYTES: usize = 1024;

/// Latencies below it are short in the paper's figures, in its seconds.
const SHORT_SECONDS: f64 = 5.0;

/// Sizes, and where choices come from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub(super) scale: f64,
    pub(super) rounds: usize,
    pub(super) seed: u64,
}

impl Setting {
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

    /// How long a phase is.
    pub(super) fn seconds(&self) -> f64 {
        SECONDS * self.scale
    }

    pub(super) fn warm_up(&self) -> f64 {
        self.seconds() / 6.0
    }

    /// Times as quick as in the paper is the writing of a memtable.
    pub(super) fn quicker(&self) -> f64 {
        let here = self.buffer_bytes() as f64 / self.budget() as f64;
        PAPER_BUFFER_BYTES / PAPER_BUDGET / here
    }

    /// Latencies that are a matter of stalls are longer than this, in seconds.
    pub(super) fn short(&self) -> f64 {
        SHORT_SECONDS / self.quicker()
    }

    /// Writes a second here for those of the paper.
    pub(super) fn rate(&self, paper: f64) -> f64 {
        paper * self.budget() as f64 / PAPER_BUDGET
    }

    /// A time of the paper's phases as the same share of those here.
    pub(super) fn share_of_phase(&self, paper_seconds: f64) -> f64 {
        paper_seconds / PAPER_SECONDS * self.seconds()
    }

    /// Bytes here for so many MiB of the paper.
    pub(super) fn mebibytes(&self, paper: f64) -> u64 {
        let bytes = paper * f64::from(1 << 20) / PAPER_BUFFER_BYTES * self.buffer_bytes() as f64;
        bytes as u64
    }

    /// What is loaded and written.
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

    /// Two memtables, and writers that go on until they may not.
    pub(super) fn buffers(&self) -> String {
        format!("buffer={}; buffers=1; violation=stop", self.buffer_bytes())
    }

    /// Levels of full leveling or tiering with a ratio.
    pub(super) fn levels(ratio: u32) -> u32 {
        (MEMTABLES.ln() / f64::from(ratio).ln()).ceil() as u32
    }

    /// Full leveling with a ratio. There may be twice as many runs as levels (§5.1.1).
    pub(super) fn leveling(&self, ratio: u32) -> String {
        let runs = 2 * Self::levels(ratio);
        format!(
            "leveling T={ratio}; granularity=level; intake=exact; limit=global({runs}); {}",
            self.buffers()
        )
    }

    /// Full tiering with a ratio. With a ratio of two a level gathers one run, and acts by its size.
    pub(super) fn tiering(&self, ratio: u32) -> String {
        format!(
            "tiering T={ratio}; trigger=level-saturation+run-count; intake=exact; \
             limit=global(2x); {}",
            self.buffers()
        )
    }

    /// `LevelDB`'s tree (§6.1): four runs of level 0 merge, twelve are too many, one merge at a time.
    pub(super) fn partitioned(&self, table_mebibytes: f64, movement: &str) -> String {
        format!(
            "1-leveling T=10; granularity=level,file; L0=4; base={}; table={}; \
             movement={movement}; delay=8; stop=12; limit=level0; scheduler=single; {}",
            self.mebibytes(1280.0),
            self.mebibytes(table_mebibytes),
            self.buffers()
        )
    }
}

/// Seconds as a time.
pub(super) fn time(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.max(1e-3))
}
