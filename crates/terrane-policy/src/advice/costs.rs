//! What a design costs under a workload, and the time that an operation takes by that.
//!
//! The model is that of the papers that compare designs by input and output: a write costs the bytes
//! that it makes the tree read and write, in sequence; a lookup the blocks that it looks into, at
//! random; a range a block of each run, and then its entries. Processor time stands beside each,
//! so that a tree that is in memory is not free.

use crate::design::Design;

/// What there is to be done, as parts of all operations that add up to one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Shares {
    /// Puts and deletes.
    pub writes: f64,
    /// Lookups of keys that are there.
    pub found: f64,
    /// Lookups of keys that are not.
    pub missing: f64,
    /// Scans.
    pub scans: f64,
    /// Entries that a scan reads, on average.
    pub scan_entries: f64,
}

/// What a design costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// Bytes written to tables, for each byte that the user writes: write amplification.
    pub written: f64,
    /// Bytes that compactions read, for each byte that the user writes.
    pub merged: f64,
    /// Data blocks that a lookup of a key that is there looks into.
    pub found_blocks: f64,
    /// Data blocks that a lookup of a key that is not there looks into.
    pub missing_blocks: f64,
    /// Sorted runs, each of which a scan has to ask.
    pub runs: f64,
    /// Bytes of tables for each byte of valid data.
    pub space: f64,
    /// The part of the time for which writers are held up at the rate asked for; `None` if that
    /// was not looked at.
    pub stalled: Option<f64>,
    /// The latency that 99 % of writes do not exceed at that rate, in seconds.
    pub p99_seconds: Option<f64>,
}

/// What things take, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// A write into log and memtable.
    pub write: f64,
    /// An entry of a flush or a merge, by processor time.
    pub merge_entry: f64,
    /// A byte that flushes and merges read or write.
    pub byte: f64,
    /// A data block that a lookup reads, hits of caches averaged in.
    pub block: f64,
    /// A run that a lookup asks: its range and its filter.
    pub run: f64,
    /// An entry of a scan.
    pub scan_entry: f64,
}

/// The time that operations take, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times {
    /// A write, with its part of all flushes and merges.
    pub write: f64,
    /// A lookup, of a key that is there or not as the workload has them.
    pub lookup: f64,
    /// A scan.
    pub scan: f64,
}

impl Shares {
    /// Parts of one; `None` if there is nothing.
    pub fn new([writes, found, missing, scans]: [f64; 4], scan_entries: f64) -> Option<Self> {
        let sum = writes + found + missing + scans;
        let part = |share: f64| share / sum;
        (sum > 0.0).then(|| Self {
            writes: part(writes),
            found: part(found),
            missing: part(missing),
            scans: part(scans),
            scan_entries,
        })
    }

    /// All lookups of single keys.
    pub fn lookups(&self) -> f64 {
        self.found + self.missing
    }
}

impl Costs {
    /// Data blocks of a lookup, of keys that are there or not in the proportion of the workload;
    /// of those that are there where it has no lookups.
    pub fn lookup_blocks(&self, shares: &Shares) -> f64 {
        let lookups = shares.lookups();
        if lookups <= 0.0 {
            return self.found_blocks;
        }
        (shares.found * self.found_blocks + shares.missing * self.missing_blocks) / lookups
    }

    /// What reading costs in a tree of levels with so many runs and bytes each: the data blocks of a
    /// lookup of a key that is there and of one that is not, and runs.
    ///
    /// A key that is there is where the bytes are, and a lookup asks every newer run before.
    pub fn of_levels(design: &Design, levels: &[(f64, f64)]) -> (f64, f64, f64) {
        let last = levels.iter().rposition(|(_, bytes)| *bytes > 0.0).unwrap_or(0);
        let total: f64 = levels.iter().map(|(_, bytes)| bytes).sum();
        let (mut above, mut found, mut runs) = (0.0, 1.0, 0.0);
        for (level, &(count, bytes)) in levels.iter().enumerate() {
            let bits = design.filter_bits_at(level, last);
            let rate = crate::allocation::false_positive_rate(bits).min(1.0);
            // Half of the other runs of its own level are newer.
            let newer = above + (count - 1.0).max(0.0) / 2.0 * rate;
            found += bytes / total.max(1.0) * newer;
            above += count * rate;
            runs += count;
        }
        (found, above, runs)
    }
}

impl Times {
    /// What costs come to.
    pub fn of(costs: &Costs, shares: &Shares, record_bytes: f64, prices: &Prices) -> Self {
        let moved = record_bytes * (costs.written + costs.merged);
        let write = prices.write + prices.merge_entry * (1.0 + costs.merged) + prices.byte * moved;
        let lookup = prices.run * costs.runs + prices.block * costs.lookup_blocks(shares);
        // What is out of date is passed over, and each run is opened at a block of its own.
        let scan = (prices.run + prices.block) * costs.runs
            + prices.scan_entry * shares.scan_entries * costs.space;
        Self { write, lookup, scan }
    }
}
