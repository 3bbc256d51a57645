//! The inputs of the advice.

use anyhow::{Result, anyhow};
use terrane::Design;
use terrane_policy::advice::{AdviceQuestion, Limits, Objective};
use terrane_policy::memtable_choice::ranking::PrefixSample;
use terrane_sim::MachineModel;

use super::predict::Scenario;
use super::question::{OperationProfile, RecordProfile, prices};
use super::search::{DesignSearch, SearchResult};
use crate::host::progress;
use crate::output::human;

/// The inputs of the advice: a workload, the present design, a machine, an objective and limits.
#[derive(Debug, Clone)]
pub struct AdviceCase {
    /// The workload.
    pub operations: OperationProfile,
    /// The data.
    pub records: RecordProfile,
    /// The present design.
    pub now: Design,
    /// Filter bits per key, on average.
    pub filter_bits: f64,
    /// Bytes of data that fit in memory.
    pub memory: u64,
    /// The costs of operations on the machine.
    pub machine: MachineModel,
    /// The weights of the costs.
    pub objective: Objective,
    /// Limits on the costs.
    pub limits: Limits,
    /// The number of threads that write concurrently.
    pub writers: u32,
    /// The prefixes of the keys, if there is a database.
    pub prefixes: Option<PrefixSample>,
    /// The maximum number of designs to simulate.
    pub effort: usize,
    /// The seed of the simulator.
    pub seed: u64,
}

/// The assumed size of a key, in bytes.
const KEY_BYTES: f64 = 16.0;

impl AdviceCase {
    /// Returns the question by which designs are ranked.
    pub fn question(&self) -> AdviceQuestion {
        AdviceQuestion {
            shares: self.operations.shares,
            record_bytes: self.records.bytes,
            prices: prices(&self.machine, &self.now, self.records, self.memory),
            objective: self.objective,
            limits: self.limits,
        }
    }

    fn world(&self) -> Scenario {
        Scenario {
            records: self.records.count,
            // A database's counters do not separate key bytes from value bytes.
            key_bytes: self.records.bytes.min(KEY_BYTES),
            record_bytes: self.records.bytes,
            skew: self.operations.skew,
            inserts: self.operations.inserts,
            deletes: self.operations.deletes,
            writes: self.operations.shares.writes > 0.0,
            machine: self.machine,
            seed: self.seed,
        }
    }

    /// Searches for designs that are better than the present one.
    ///
    /// # Errors
    ///
    /// If writers never make progress in the present design.
    pub fn search(&self) -> Result<SearchResult> {
        let bar = progress::bar(self.effort as u64, "trying designs");
        let lines = progress::NowAndThen::start();
        let search = DesignSearch {
            question: &self.question(),
            world: &self.world(),
            filter_bits: self.filter_bits,
            rate: self.operations.rate.map(|rate| rate * self.operations.shares.writes),
            effort: self.effort,
        };
        let found = search.run(("now", &self.now), &|count| {
            bar.set_position(count as u64);
            lines.tell(|| format!("tried {}", human::counted(count as u64, "design")));
        });
        bar.finish_and_clear();
        found
            .ok_or_else(|| anyhow!("cannot simulate the present design: its writers stall forever"))
    }
}

/// Returns the filter bits per key of the deepest level of a design, which holds most keys.
pub fn filter_bits_of(design: &Design) -> f64 {
    design.filter_bits.values().last().copied().unwrap_or(10.0)
}
