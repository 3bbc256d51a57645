//! The paper's designs and numbers, at the scale of an experiment.

use anyhow::Result;

use super::phase::PhaseMeasurement;
use super::plan::PhasePlan;

/// A size of tables in MiB of the paper, and the authors' greatest rates and p99 latencies in
/// microseconds with round-robin and with choose-best (Fig. 18).
pub(super) struct TableSize {
    pub(super) mebibytes: u32,
    pub(super) rates: [f64; 2],
    pub(super) p99_micros: [f64; 2],
}

pub(super) const TABLE_SIZES: [TableSize; 5] = [
    TableSize { mebibytes: 8, rates: [4224.0, 3972.0], p99_micros: [27_391.0, 66_751.0] },
    TableSize { mebibytes: 64, rates: [4478.0, 4352.0], p99_micros: [35_967.0, 34_207.0] },
    TableSize { mebibytes: 512, rates: [4076.0, 4014.0], p99_micros: [39_023.0, 39_375.0] },
    TableSize {
        mebibytes: 4096,
        rates: [4056.0, 4056.0],
        p99_micros: [17_524_671.0, 15_138_495.0],
    },
    TableSize {
        mebibytes: 32_768,
        rates: [4177.0, 4182.0],
        p99_micros: [1_087_373_311.0, 1_017_373_311.0],
    },
];

/// Size-tiered merges without a trigger, with AsterixDB's limit of fifty runs.
pub(super) const SIZE_TIERED: &str =
    "tiering T=3 L0=3; granularity=run; movement=none; limit=global(50)";

/// The paper's designs and numbers at some scale.
pub(super) trait StabilityScale {
    /// Returns the design of full tiering with a ratio.
    fn tiering(&self, ratio: u32) -> String;
    /// Returns the design of full leveling with a ratio.
    fn leveling(&self, ratio: u32) -> String;
    /// Returns the design of size-tiered merges of 2 to `most` runs.
    fn size_tiered(&self, most: u32) -> String;
    /// Full leveling whose last level is nearly full, because the ratio of level 1 to level 0
    /// differs (§5.2.3).
    fn filled_leveling(&self, ratio: u32) -> String;
    /// `LevelDB`'s tree (§6.1).
    fn partitioned(&self, table_mebibytes: f64, movement: &str) -> String;
    /// `RocksDB`'s tree in a closed loop (Fig. 1).
    fn production(&self, subject: &str) -> PhasePlan;
    /// bLSM (§4.2).
    fn blsm(&self) -> String;
    /// Returns the table sizes of Fig. 18.
    fn table_sizes(&self) -> &'static [TableSize];
    /// Converts MiB of the paper to bytes at this scale.
    fn mebibytes(&self, paper: f64) -> u64;
    /// Converts a rate of the paper to this scale.
    fn rate(&self, paper: f64) -> f64;
    /// Converts a latency of the paper to this scale, in seconds.
    fn latency(&self, paper_seconds: f64) -> f64;
    /// The maximum rate of a design in the simulator; `None` in the simulated experiment.
    fn simulated_rate(&self, design: &str) -> Result<Option<f64>>;
    /// Returns the length of a phase in seconds.
    fn seconds(&self) -> f64;
    /// Returns the percentile that Fig. 11 compares.
    fn tail(&self) -> (&'static str, fn(&PhaseMeasurement) -> f64);
}
