//! Blocks that flushes and compactions add to the block cache.

use terrane::{CacheStats, CacheWarming, Db, ReadMode};

use crate::support::{DIR, in_memory};

const DESIGN: &str = "1-leveling T=4 L0=8 base=1MiB; buffer=1MiB; table=64KiB; block=512B";

fn fill(db: &Db, round: u8) {
    for number in 0..3000u32 {
        db.put(number.to_be_bytes(), [round; 100]).unwrap();
    }
    db.flush().unwrap();
}

fn read(db: &Db, keys: std::ops::Range<u32>) {
    keys.for_each(|number| assert!(db.contains(number.to_be_bytes()).unwrap()));
}

fn misses(db: &Db) -> (u64, u64, u64) {
    let CacheStats { data_misses, index_misses, filter_misses, .. } = db.stats().cache;
    (data_misses, index_misses, filter_misses)
}

/// Reads `keys` of two runs, compacts them, reads the keys again, and returns the misses of the
/// second read: data, indexes, filters.
fn after_compaction(
    warming: CacheWarming,
    mode: ReadMode,
    keys: std::ops::Range<u32>,
) -> (u64, u64, u64) {
    let (options, _) = in_memory();
    let options = options.read_mode(mode).cache_warming(warming).memory_budget(64 << 20);
    let db = options.design(DESIGN.parse().unwrap()).open(DIR).unwrap();
    (0..2).for_each(|round| fill(&db, round));
    read(&db, keys.clone());
    db.compact_range(..).unwrap();
    assert_eq!(db.stats().compactions, 1);
    let before = misses(&db);
    read(&db, keys);
    let after = misses(&db);
    let stats = db.stats();
    assert_eq!(stats.cache.warmed > 0, warming != CacheWarming::None);
    (after.0 - before.0, after.1 - before.1, after.2 - before.2)
}

#[test]
fn compactions_warm_the_blocks_that_readers_had_cached() {
    let cached = |warming| after_compaction(warming, ReadMode::Cached, 0..3000);
    let (data, indexes, filters) = cached(CacheWarming::None);
    assert!(data > 100 && indexes >= 5 && filters >= 5, "{data} {indexes} {filters}");
    assert_eq!(cached(CacheWarming::Meta), (data, 0, 0));
    assert_eq!(cached(CacheWarming::All), (0, 0, 0));
    assert_eq!(cached(CacheWarming::Read), (0, 0, 0));
    assert_eq!(after_compaction(CacheWarming::All, ReadMode::Direct, 0..3000), (0, 0, 0));
}

#[test]
fn flushes_warm_data_blocks_while_the_database_is_read() {
    // Data blocks that are read from storage after a flush before which there were `reads` lookups.
    let missed = |warming: Option<CacheWarming>, reads| {
        let (options, _) = in_memory();
        let options = options.read_mode(ReadMode::Cached).memory_budget(64 << 20);
        let options = warming.into_iter().fold(options, terrane::Options::cache_warming);
        let db = options.design(DESIGN.parse().unwrap()).open(DIR).unwrap();
        fill(&db, 0);
        read(&db, 0..reads);
        let before = misses(&db).0;
        fill(&db, 1);
        read(&db, 0..3000);
        misses(&db).0 - before
    };
    let all = missed(Some(CacheWarming::Meta), 3000);
    assert!(all > 500, "{all}");
    // About 0.4 MB of a memtable are 800 blocks, of which a quarter of reads is required.
    for warming in [None, Some(CacheWarming::Read)] {
        assert_eq!(missed(warming, 50), all, "{warming:?}");
        assert_eq!(missed(warming, 2000), 0, "{warming:?}");
    }
    assert_eq!(missed(Some(CacheWarming::All), 50), 0);
}

#[test]
fn blocks_that_nobody_had_cached_are_not_warmed() {
    let (options, storage) = in_memory();
    let design = DESIGN.parse().unwrap();
    let db = options.design(design).open(DIR).unwrap();
    (0..2).for_each(|round| fill(&db, round));
    db.close().unwrap();
    // Closing dropped the blocks that the flushes had cached. This reads the first of several
    // tables.
    let (options, _) = in_memory();
    let options = options.storage(std::sync::Arc::new(storage)).memory_budget(64 << 20);
    let options = options.read_mode(ReadMode::Cached).cache_warming(CacheWarming::All);
    let db = options.open(DIR).unwrap();
    read(&db, 0..300);
    db.compact_range(..).unwrap();
    let stats = db.stats();
    assert_eq!(stats.compactions, 1);
    let written = stats.compaction_bytes_written;
    let warmed = stats.cache.warmed_bytes;
    // About a tenth of the blocks: one of several tables was read, and half of the blocks that make
    // up its replacement come from a run that was not read.
    assert!(warmed > 0 && warmed < written / 5, "{warmed} of {written}");
}

#[test]
fn the_cache_stays_within_its_capacity() {
    let warmed = |warming| {
        let (options, _) = in_memory();
        let options = options.read_mode(ReadMode::Cached).cache_warming(warming);
        let db = options.memory_budget(16 << 20).design(DESIGN.parse().unwrap()).open(DIR).unwrap();
        for round in 0..100 {
            fill(&db, round);
            read(&db, 0..3000);
        }
        db.compact_range(..).unwrap();
        let stats = db.stats();
        assert!(stats.memory.cache_bytes <= 16 << 20, "{}", stats.memory.cache_bytes);
        stats.cache.warmed_bytes
    };
    let (all, read) = (warmed(CacheWarming::All), warmed(CacheWarming::Read));
    // Once the cache is full, fewer blocks are inserted.
    assert!(all > 32 << 20 && read > 0 && read < all / 4 * 3, "{all} {read}");
}
