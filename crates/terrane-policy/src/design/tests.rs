//! Text forms round-trip, and invalid designs are rejected with a reason.

use super::*;
use crate::catalogue;
use crate::strategy::trigger::RunCount;
use crate::strategy::{Granularity, Movement, Trigger};

#[test]
fn catalogue_designs_print_and_parse_back() {
    for entry in catalogue::ALL {
        let design = (entry.design)();
        assert_eq!(design.to_string().parse(), Ok(design.clone()), "{}", entry.name);
        assert_eq!(entry.name.parse(), Ok(design), "{}", entry.name);
    }
}

#[test]
fn settings_override_the_named_design() {
    let text = "leveling T=4 L0=2 base=1MiB; trigger=run-count; granularity=level; \
                movement=round-robin+least-overlap; memtable=skiplist(branching=2,height=16); \
                buffer=1MiB; filter=10,0.5,0; compression=none,lz4,zstd; delay=5; stop=9; buffers=2";
    let design: Design = text.parse().unwrap();
    assert_eq!(design.strategy.size_ratio, 4);
    assert_eq!(design.strategy.base_bytes, Some(1 << 20));
    assert_eq!(design.strategy.triggers.values(), [[Trigger::from(RunCount)]]);
    assert_eq!(design.strategy.granularity, Granularity::Level.into());
    assert_eq!(design.strategy.movement.values(), [[Movement::RoundRobin, Movement::LeastOverlap]]);
    assert_eq!(design.memtable, MemtableKind::SkipList { branching: 2, height: 16 });
    assert_eq!(design.filter_bits.get(1), 0.5);
    assert_eq!(design.filter_bits.get(9), 0.0);
    assert_eq!(design.compression.get(0), Compression::None);
    assert_eq!(design.compression.get(1), Compression::Lz4);
    assert_eq!(design.compression.get(5), Compression::Zstd);
    assert_eq!(design.to_string().parse(), Ok(design));
}

#[test]
fn runs_of_level_0_follow_the_size_ratio_where_levels_gather() {
    let design: Design = "tiering T=4".parse().unwrap();
    assert_eq!(design.strategy.level0_runs, 4);
    let design: Design = "leveling T=4".parse().unwrap();
    assert_eq!(design.strategy.level0_runs, 1);
}

#[test]
fn stored_designs_parse_even_if_a_later_rule_rejects_them() {
    let text = "tiering; granularity=run; trigger=prefix(8MiB); buffer=64MiB";
    let refused = text.parse::<Design>().unwrap_err();
    assert!(refused.to_string().contains("nothing would ever be merged"), "{refused}");
    let stored = Design::stored(text).unwrap();
    assert_eq!(stored.validate(), Err(refused));
    assert_eq!(Design::stored(&stored.to_string()), Ok(stored));
    assert!(Design::stored("tiering T=1").is_err());
}

