//! Sizes, counts, threads and the seed of a run.

use crate::distribution::Distribution;
use crate::key::KeyOrder;
use crate::operation_mix::OperationMix;
use crate::value::ValueSize;

/// How a workload is run. The default is the setting of the published comparisons.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOptions {
    /// Keys that are loaded. Default 2,000,000.
    pub num: u64,
    /// Operations of a workload that reads, all threads together; `None` for as many as `num`.
    pub reads: Option<u64>,
    /// Bytes of every key. Default 16.
    pub key_size_bytes: usize,
    /// Bytes of values. Default 100.
    pub value_size: ValueSize,
    /// The share of a value's bytes that repeats earlier ones, 0 to 1. Default 0.5.
    pub compressibility: f64,
    /// How the keys of neighbouring indexes lie to each other; `fillseq` is always ordered.
    pub key_order: KeyOrder,
    /// How keys are chosen; `None` for what the workload is known for.
    pub distribution: Option<Distribution>,
    /// What the workload `mix` does. Keys must have been loaded where it [puts new
    /// ones](OperationMix::placement), which [`key_order`](Self::key_order) says.
    pub mix: OperationMix,
    /// Client threads, which share the operations. Default 1.
    pub threads: u32,
    /// Where all choices come from.
    pub seed: u64,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            num: 2_000_000,
            reads: None,
            key_size_bytes: 16,
            value_size: ValueSize::fixed(100),
            compressibility: 0.5,
            key_order: KeyOrder::Hashed,
            distribution: None,
            mix: OperationMix::default(),
            threads: 1,
            seed: 1,
        }
    }
}

impl RunOptions {
    /// Operations of a workload that reads.
    pub fn operations(&self) -> u64 {
        self.reads.unwrap_or(self.num)
    }
}
