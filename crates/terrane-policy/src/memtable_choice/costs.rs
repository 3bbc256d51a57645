//! Measured costs of operations, in nanoseconds: the table printed by
//!
//! ```sh
//! cargo bench -p terrane-memtable --bench costs
//! ```
//!
//! for keys of 16 bytes and values of 100 bytes, on an AMD EPYC with two cores. Sorting in many
//! small steps costs no more than sorting at once. The choice depends on ratios of these costs,
//! which differ less between machines than the costs themselves.
//!
//! Writes are measured with one thread and with two, reads with one, because readers do not wait for
//! each other. Costs for more threads are not measured but extrapolated linearly from these two, as
//! for a lock.

use crate::design::{MemtableKind, VectorQuery};

/// The sizes of the measured memtables, in entries.
pub(super) const SIZES: [f64; 4] = [1024.0, 8192.0, 65_536.0, 524_288.0];

/// The cost of each write, by size.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriteCosts {
    /// An insert of a random key, averaged while a memtable fills to that size.
    pub(super) insert: [f64; 4],
    /// An insert of a key that is greater than the previous key.
    pub(super) insert_ascending: [f64; 4],
    /// A write to one of a few keys that are already in the memtable.
    pub(super) update: [f64; 4],
}

/// The cost of each operation, by size.
#[derive(Debug, Clone, Copy)]
pub(super) struct KindCosts {
    /// Writes by one thread and by each of two threads.
    pub(super) writes: [WriteCosts; 2],
    pub(super) lookup: [f64; 4],
    pub(super) lookup_missing: [f64; 4],
    /// The cost of sorting, per entry.
    pub(super) order: [f64; 4],
    /// A seek, if nothing was inserted since the previous seek.
    pub(super) seek: [f64; 4],
    /// A seek after an insert.
    pub(super) seek_fresh: [f64; 4],
    /// A step to the next entry.
    pub(super) step: [f64; 4],
}

impl KindCosts {
    /// Returns the cost of a write in a memtable of `entries` while `threads` threads write.
    pub(super) fn write(
        &self,
        threads: u32,
        entries: f64,
        column: fn(&WriteCosts) -> &[f64; 4],
    ) -> f64 {
        let [one, two] = self.writes.each_ref().map(|costs| at(column(costs), entries));
        one + (two - one).max(0.0) * f64::from(threads.saturating_sub(1))
    }
}

/// The costs of all kinds.
#[derive(Debug, Clone, Copy)]
pub(super) struct CostTable {
    pub(super) btree: KindCosts,
    pub(super) vector: KindCosts,
    pub(super) vector_scanned: KindCosts,
    pub(super) hash_vector: KindCosts,
    pub(super) flodb: KindCosts,
    pub(super) skip_list: KindCosts,
    pub(super) hash_skip_list: KindCosts,
    pub(super) hash_linked_list: KindCosts,
}

impl CostTable {
    /// Returns the costs of a kind.
    pub(super) fn of(&self, kind: MemtableKind) -> &KindCosts {
        match kind {
            MemtableKind::Vector { query: VectorQuery::Scan, .. } => &self.vector_scanned,
            MemtableKind::Vector { .. } => &self.vector,
            MemtableKind::HashVector { .. } => &self.hash_vector,
            MemtableKind::FloDb(_) => &self.flodb,
            MemtableKind::SkipList { .. } => &self.skip_list,
            MemtableKind::HashSkipList { .. } => &self.hash_skip_list,
            MemtableKind::HashLinkedList { .. } => &self.hash_linked_list,
            MemtableKind::BTree | MemtableKind::Auto => &self.btree,
        }
    }
}

/// The measured costs.
pub(super) const MEASURED: CostTable = CostTable {
    btree: BTREE,
    vector: VECTOR,
    vector_scanned: VECTOR_SCANNED,
    hash_vector: HASH_VECTOR,
    flodb: FLODB,
    skip_list: SKIP_LIST,
    hash_skip_list: HASH_SKIP_LIST,
    hash_linked_list: HASH_LINKED_LIST,
};

