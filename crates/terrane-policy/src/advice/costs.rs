//! What a design costs under a workload, and how long operations take at these costs.
//!
//! The model follows the papers that compare designs by I/O: a write costs the sequential bytes
//! that it makes the tree read and write; a lookup costs the random blocks that it reads; a range
//! scan costs a block per run and then the entries that it returns. Each operation also takes
//! processor time, so that a tree in memory is not free.

use crate::design::Design;

/// The operations of a workload, as fractions of all operations that add up to one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct OperationShares {
    /// Puts and deletes.
    pub writes: f64,
    /// Lookups of existing keys.
    pub found: f64,
    /// Lookups of missing keys.
    pub missing: f64,
    /// Scans.
    pub scans: f64,
    /// Entries that a scan reads, on average.
    pub scan_entries: f64,
}

/// The costs of a design under a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DesignCosts {
    /// Bytes written to tables and value files per byte that the user writes: write amplification.
    pub written: f64,
    /// Bytes that compactions read per byte that the user writes.
    pub merged: f64,
    /// Data blocks that a lookup of an existing key reads.
    pub found_blocks: f64,
    /// Data blocks that a lookup of a missing key reads.
    pub missing_blocks: f64,
    /// Values that a lookup of an existing key, or each entry of a scan, reads from value files; 0
    /// if values are inline.
    pub value_reads: f64,
    /// The number of sorted runs; a scan reads every run.
    pub runs: f64,
    /// Bytes that tables and value files take per byte of live data.
    pub space: f64,
    /// The fraction of time for which writers are stalled at the requested rate; `None` if it was
    /// not measured.
    pub stalled: Option<f64>,
    /// The 99th percentile of write latency at the requested rate, in seconds.
    pub p99_seconds: Option<f64>,
}

/// The time that each step of an operation takes, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// A write into the log and the memtable.
    pub write: f64,
    /// The processor time that a flush or a merge spends on an entry.
    pub merge_entry: f64,
    /// A byte that a flush or a merge reads or writes.
    pub byte: f64,
    /// A data block that a lookup reads, averaged over cache hits and misses.
    pub block: f64,
    /// A run whose range and filter a lookup checks.
    pub run: f64,
    /// An entry that a scan reads.
    pub scan_entry: f64,
}

/// The time that each kind of operation takes, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OperationTimes {
    /// A write, with its share of all flushes and merges.
    pub write: f64,
    /// A lookup, averaged over existing and missing keys as in the workload.
    pub lookup: f64,
    /// A scan.
    pub scan: f64,
}

impl OperationShares {
    /// Returns each operation as a fraction of the total; `None` if the total is zero.
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

    /// Returns the fraction of operations that are lookups.
    pub fn lookups(&self) -> f64 {
        self.found + self.missing
    }
}

impl DesignCosts {
    /// Returns the data blocks that a lookup reads, averaged over existing and missing keys as in
    /// the workload. If the workload has no lookups, it returns the blocks for existing keys.
    pub fn lookup_blocks(&self, shares: &OperationShares) -> f64 {
        let lookups = shares.lookups();
        if lookups <= 0.0 {
            return self.found_blocks;
        }
        (shares.found * self.found_blocks + shares.missing * self.missing_blocks) / lookups
    }

    /// Returns the cost of reads in a tree whose levels have these numbers of runs and bytes: the
    /// data blocks per lookup of an existing key and of a missing key, and the number of runs.
    ///
    /// A lookup finds an existing key in a level with a probability proportional to the level's
    /// bytes, after checking every newer run.
    pub fn of_levels(design: &Design, levels: &[(f64, f64)]) -> (f64, f64, f64) {
        let last = levels.iter().rposition(|(_, bytes)| *bytes > 0.0).unwrap_or(0);
        let total: f64 = levels.iter().map(|(_, bytes)| bytes).sum();
        let (mut above, mut found, mut runs) = (0.0, 1.0, 0.0);
        for (level, &(count, bytes)) in levels.iter().enumerate() {
            let bits = design.filter_bits_at(level, last);
            let rate = crate::allocation::false_positive_rate(bits).min(1.0);
            // On average, half of the other runs in the level of the key are newer.
            let newer = above + (count - 1.0).max(0.0) / 2.0 * rate;
            found += bytes / total.max(1.0) * newer;
            above += count * rate;
            runs += count;
        }
        (found, above, runs)
    }
}

impl OperationTimes {
    /// Returns how long operations take at these costs and prices.
    pub fn of(
        costs: &DesignCosts,
        shares: &OperationShares,
        record_bytes: f64,
        prices: &Prices,
    ) -> Self {
        let moved = record_bytes * (costs.written + costs.merged);
        let write = prices.write + prices.merge_entry * (1.0 + costs.merged) + prices.byte * moved;
        // A separated value is read like a block, at a random place.
        let lookups = shares.lookups();
        let found = if lookups > 0.0 { shares.found / lookups } else { 1.0 };
        let blocks = costs.lookup_blocks(shares) + found * costs.value_reads;
        let lookup = prices.run * costs.runs + prices.block * blocks;
        // A scan skips obsolete entries, and reads one block of each run to begin.
        let entry = prices.scan_entry * costs.space + prices.block * costs.value_reads;
        let scan = (prices.run + prices.block) * costs.runs + entry * shares.scan_entries;
        Self { write, lookup, scan }
    }
}
