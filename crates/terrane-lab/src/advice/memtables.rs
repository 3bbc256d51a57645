//! Which memtable suits the workload: every kind with its expected cost.

use anyhow::Result;
use terrane::Keyspace;
use terrane_policy::MemtableKind;
use terrane_policy::memtable_choice::MemtableOperations;
use terrane_policy::memtable_choice::ranking::{PrefixSample, RankedMemtable, rank_memtables};
use terrane_sim::Skew;

use super::case::AdviceCase;

/// The total number of operations in the mix; only their shares matter.
const OPERATIONS: f64 = 1e6;

/// The number of places to sample in the key space, and the number of keys to read from each.
const PLACES: usize = 64;
const KEYS: usize = 64;

/// The bytes that an entry takes in a memtable beyond its key and value.
const METADATA_BYTES: f64 = 40.0;

/// The memtables for a workload, best first.
#[derive(Debug, Clone, PartialEq)]
pub struct MemtableAdvice {
    /// All kinds.
    pub ranked: Vec<RankedMemtable>,
    /// The present kind and its cost in nanoseconds per operation.
    pub now: (MemtableKind, f64),
}

impl MemtableAdvice {
    /// Returns what the best kind would save per operation, in nanoseconds.
    pub fn saved(&self) -> f64 {
        (self.now.1 - self.ranked.first().map_or(self.now.1, |best| best.nanos)).max(0.0)
    }
}

impl AdviceCase {
    /// Ranks the memtables.
    pub fn memtables(&self) -> MemtableAdvice {
        let present = self.now.memtable;
        let (mix, buffer) = (self.memtable_operations(), self.now.buffer_bytes);
        let (ranked, nanos) = rank_memtables(&mix, buffer, self.prefixes.as_ref(), present);
        MemtableAdvice { ranked, now: (present, nanos) }
    }

    /// Returns the operations that reach a memtable.
    fn memtable_operations(&self) -> MemtableOperations {
        let shares = &self.operations.shares;
        let count = |share: f64| (share * OPERATIONS) as u64;
        let fitting = self.now.buffer_bytes as f64 / (self.records.bytes + METADATA_BYTES);
        let in_memory = (fitting / 2.0 / self.records.count).min(1.0);
        let updates = 1.0 - self.operations.inserts;
        let updated = distinct(self.operations.skew, self.records.count, fitting * updates);
        let distinct = updated / fitting.max(1.0) + self.operations.inserts;
        let scanned = shares.scans * shares.scan_entries * in_memory;
        MemtableOperations {
            writes: count(shares.writes),
            ascending: count(shares.writes / 2.0),
            distinct: count(shares.writes * distinct.min(1.0)),
            written_bytes: (count(shares.writes) as f64 * self.records.bytes) as u64,
            lookups: count(shares.found + shares.missing),
            found: count(shares.found * in_memory),
            scans: count(shares.scans),
            scanned: count(scanned),
            threads: self.writers,
        }
    }
}

/// Estimates the number of distinct keys in `writes` writes to `records` keys.
fn distinct(skew: Skew, records: f64, writes: f64) -> f64 {
    let theta = match skew {
        Skew::Uniform => 0.0,
        Skew::Zipf(theta) => theta,
    };
    // Neighbouring ranks have nearly the same probability, so they are grouped.
    let mut ranges = Vec::new();
    let mut from = 1.0;
    while from <= records {
        let to = (from * 1.1_f64).ceil().max(from + 1.0).min(records + 1.0);
        ranges.push((to - from, ((from + to - 1.0) / 2.0).powf(-theta)));
        from = to;
    }
    let sum: f64 = ranges.iter().map(|(ranks, weight)| ranks * weight).sum();
    let written = |weight: f64| 1.0 - (-writes * weight / sum.max(1e-300)).exp();
    ranges.iter().map(|(ranks, weight)| ranks * written(*weight)).sum()
}

/// Samples the keys of a keyspace: the first keys of tables spread over the key space.
///
/// # Errors
///
/// If a table cannot be read.
pub fn sample(keyspace: &Keyspace, records: f64) -> Result<Option<PrefixSample>> {
    let shape = keyspace.tree().shape;
    let tables: Vec<_> = shape.tables().collect();
    let step = tables.len().div_ceil(PLACES).max(1);
    let mut runs = Vec::new();
    for table in tables.iter().step_by(step) {
        let keys = keyspace.range(table.range.start.to_vec()..)?.take(KEYS);
        let run: terrane::Result<Vec<Vec<u8>>> =
            keys.map(|entry| entry.map(|(key, _)| key.to_vec())).collect();
        runs.push(run?);
    }
    Ok(PrefixSample::of_runs(&runs, records))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skewed_writes_are_of_fewer_keys() {
        let uniform = distinct(Skew::Uniform, 1e6, 1e6);
        assert!((uniform / 632_000.0 - 1.0).abs() < 0.02, "{uniform}");
        let skewed = distinct(Skew::Zipf(0.99), 1e6, 1e6);
        assert!(skewed < uniform / 2.0 && skewed > 1e5, "{skewed}");
        assert!((distinct(Skew::Uniform, 1000.0, 1e6) - 1000.0).abs() < 1.0);
        assert!(distinct(Skew::Uniform, 1e12, 1000.0) > 999.0);
    }
}
