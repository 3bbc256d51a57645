//! What a design costs, by formulas rather than measurements.
//!
//! A model answers at once and for any size, before anything is built. No other part of the crate
//! depends on these two models:
//!
//! | | models | source |
//! |---|---|---|
//! | [`costs`] | any [`Design`]: writes, lookups, scans, memory and space, level by level | Dostoevsky §4, Monkey §4, adapted to this engine |
//! | [`dent`] | the CS 265 tree, tiered or leveled: orders of growth | Dent §2.3.3, §2.4.1, §2.6.1 |
//!
//! [`costs`] assumes records of one size, each written once, in random order, and lookups of equally
//! likely keys. It ignores everything that averages hide: stalls, caches, concurrency, the gains of
//! movement rules, moves of tables that overlap nothing, and `growth=dynamic`, which it treats as
//! `fixed`. It covers separated values; [`ValueFileCosts`] adds the cost of overwriting them.
//! `crates/terrane-tests/tests/cost.rs` compares the model with the engine's counters and states the
//! error.

pub mod dent;
mod filter;
mod levels;
mod values;

pub use filter::blocked_false_positive_rate;
pub use levels::LevelCosts;
pub use values::{POINTER_BYTES, VALUE_RECORD_BYTES, ValueFileCosts};

use crate::design::Design;

/// The data that is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DataProfile {
    /// Records, each with a different key.
    pub records: f64,
    /// Bytes of a key.
    pub key_bytes: f64,
    /// Bytes of a key and its value.
    pub record_bytes: f64,
    /// Bytes of an entry in a memtable in addition to key and value.
    pub memtable_entry_bytes: f64,
    /// Bytes of an entry in a table in addition to key and value, without its share of filters and
    /// index.
    pub table_entry_bytes: f64,
}

impl DataProfile {
    /// Returns a profile of records of a given size with keys of 16 bytes, with this engine's
    /// overhead per entry.
    pub fn new(records: f64, record_bytes: f64) -> Self {
        Self {
            records,
            key_bytes: record_bytes.min(16.0),
            record_bytes,
            memtable_entry_bytes: 40.0,
            table_entry_bytes: 6.0,
        }
    }

    /// Returns the bytes that an entry takes in a table of a design, including the entry's share of
    /// filters and index. Filters are assumed to have the bits of the deepest levels, which hold nearly
    /// all keys.
    pub fn stored_bytes(&self, design: &Design) -> f64 {
        let entry = self.record_bytes + self.table_entry_bytes;
        let filter = design.filter_bits.values().last().copied().unwrap_or(0.0) / 8.0;
        entry + filter + entry / block_bytes(design) * INDEX_ENTRY_BYTES
    }
}

/// Bytes of the index per data block: a head, an offset, and a separator's offsets and remainder.
const INDEX_ENTRY_BYTES: f64 = 24.0;

fn block_bytes(design: &Design) -> f64 {
    f64::from(design.block_bytes.max(1))
}

/// The costs of a design for a data profile. A block is a data block of the design.
#[derive(Debug, Clone, PartialEq)]
pub struct CostEstimate {
    /// Level 0 and the levels below it, down to the last level in use.
    pub levels: Vec<LevelCosts>,
    /// Bytes written to tables and value files per byte that the user wrote, flushes included, from
    /// the first record to the last.
    pub write_amplification: f64,
    /// The number of sorted runs, averaged over time.
    pub runs: f64,
    /// Blocks read by a lookup of a missing key.
    pub absent_lookup_blocks: f64,
    /// Blocks read by a lookup of an existing key.
    pub present_lookup_blocks: f64,
    /// Blocks read to begin a scan.
    pub seek_blocks: f64,
    /// Blocks read per entry of a scan.
    pub scan_entry_blocks: f64,
    /// Bytes of all filters.
    pub filter_bytes: f64,
    /// Bytes of all indexes.
    pub index_bytes: f64,
    /// Bytes of all tables.
    pub table_bytes: f64,
    /// Bytes of all value files.
    pub value_bytes: f64,
    /// Value file reads per lookup of an existing key, and per entry of a scan.
    pub value_reads: f64,
    /// The cost of overwrites in value files; `None` if values are inline.
    pub value_files: Option<ValueFileCosts>,
    /// Bytes of tables divided by bytes of live data, in the worst case, in which each key of a newer
    /// run is also in the runs below it.
    pub space_amplification_max: f64,
    /// The maximum number of bytes that one compaction writes before it can free its inputs.
    pub compaction_bytes_max: f64,
}

