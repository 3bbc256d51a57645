//! Options are stored with the database.

use terrane::{Db, Design, Durability, ErrorKind, Options};

use crate::support::{DIR, in_memory, small_design};

#[test]
fn stored_options_hold_until_others_are_given() {
    let dir = tempfile::tempdir().unwrap();
    let open = |options: Options| options.open(dir.path()).unwrap();
    assert_eq!(
        Options::table().iter().find(|info| info.name == "durability").unwrap().default,
        "process"
    );
    let db = open(Options::new().durability(Durability::Sync).memory_budget(8 << 20));
    assert_eq!(db.durability(), Durability::Sync);
    drop(db);
    let db = Db::open(dir.path()).unwrap();
    assert_eq!(db.durability(), Durability::Sync);
    assert_eq!(db.stats().memory.budget_bytes, 8 << 20);
    drop(db);
    let db = open(Options::new().durability(Durability::Process));
    assert_eq!(db.durability(), Durability::Process);
    assert_eq!(db.stats().memory.budget_bytes, 8 << 20);
    drop(db);
    assert_eq!(Db::open_read_only(dir.path()).unwrap().durability(), Durability::Process);
}

#[test]
fn the_design_is_stored_and_another_one_is_refused_with_an_explanation() {
    let (options, _) = in_memory();
    let stored = small_design();
    drop(options.clone().design(stored.clone()).open(DIR).unwrap());
    // Opens the database without a design, and with the same design.
    assert_eq!(options.open(DIR).unwrap().design(), stored);
    assert_eq!(options.clone().design(stored.clone()).open(DIR).unwrap().design(), stored);
    let asked: Design = "tiering T=4".parse().unwrap();
    let error = options.clone().design(asked.clone()).open(DIR).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let text = error.to_string();
    for part in ["'default'", "tiering", "design_or_change", "terrane design set db 'tiering T=4'"]
    {
        assert!(text.contains(part), "{part} in: {text}");
    }
    // The opening that was refused changed nothing.
    assert_eq!(options.open(DIR).unwrap().design(), stored);
}

#[test]
fn options_are_set_from_text_and_bad_ones_say_what_is_accepted() {
    let mut options = in_memory().0;
    options.set("durability", "interval(50ms)").unwrap();
    options.set("design", "tiering T=3; buffer=1MiB").unwrap();
    let db = options.open(DIR).unwrap();
    assert_eq!(db.durability().to_string(), "interval(50ms)");
    assert_eq!(db.design().buffer_bytes, 1 << 20);
    for (name, value, hint) in [
        ("durability", "eventually", "sync"),
        ("read_mode", "slow", "`cached` or `direct`"),
        ("colour", "red", "memory_budget"),
        ("design", "balanced; T=1", "design"),
    ] {
        let error = Options::new().set(name, value).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(hint), "{error}");
    }
}

#[test]
fn options_out_of_range_are_refused_before_any_file_is_created() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let error = Options::new().compaction_threads(0).open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("compaction_threads is 0"), "{error}");
    assert!(!path.exists());
}

/// The number of disk reads that a cache of a given size saves must not depend on the memtables' size.
#[test]
fn the_cache_stays_within_its_option_whatever_the_budget() {
    let (options, _) = in_memory();
    let options = options.memory_budget(64 << 20).cache_bytes(256 << 10);
    let design = "balanced; buffer=1MiB; table=1MiB".parse().unwrap();
    let db = options.design(design).open(DIR).unwrap();
    for number in 0..20_000u32 {
        db.put(number.to_be_bytes(), [5; 200]).unwrap();
    }
    db.flush().unwrap();
    for _ in 0..2 {
        for number in 0..20_000u32 {
            db.get(number.to_be_bytes()).unwrap().unwrap();
            if number % 1000 == 0 {
                let memory = db.stats().memory;
                assert!(memory.cache_bytes + memory.pinned_bytes <= 256 << 10, "{memory:?}");
            }
        }
    }
    // A second pass misses the blocks that the cache could not keep.
    let stats = db.stats();
    assert!(stats.cache.data_misses > 2 * 200 * 20_000 / (32 << 10), "{:?}", stats.cache);
    assert!(stats.memory.cache_bytes > 128 << 10, "{:?}", stats.memory);
}

/// The setup of the compaction paper (§5): a skip list, one page per fence pointer, 10 filter bits, one
/// cache of 8 MiB for blocks of all kinds, direct I/O and one thread for compactions.
#[test]
fn the_engine_of_the_compaction_paper_is_a_design_and_six_options() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::new();
    for (name, value) in [
        ("design", "full; memtable=skiplist"),
        ("cache_bytes", "8MiB"),
        ("read_mode", "direct"),
        ("write_mode", "direct"),
        ("compaction_threads", "1"),
        ("flush_threads", "1"),
        ("cache_warming", "meta"),
    ] {
        options.set(name, value).unwrap();
    }
    let db = options.open(dir.path()).unwrap();
    let design = db.design();
    assert_eq!(design.memtable.to_string(), "skiplist");
    assert_eq!((design.buffer_bytes, design.block_bytes), (8 << 20, 16 << 10));
    assert_eq!(design.filter_bits_at(1, 3), 10.0);
    for number in 0..60_000u32 {
        db.put(number.wrapping_mul(2_654_435_761).to_be_bytes(), [7; 400]).unwrap();
    }
    db.flush().unwrap();
    for number in (0..60_000u32).step_by(7) {
        db.get(number.wrapping_mul(2_654_435_761).to_be_bytes()).unwrap().unwrap();
    }
    let stats = db.stats();
    assert!(stats.compactions > 0 && stats.cache.data_misses > 0, "{stats:?}");
    let cached = stats.memory.cache_bytes + stats.memory.pinned_bytes;
    assert!(cached > 4 << 20 && cached <= 8 << 20, "{:?}", stats.memory);
}
