//! Sizes, counts, threads and the seed of a run.

use crate::distribution::Distribution;
use crate::key::KeyOrder;
use crate::operation_mix::OperationMix;
use crate::value::ValueSize;

/// The parameters of a run. The defaults are those of the published comparisons.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOptions {
    /// The number of loaded keys. Default 2,000,000.
    pub num: u64,
    /// The number of operations of a workload that reads, over all threads; `None` means `num`.
    pub reads: Option<u64>,
    /// The size of every key, in bytes. Default 16.
    pub key_size_bytes: usize,
    /// The size of values, in bytes. Default 100.
    pub value_size: ValueSize,
    /// The fraction of a value's bytes that repeat earlier bytes, from 0 to 1. Default 0.5.
    pub compressibility: f64,
    /// How key order relates to index order; `fillseq` always has ordered keys.
    pub key_order: KeyOrder,
    /// The distribution of key choices; `None` for the default of the workload.
    pub distribution: Option<Distribution>,
    /// The operations of the workload `mix`. The loaded keys must have the placement of [its
    /// inserts](OperationMix::placement), stated by [`key_order`](Self::key_order).
    pub mix: OperationMix,
    /// The number of client threads, which share the operations. Default 1.
    pub threads: u32,
    /// The seed of all random choices.
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
    /// Returns the number of operations of a workload that reads.
    pub fn operations(&self) -> u64 {
        self.reads.unwrap_or(self.num)
    }
}