/// Returns the costs of a design for a data profile.
///
/// ```
/// use terrane_policy::cost::{DataProfile, costs};
/// let data = DataProfile::new(10e6, 128.0);
/// let of = |text: &str| costs(&text.parse().unwrap(), &data);
/// let (leveling, tiering) = (of("leveling; buffer=8MiB"), of("tiering; buffer=8MiB"));
/// assert!(tiering.write_amplification < leveling.write_amplification / 2.0);
/// assert!(tiering.absent_lookup_blocks > leveling.absent_lookup_blocks * 2.0);
/// ```
pub fn costs(design: &Design, data: &DataProfile) -> CostEstimate {
    let user_bytes = (data.records * data.record_bytes).max(1.0);
    let separated = values::separated(design, data);
    let (data, value_bytes) = match &separated {
        Some((tables, value)) => (tables, data.records * value),
        None => (data, 0.0),
    };
    let value_files = separated.and_then(|_| design.values.separation()).map(ValueFileCosts::of);
    let levels = levels::levels(design, data);
    let table_bytes: f64 = levels.iter().map(|level| level.bytes).sum();
    let stored = data.stored_bytes(design);
    let keys = |level: &LevelCosts| level.bytes / stored;
    let entries_of_block = block_bytes(design) / (data.record_bytes + data.table_entry_bytes);
    let runs = levels.iter().map(|level| level.runs).sum();
    let flushed = data.records * stored;
    let merged: f64 = levels.iter().map(|level| level.written_bytes).sum();
    CostEstimate {
        write_amplification: (flushed + merged + value_bytes) / user_bytes,
        runs,
        absent_lookup_blocks: levels.iter().map(LevelCosts::false_positives).sum(),
        present_lookup_blocks: present_lookup(&levels, table_bytes),
        seek_blocks: runs,
        scan_entry_blocks: 1.0 / entries_of_block,
        filter_bytes: levels.iter().map(|level| keys(level) * level.filter_bits / 8.0).sum(),
        index_bytes: data.records / entries_of_block * INDEX_ENTRY_BYTES,
        table_bytes,
        value_bytes,
        value_reads: if value_files.is_some() { 1.0 } else { 0.0 },
        value_files,
        space_amplification_max: space_max(&levels),
        compaction_bytes_max: levels.iter().map(|level| level.merge_bytes_max).fold(0.0, f64::max),
        levels,
    }
}

impl CostEstimate {
    /// Returns the number of blocks that a scan of `entries` entries reads.
    pub fn scan_blocks(&self, entries: f64) -> f64 {
        self.seek_blocks + entries * self.scan_entry_blocks
    }
}

/// The probability that a key is in a level equals the level's share of the data. Before a lookup finds
/// the key, it pays for the false positives of every newer run, including on average half of the other
/// runs of that level.
fn present_lookup(levels: &[LevelCosts], table_bytes: f64) -> f64 {
    let (mut newer, mut blocks) = (0.0, 0.0);
    for level in levels {
        let share = level.bytes / table_bytes.max(1.0);
        let others = (level.runs - 1.0).max(0.0) / 2.0 * level.false_positive_rate;
        blocks += share * (1.0 + newer + others);
        newer += level.false_positives();
    }
    blocks
}