const BTREE: KindCosts = KindCosts {
    writes: [
        WriteCosts {
            insert: [115.0, 146.0, 197.0, 245.0],
            insert_ascending: [52.0, 58.0, 65.0, 74.0],
            update: [148.0, 145.0, 180.0, 221.0],
        },
        WriteCosts {
            insert: [145.0, 265.0, 244.0, 397.0],
            insert_ascending: [101.0, 141.0, 174.0, 195.0],
            update: [276.0, 222.0, 250.0, 465.0],
        },
    ],
    lookup: [85.0, 218.0, 316.0, 362.0],
    lookup_missing: [69.0, 158.0, 233.0, 341.0],
    order: [1.0, 0.0, 0.0, 0.0],
    seek: [89.0, 128.0, 176.0, 249.0],
    seek_fresh: [90.0, 128.0, 237.0, 315.0],
    step: [11.0, 15.0, 28.0, 31.0],
};

const VECTOR: KindCosts = KindCosts {
    writes: [
        WriteCosts {
            insert: [27.0, 24.0, 24.0, 24.0],
            insert_ascending: [27.0, 24.0, 24.0, 24.0],
            update: [24.0, 24.0, 24.0, 26.0],
        },
        WriteCosts {
            insert: [57.0, 55.0, 53.0, 55.0],
            insert_ascending: [56.0, 57.0, 50.0, 54.0],
            update: [114.0, 77.0, 55.0, 49.0],
        },
    ],
    lookup: [63.0, 97.0, 197.0, 509.0],
    lookup_missing: [33.0, 52.0, 122.0, 264.0],
    order: [28.0, 25.0, 33.0, 37.0],
    seek: [96.0, 127.0, 215.0, 390.0],
    seek_fresh: [483.0, 532.0, 685.0, 868.0],
    step: [12.0, 19.0, 40.0, 90.0],
};

const VECTOR_SCANNED: KindCosts = KindCosts {
    writes: [
        WriteCosts {
            insert: [30.0, 28.0, 28.0, 28.0],
            insert_ascending: [31.0, 28.0, 28.0, 28.0],
            update: [28.0, 27.0, 28.0, 29.0],
        },
        WriteCosts {
            insert: [72.0, 68.0, 57.0, 59.0],
            insert_ascending: [67.0, 64.0, 59.0, 58.0],
            update: [279.0, 102.0, 66.0, 57.0],
        },
    ],
    lookup: [123.0, 350.0, 1975.0, 18932.0],
    lookup_missing: [68.0, 463.0, 3758.0, 35915.0],
    order: [24.0, 25.0, 30.0, 38.0],
    seek: [96.0, 132.0, 228.0, 548.0],
    seek_fresh: [528.0, 565.0, 697.0, 939.0],
    step: [12.0, 20.0, 28.0, 93.0],
};

const HASH_VECTOR: KindCosts = KindCosts {
    writes: [
        WriteCosts {
            insert: [45.0, 45.0, 66.0, 113.0],
            insert_ascending: [43.0, 44.0, 62.0, 113.0],
            update: [35.0, 39.0, 50.0, 59.0],
        },
        WriteCosts {
            insert: [86.0, 113.0, 118.0, 269.0],
            insert_ascending: [80.0, 112.0, 87.0, 261.0],
            update: [88.0, 123.0, 114.0, 253.0],
        },
    ],
    lookup: [47.0, 61.0, 88.0, 225.0],
    lookup_missing: [29.0, 40.0, 62.0, 146.0],
    order: [30.0, 34.0, 43.0, 76.0],
    seek: [201.0, 231.0, 315.0, 772.0],
    seek_fresh: [253.0, 238.0, 315.0, 772.0],
    step: [14.0, 21.0, 31.0, 90.0],
};

