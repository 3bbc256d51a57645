//! Measured costs of operations, in nanoseconds: the table printed by
//!
//! ```sh
//! cargo bench -p terrane-memtable --bench costs
//! ```
//!
//! for keys of 16 bytes and values of 100 bytes, on an AMD EPYC with two cores. Sorting in many
//! small steps costs no more than sorting at once. The choice depends on ratios of these costs,
//! which differ less between machines than the costs themselves.

/// The sizes of the measured memtables, in entries.
pub(super) const SIZES: [f64; 4] = [1024.0, 8192.0, 65_536.0, 524_288.0];

/// The cost of each operation, by size.
pub(super) struct KindCosts {
    /// An insert of a random key, averaged while a memtable fills to that size.
    pub(super) insert: [f64; 4],
    /// An insert of a key that is greater than the previous key.
    pub(super) insert_ascending: [f64; 4],
    pub(super) lookup: [f64; 4],
    pub(super) lookup_missing: [f64; 4],
    /// Sorting, per entry.
    pub(super) order: [f64; 4],
    /// A seek, if nothing was inserted since the previous seek.
    pub(super) seek: [f64; 4],
    /// A seek after an insert.
    pub(super) seek_fresh: [f64; 4],
    /// A step to the next entry.
    pub(super) step: [f64; 4],
}

pub(super) const BTREE: KindCosts = KindCosts {
    insert: [53.0, 107.0, 203.0, 538.0],
    insert_ascending: [31.0, 33.0, 37.0, 65.0],
    lookup: [72.0, 102.0, 199.0, 403.0],
    lookup_missing: [61.0, 90.0, 175.0, 368.0],
    order: [0.0, 0.0, 0.0, 0.0],
    seek: [73.0, 98.0, 148.0, 223.0],
    seek_fresh: [110.0, 138.0, 178.0, 262.0],
    step: [17.0, 23.0, 31.0, 43.0],
};

pub(super) const VECTOR: KindCosts = KindCosts {
    insert: [21.0, 19.0, 19.0, 23.0],
    insert_ascending: [29.0, 18.0, 18.0, 28.0],
    lookup: [57.0, 89.0, 156.0, 1194.0],
    lookup_missing: [29.0, 45.0, 76.0, 495.0],
    order: [28.0, 22.0, 28.0, 47.0],
    seek: [67.0, 97.0, 142.0, 299.0],
    seek_fresh: [395.0, 437.0, 517.0, 752.0],
    step: [9.0, 12.0, 21.0, 72.0],
};

pub(super) const VECTOR_SCANNED: KindCosts = KindCosts {
    insert: [23.0, 21.0, 22.0, 27.0],
    insert_ascending: [29.0, 21.0, 21.0, 36.0],
    lookup: [102.0, 281.0, 1517.0, 15406.0],
    lookup_missing: [56.0, 354.0, 2771.0, 63868.0],
    order: [20.0, 21.0, 29.0, 57.0],
    seek: [67.0, 99.0, 166.0, 873.0],
    seek_fresh: [402.0, 429.0, 535.0, 1245.0],
    step: [9.0, 12.0, 24.0, 71.0],
};

pub(super) const HASH_VECTOR: KindCosts = KindCosts {
    insert: [24.0, 27.0, 36.0, 100.0],
    insert_ascending: [24.0, 25.0, 35.0, 212.0],
    lookup: [37.0, 46.0, 58.0, 243.0],
    lookup_missing: [26.0, 33.0, 46.0, 171.0],
    order: [28.0, 29.0, 39.0, 112.0],
    seek: [143.0, 160.0, 231.0, 773.0],
    seek_fresh: [185.0, 194.0, 215.0, 514.0],
    step: [10.0, 13.0, 21.0, 95.0],
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
