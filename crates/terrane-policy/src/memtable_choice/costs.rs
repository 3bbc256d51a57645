//! What operations cost, as measured: the table of
//!
//! ```sh
//! cargo bench -p terrane-memtable --bench costs
//! ```
//!
//! for keys of 16 and values of 100 bytes, in nanoseconds, on an AMD EPYC with two cores. What is
//! chosen follows from ratios of these, which differ between machines far less than they do.

/// Entries of the memtables that were measured.
pub(super) const SIZES: [f64; 4] = [1024.0, 8192.0, 65_536.0, 524_288.0];

/// How many times as large a sorted run of a memtable is as the next one: each read that asks for
/// the order makes one, and so an entry is merged once for each power of this in their number.
pub(super) const RUN_RATIO: f64 = 4.0;

/// What one operation costs, by size.
pub(super) struct Costs {
    /// Of keys in no order, on average while a memtable is filled to that size.
    pub(super) insert: [f64; 4],
    /// Of keys each after the one before.
    pub(super) insert_ascending: [f64; 4],
    pub(super) lookup: [f64; 4],
    pub(super) lookup_missing: [f64; 4],
    /// For each entry, to be put in order when that is first asked for.
    pub(super) order: [f64; 4],
    /// For each entry, to be merged into a larger run.
    pub(super) merge: [f64; 4],
    /// To a place in the order, where nothing was inserted since the last time,
    pub(super) seek: [f64; 4],
    /// and where something was.
    pub(super) seek_fresh: [f64; 4],
    /// To the next entry.
    pub(super) step: [f64; 4],
}

pub(super) const BTREE: Costs = Costs {
    insert: [54.0, 108.0, 203.0, 538.0],
    insert_ascending: [31.0, 33.0, 38.0, 83.0],
    lookup: [72.0, 112.0, 232.0, 492.0],
    lookup_missing: [61.0, 94.0, 207.0, 454.0],
    order: [1.0, 0.0, 0.0, 0.0],
    merge: [0.0, 0.0, 0.0, 0.0],
    seek: [73.0, 98.0, 155.0, 243.0],
    seek_fresh: [111.0, 138.0, 178.0, 262.0],
    step: [17.0, 23.0, 35.0, 46.0],
};

pub(super) const VECTOR: Costs = Costs {
    insert: [21.0, 20.0, 19.0, 26.0],
    insert_ascending: [29.0, 19.0, 18.0, 28.0],
    lookup: [57.0, 89.0, 174.0, 1208.0],
    lookup_missing: [29.0, 45.0, 76.0, 495.0],
    order: [29.0, 23.0, 29.0, 47.0],
    merge: [0.0, 0.0, 0.0, 0.0],
    seek: [67.0, 98.0, 143.0, 299.0],
    seek_fresh: [399.0, 440.0, 523.0, 752.0],
    step: [9.0, 12.0, 36.0, 72.0],
};

pub(super) const VECTOR_SCANNED: Costs = Costs {
    insert: [23.0, 22.0, 22.0, 37.0],
    insert_ascending: [30.0, 22.0, 22.0, 36.0],
    lookup: [115.0, 293.0, 1536.0, 36146.0],
    lookup_missing: [56.0, 362.0, 7071.0, 63868.0],
    order: [24.0, 21.0, 32.0, 57.0],
    merge: [0.0, 0.0, 0.0, 0.0],
    seek: [68.0, 101.0, 243.0, 1020.0],
    seek_fresh: [411.0, 452.0, 547.0, 1350.0],
    step: [9.0, 12.0, 51.0, 71.0],
};

pub(super) const HASH_VECTOR: Costs = Costs {
    insert: [25.0, 28.0, 36.0, 227.0],
    insert_ascending: [29.0, 25.0, 39.0, 236.0],
    lookup: [37.0, 47.0, 66.0, 249.0],
    lookup_missing: [26.0, 34.0, 51.0, 190.0],
    order: [29.0, 30.0, 56.0, 112.0],
    merge: [0.0, 0.0, 0.0, 0.0],
    seek: [144.0, 162.0, 453.0, 773.0],
    seek_fresh: [186.0, 194.0, 251.0, 514.0],
    step: [10.0, 14.0, 54.0, 101.0],
};

/// The cost in a memtable of so many entries: between the sizes that were measured it grows by a
/// power of the size, and beyond the last by that of the last two.
pub(super) fn at(costs: &[f64; 4], entries: f64) -> f64 {
    let above = SIZES.iter().skip(1).position(|size| entries <= *size).map_or(3, |at| at + 1);
    let (low, high) = (above - 1, above);
    let way = (entries.max(SIZES[0]) / SIZES[low]).ln() / (SIZES[high] / SIZES[low]).ln();
    // Nothing costs less than this; and a power needs something to grow from.
    let [first, last] = [costs[low], costs[high]].map(|cost| cost.max(0.1));
    first * (last / first).powf(way)
}