const FLODB: KindCosts = KindCosts {
    writes: [
        WriteCosts {
            insert: [96.0, 126.0, 146.0, 208.0],
            insert_ascending: [70.0, 77.0, 86.0, 108.0],
            update: [51.0, 52.0, 62.0, 72.0],
        },
        WriteCosts {
            insert: [159.0, 268.0, 203.0, 391.0],
            insert_ascending: [121.0, 207.0, 170.0, 218.0],
            update: [98.0, 138.0, 125.0, 118.0],
        },
    ],
    lookup: [87.0, 119.0, 193.0, 396.0],
    lookup_missing: [90.0, 133.0, 201.0, 453.0],
    order: [4.0, 3.0, 2.0, 3.0],
    seek: [147.0, 396.0, 2415.0, 22726.0],
    seek_fresh: [185.0, 396.0, 2415.0, 22726.0],
    step: [28.0, 43.0, 49.0, 64.0],
};

const SKIP_LIST: KindCosts = KindCosts {
    writes: [
        WriteCosts {
            insert: [157.0, 220.0, 421.0, 1007.0],
            insert_ascending: [146.0, 148.0, 149.0, 149.0],
            update: [162.0, 209.0, 323.0, 614.0],
        },
        WriteCosts {
            insert: [238.0, 372.0, 767.0, 2381.0],
            insert_ascending: [243.0, 321.0, 388.0, 397.0],
            update: [364.0, 518.0, 568.0, 1928.0],
        },
    ],
    lookup: [136.0, 251.0, 479.0, 1460.0],
    lookup_missing: [101.0, 189.0, 567.0, 1324.0],
    order: [0.0, 0.0, 0.0, 0.0],
    seek: [131.0, 220.0, 418.0, 763.0],
    seek_fresh: [133.0, 297.0, 569.0, 1025.0],
    step: [10.0, 16.0, 46.0, 123.0],
};

const HASH_SKIP_LIST: KindCosts = KindCosts {
    writes: [
        WriteCosts {
            insert: [74.0, 82.0, 103.0, 179.0],
            insert_ascending: [74.0, 82.0, 108.0, 204.0],
            update: [73.0, 71.0, 78.0, 98.0],
        },
        WriteCosts {
            insert: [140.0, 181.0, 171.0, 389.0],
            insert_ascending: [147.0, 207.0, 163.0, 501.0],
            update: [143.0, 186.0, 142.0, 237.0],
        },
    ],
    lookup: [59.0, 97.0, 121.0, 316.0],
    lookup_missing: [34.0, 51.0, 69.0, 165.0],
    order: [33.0, 41.0, 50.0, 87.0],
    seek: [66.0, 92.0, 137.0, 528.0],
    seek_fresh: [67.0, 93.0, 158.0, 528.0],
    step: [14.0, 21.0, 29.0, 87.0],
};

const HASH_LINKED_LIST: KindCosts = KindCosts {
    writes: [
        WriteCosts {
            insert: [68.0, 77.0, 98.0, 169.0],
            insert_ascending: [70.0, 75.0, 99.0, 176.0],
            update: [56.0, 58.0, 69.0, 109.0],
        },
        WriteCosts {
            insert: [144.0, 163.0, 161.0, 332.0],
            insert_ascending: [126.0, 185.0, 134.0, 334.0],
            update: [154.0, 171.0, 142.0, 234.0],
        },
    ],
    lookup: [49.0, 75.0, 109.0, 308.0],
    lookup_missing: [30.0, 40.0, 65.0, 157.0],
    order: [30.0, 39.0, 49.0, 87.0],
    seek: [58.0, 89.0, 135.0, 524.0],
    seek_fresh: [59.0, 91.0, 176.0, 524.0],
    step: [14.0, 20.0, 31.0, 90.0],
};

/// Returns the cost in a memtable of `entries`: a power law between measured sizes, extrapolated
/// beyond the largest.
pub(super) fn at(costs: &[f64; 4], entries: f64) -> f64 {
    let above = SIZES.iter().skip(1).position(|size| entries <= *size).map_or(3, |at| at + 1);
    let (low, high) = (above - 1, above);
    let way = (entries.max(SIZES[0]) / SIZES[low]).ln() / (SIZES[high] / SIZES[low]).ln();
    // A power law cannot start from zero.
    let [first, last] = [costs[low], costs[high]].map(|cost| cost.max(0.1));
    first * (last / first).powf(way)
}