#[test]
fn nonsense_is_rejected_with_the_expected_values() {
    for (text, part) in [
        ("", "one of"),
        ("sideways", "one of"),
        ("leveling T=1", "2 to 1000"),
        ("leveling T=x", "whole number"),
        ("leveling speed=9", "T, L0"),
        ("leveling; stop", "settings such as"),
        ("leveling; movement=upwards", "round-robin"),
        ("leveling; filter=70", "0 to 64"),
        ("leveling; filter=NaN", "0 to 64"),
        ("leveling; block=1", "64 bytes"),
        ("leveling L0=20", "at least L0"),
        ("leveling; delay=9; stop=9", "more than delay"),
        ("leveling; memtable=skiplist(height=99)", "1 to 20"),
        ("leveling; memtable=skiplist(branching=1)", "2 to 16"),
        ("leveling; memtable=trie", "hash-skiplist(prefix=6"),
        ("leveling; memtable=btree(height=3)", "auto, btree, skiplist("),
        ("leveling; memtable=vector(prealloc=1GiB)", "at most twice the buffer of 64MiB"),
        ("leveling; memtable=vector(prealloc=lots)", "a number of bytes"),
        ("leveling; memtable=vector(query=never)", "resort, copy or scan"),
        ("leveling; memtable=vector(query)", "settings such as"),
        ("leveling; memtable=hash-skiplist", "first bytes of a key"),
        ("leveling; memtable=hash-skiplist(prefix=6)", "number of buckets"),
        ("leveling; memtable=hash-skiplist(prefix=300,buckets=9)", "0 to 255"),
        ("leveling; memtable=hash-skiplist(prefix=6,buckets=0)", "1 to 4194304"),
        ("leveling; memtable=hash-skiplist(prefix=6,buckets=9", "auto, btree, skiplist("),
        ("leveling; memtable=hash-linkedlist(prefix=6,buckets=90000000)", "half of the buffer"),
        ("leveling; memtable=hash-linkedlist(prefix=1,prefix=2,buckets=9)", "prefix once"),
        ("leveling; memtable=hash-vector(prefix=6)", "no buckets"),
        ("leveling; memtable=hash-linkedlist(prefix=6,buckets=9,view=none)", "kept or copy"),
        ("leveling; buffers=0", "1 to 1000"),
        ("1-leveling; flush=never", "new or merge"),
        ("leveling; flush=merge", "at least 2 for flush=merge"),
        ("asterixdb-prefix; flush=merge", "the policy of the trigger"),
        ("hybrid", "runs="),
        ("hybrid runs=0", "1 to 1000 runs"),
        ("leveling; growth=bush", "bush(1 to 4)"),
        ("leveling base=1MiB; growth=2MiB,4MiB", "base=auto"),
        ("leveling; granularity=run", "no level of this design gathers"),
        ("leveling; granularity=level; movement=coldest", "nothing to choose"),
        ("leveling; movement=none", "need a rule"),
        ("leveling; movement=expired-ttl", "tombstone-ttl(TIME)"),
        ("leveling; movement=oldest+coldest", "never consulted"),
        ("leveling; movement=oldest+oldest", "twice"),
        ("leveling; movement=oldest+least-overlap", "never consulted"),
        ("leveling; movement=least-overlap+oldest", "never consulted"),
        ("leveling; movement=round-robin,none", "need a rule"),
        ("tiering; granularity=run; trigger=universal+run-count", "by other rules"),
        ("tiering; granularity=run; trigger=universal,universal", "the same triggers"),
        ("leveling; granularity=level; trigger=universal", "use tiering"),
        ("tiering; granularity=file; trigger=universal", "use granularity=run"),
        ("tiering; granularity=run,file; trigger=universal", "use granularity=run"),
        ("leveling; trigger=run-count+run-count", "twice"),
        ("leveling; trigger=tombstone-ttl", "a time"),
        ("leveling; trigger=manual", "stop=never"),
        ("leveling; trigger=manual+run-count; stop=never; delay=never", "no effect"),
        ("leveling; filter=monkey(x)", "monkey(10)"),
        ("leveling; stall=half", "runs or full"),
        ("leveling; delay=never; stop=99", "more than delay"),
        ("tiering; granularity=run; trigger=prefix(8MiB,4); buffer=16MiB", "buffer of 16MiB"),
        ("tiering; granularity=run; trigger=prefix(,4)", "as in 'prefix(1GiB,5,1.2)'"),
        ("leveling; memtable=hash-vector", "buckets=100000"),
        ("leveling; memtable=hash-skiplist(prefix=6)", "buckets=100000"),
        ("leveling; trigger=file-count(x)", "file-count"),
    ] {
        let error = text.parse::<Design>().unwrap_err();
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}

#[test]
fn choices_that_suit_some_level_are_accepted() {
    for text in [
        // Earlier versions accepted two rules that each rank all tables.
        "leveling; movement=least-overlap+round-robin",
        // Runs gather only in level 0, or only below it.
        "leveling L0=2; granularity=run",
        "1-leveling L0=4; granularity=run",
        "tiering L0=1; granularity=run",
    ] {
        assert!(text.parse::<Design>().is_ok(), "{text}");
    }
}

#[test]
fn examples_of_memtables_print_as_they_are_written() {
    for example in MemtableKind::EXAMPLES {
        let design: Design = format!("leveling; buffer=1KiB; memtable={example}").parse().unwrap();
        assert_eq!(design.memtable.to_string(), *example);
    }
}

#[test]
fn memtables_print_and_parse_back() {
    for (text, printed) in [
        ("auto", "auto"),
        ("btree", "btree"),
        ("skiplist(height=12)", "skiplist"),
        ("skiplist(branching=2, height=3)", "skiplist(branching=2,height=3)"),
        ("vector", "vector"),
        ("vector(prealloc=11MiB)", "vector(prealloc=11MiB)"),
        ("vector(query=copy, prealloc=4096)", "vector(prealloc=4KiB,query=copy)"),
        ("hash-skiplist(prefix=6,buckets=100000)", "hash-skiplist(prefix=6,buckets=100000)"),
        (
            "hash-skiplist(view=copy,buckets=1,prefix=0,height=4)",
            "hash-skiplist(prefix=0,buckets=1,height=4,view=copy)",
        ),
        ("vector(query=scan)", "vector(query=scan)"),
        ("hash-vector(buckets=10,prefix=255)", "hash-vector(buckets=10)"),
        (
            "hash-vector(prefix=4, buckets=10,view=copy)",
            "hash-vector(buckets=10,prefix=4,view=copy)",
        ),
        ("hash-linkedlist(prefix=6,buckets=10)", "hash-linkedlist(prefix=6,buckets=10)"),
        (
            "hash-linkedlist(prefix=6,buckets=10,threshold=0)",
            "hash-linkedlist(prefix=6,buckets=10,threshold=0)",
        ),
    ] {
        let kind: MemtableKind = text.parse().unwrap();
        assert_eq!(kind.to_string(), printed);
        assert_eq!(printed.parse(), Ok(kind));
        let design: Design = format!("leveling; memtable={text}").parse().unwrap();
        assert_eq!(design.memtable, kind);
        assert_eq!(design.to_string().parse(), Ok(design));
    }
}
/// Earlier versions wrote these texts into databases.
#[test]
fn texts_of_earlier_versions_parse() {
    for text in [
        "1-leveling T=10 L0=4 base=256MiB; trigger=level-saturation+run-count; granularity=file; movement=least-overlap; memtable=btree; buffer=64MiB; table=32MiB; block=4KiB; filter=10; compression=none; delay=12; stop=24; buffers=3",
        "tiering T=10 L0=10 base=auto; trigger=run-count; granularity=level; movement=round-robin; memtable=skiplist; buffer=4000KiB; table=32MiB; block=4KiB; filter=0.5,1; compression=none,lz4; delay=20; stop=36; buffers=3",
        "leveling T=4 L0=1 base=auto; trigger=run-count; granularity=level; movement=round-robin+least-overlap; memtable=btree; buffer=64MiB; table=32MiB; block=4KiB; filter=10; compression=none; delay=12; stop=24; buffers=3",
    ] {
        assert_eq!(text.parse::<Design>().unwrap().to_string(), text);
    }
}

#[test]
fn monkey_gives_small_levels_more_bits_of_the_same_memory() {
    let design: Design = "leveling T=10; filter=monkey(10)".parse().unwrap();
    let bits: Vec<f64> = (0..5).map(|level| design.filter_bits_at(level, 4)).collect();
    assert!(bits.windows(2).all(|pair| pair[0] > pair[1]), "{bits:?}");
    assert!(bits[4] > 9.0 && bits[4] < 10.0, "{bits:?}");
    // Levels of several runs need lower rates, at the cost of the last level, which has one.
    let lazy: Design = "lazy-leveling T=10; filter=monkey(10)".parse().unwrap();
    let lazy: Vec<f64> = (0..5).map(|level| lazy.filter_bits_at(level, 4)).collect();
    assert!((1..4).all(|level| lazy[level] > bits[level] + 1.0), "{lazy:?} {bits:?}");
    assert!(lazy[4] < bits[4], "{lazy:?} {bits:?}");
    assert_eq!(design.to_string().parse(), Ok(design));
}
