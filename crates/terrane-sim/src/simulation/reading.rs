//! Reads that share the device with flushes and merges.
//!
//! Reads arrive in proportion to writes. A lookup reads the blocks that the design's filters let
//! through; a scan reads a block of each run and then the blocks of its entries. The share of these
//! blocks that is not in memory comes from the device, one request each. Their latencies are not
//! simulated.

use terrane_policy::advice::DesignCosts;

use super::{Simulation, StopAt};
use crate::machine::DeviceReads;

impl Simulation<'_> {
    /// Computes the number of read requests that accompany one write, for the current tree.
    pub(super) fn reads_per_write(&self, at: usize) -> f64 {
        let workload = &self.setup.workload;
        let reads = &workload.reads;
        if reads.cold <= 0.0 || self.goal == StopAt::Loaded {
            return 0.0;
        }
        let tree = &self.trees[at];
        let (design, levels) = (tree.design, &tree.tree.shape().levels);
        let levels: Vec<(f64, f64)> = levels
            .iter()
            .map(|level| (level.runs.len() as f64, level.size_bytes() as f64))
            .collect();
        let (found, missing, runs) = DesignCosts::of_levels(design, &levels);
        let value = (workload.record_bytes - workload.key_bytes).max(0.0);
        let separated = if design.values.is_separated(value as u64) { 1.0 } else { 0.0 };
        let in_table = if separated > 0.0 { workload.key_bytes } else { workload.record_bytes };
        let entries_per_block = (f64::from(design.block_bytes) / in_table).max(1.0);
        let scan = runs + reads.scan_entries * (1.0 / entries_per_block + separated);
        reads.cold
            * (reads.gets * (found + separated) + reads.missing * missing + reads.scans * scan)
    }

    /// Returns the load of reads on the device while this many writes complete each second.
    pub(super) fn device_reads(&self, writes_per_second: f64) -> DeviceReads {
        let mut reads = DeviceReads::default();
        for tree in &self.trees {
            let requests = tree.requests_per_write * tree.share * writes_per_second;
            reads.requests_per_second += requests;
            reads.bytes_per_second += requests * f64::from(tree.design.block_bytes);
        }
        reads
    }
}