/// In the worst case, all data above the last level is obsolete, and so are all runs of the last
/// level except one.
fn space_max(levels: &[LevelCosts]) -> f64 {
    let Some((last, above)) = levels.split_last() else { return 1.0 };
    let above: f64 = above.iter().map(|level| level.bytes_max).sum();
    last.runs_max.max(1.0) + above / (last.bytes / last.runs.max(1.0)).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;

    fn of(text: &str, records: f64) -> CostEstimate {
        costs(&text.parse().unwrap(), &DataProfile::new(records, 100.0))
    }

    #[test]
    fn every_design_has_finite_costs_at_every_size() {
        for entry in catalogue::ALL {
            for records in [0.0, 1.0, 1e3, 1e6, 1e9, 1e12] {
                let design = (entry.design)();
                let costs = costs(&design, &DataProfile::new(records, 100.0));
                let stored = records * DataProfile::new(records, 100.0).stored_bytes(&design);
                let what = format!("{} {records}: {costs:?}", entry.name);
                assert!((costs.table_bytes - stored).abs() <= stored * 1e-6 + 1.0, "{what}");
                assert!(costs.write_amplification.is_finite() && costs.runs.is_finite(), "{what}");
                assert!(costs.levels.len() < 64, "{what}");
                assert!(costs.absent_lookup_blocks <= costs.runs + 1e-9, "{what}");
                assert!(costs.space_amplification_max >= 1.0, "{what}");
            }
        }
    }

    #[test]
    fn eagerness_trades_writes_for_reads_and_space() {
        let eager: Vec<CostEstimate> = ["leveling", "lazy-leveling", "tiering"]
            .map(|name| {
                of(&format!("{name} T=5; buffer=1MiB; granularity=level; movement=none"), 1e7)
            })
            .into();
        for pair in eager.windows(2) {
            let what = format!("{pair:?}");
            assert!(pair[0].write_amplification > pair[1].write_amplification, "{what}");
            assert!(pair[0].seek_blocks < pair[1].seek_blocks, "{what}");
        }
        assert!(eager[0].space_amplification_max < eager[2].space_amplification_max);
    }

    #[test]
    fn the_largest_compaction_is_of_whole_levels_or_some_tables() {
        let [levels, tables] =
            ["granularity=level; movement=none", "granularity=file"].map(|text| {
                of(&format!("leveling T=5; buffer=1MiB; {text}"), 1e7).compaction_bytes_max
            });
        assert!(levels > 5e8 && (1e8..3e8).contains(&tables), "{levels} {tables}");
    }

    #[test]
    fn lookups_of_present_keys_pay_for_the_filters_of_newer_runs() {
        let [few, many] = [2, 20]
            .map(|bits| of(&format!("leveling T=5; buffer=1MiB; filter={bits}"), 1e7))
            .map(|costs| costs.present_lookup_blocks);
        assert!(few > 1.5 && (1.0..1.01).contains(&many), "{few} {many}");
    }

    #[test]
    fn merging_flushes_trade_writes_for_runs() {
        // A size trigger makes level 0 give up the same bytes in both modes.
        let shared = "trigger=level-saturation; granularity=level; movement=none; buffer=1MiB";
        for name in ["1-leveling", "tiering T=4"] {
            let [separate, merged] =
                ["new", "merge"].map(|flush| of(&format!("{name}; {shared}; flush={flush}"), 1e6));
            let what = format!("{name}: {separate:?}\n{merged:?}");
            assert!(merged.levels[0].runs < 1.0 && separate.levels[0].runs > 1.0, "{what}");
            assert!(merged.write_amplification > separate.write_amplification + 1.0, "{what}");
            assert!(merged.absent_lookup_blocks < separate.absent_lookup_blocks, "{what}");
        }
    }

    #[test]
    fn a_ratio_as_large_as_the_data_is_a_log_or_a_sorted_array() {
        // Dent §2.2: with a ratio as large as the data, tiering is a log, leveling a sorted array.
        let array = of("leveling T=1000; buffer=1MiB; granularity=level; movement=none", 1e6);
        let log = of("tiering T=1000; buffer=1MiB; delay=never; stop=never", 1e6);
        assert_eq!(log.levels.len(), 1);
        assert!((1.0..1.2).contains(&log.write_amplification) && log.runs > 50.0);
        // All runs may hold the same keys.
        assert!(log.space_amplification_max > 50.0, "{log:?}");
        assert!(array.runs < 2.1 && array.write_amplification > 20.0);
    }

    #[test]
    fn monkey_saves_reads_with_the_same_memory() {
        let flat = of("leveling T=4; buffer=1MiB; filter=5", 1e7);
        let monkey = of("leveling T=4; buffer=1MiB; filter=monkey(5)", 1e7);
        assert!(monkey.absent_lookup_blocks < flat.absent_lookup_blocks * 0.8);
        assert!(monkey.filter_bytes < flat.filter_bytes * 1.1);
    }

    #[test]
    fn smaller_blocks_need_a_larger_index_and_read_fewer_bytes() {
        let [small, large] =
            ["1KiB", "16KiB"].map(|block| of(&format!("leveling; block={block}"), 1e6));
        assert!((small.index_bytes / large.index_bytes - 16.0).abs() < 1e-6);
        assert!((small.scan_entry_blocks / large.scan_entry_blocks - 16.0).abs() < 1e-6);
    }
}
