//! Every kind of memtable against a `BTreeMap`, one macro line a kind.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane_memtable::{
    Config, Cursor, DrainInsert, EntryKind, FloDbConfig, MAX_SEQ, Memtable, Pool, SeqNo, Update,
};
use terrane_testkit::{Rng, seed_from_env};

/// The oracle: versions in memtable order.
type Oracle = BTreeMap<Version, (EntryKind, Vec<u8>)>;

/// A version of a key, in memtable order.
type Version = (Vec<u8>, Reverse<SeqNo>);

/// How often something is done: less under Miri, which takes a thousand times as long.
fn some(count: u64) -> u64 {
    if cfg!(miri) { count / 50 } else { count }
}

/// Keys that are empty, short, long, equal in their first bytes, or full of zeros.
fn random_key(rng: &mut Rng) -> Vec<u8> {
    let alphabet: &[u8] = if rng.percent(50) { b"ab\0" } else { b"\0\x01\x7f\x80\xff" };
    let prefix: &[u8] = if rng.percent(30) { b"commonprefix" } else { b"" };
    let len = if rng.percent(2) { 200 } else { rng.index(5) };
    prefix.iter().copied().chain((0..len).map(|_| *rng.pick(alphabet))).collect()
}

fn random_value(rng: &mut Rng) -> Vec<u8> {
    let longest = if cfg!(miri) { 20_000 } else { 100_000 };
    let len = if rng.percent(1) { longest } else { rng.index(30) };
    (0..len).map(|_| rng.bits() as u8).collect()
}

fn fill(memtable: &Memtable, rng: &mut Rng, count: u64) -> Oracle {
    let mut oracle = Oracle::new();
    for seq in 1..=count {
        let key = random_key(rng);
        let (kind, value) = if rng.percent(20) {
            (EntryKind::Tombstone, Vec::new())
        } else {
            (EntryKind::Value, random_value(rng))
        };
        memtable.insert(&key, seq, kind, &value);
        oracle.insert((key, Reverse(seq)), (kind, value));
    }
    oracle
}

fn assert_at(cursor: &Cursor, expected: Option<(&Version, &(EntryKind, Vec<u8>))>) {
    let found = cursor.entry().map(|entry| (entry.key, entry.seq, entry.kind, entry.value));
    let expected = expected.map(|((key, seq), (kind, value))| (&key[..], seq.0, *kind, &value[..]));
    assert_eq!(found, expected);
    assert_eq!(cursor.is_valid(), expected.is_some());
    assert_eq!(cursor.pin_value().as_deref(), expected.map(|entry| entry.3));
}

fn gets_find_the_newest_version_not_above_a_seq(config: Config) {
    let mut rng = Rng::new(seed_from_env(11));
    let memtable = Memtable::new(config, &Pool::new(0));
    let oracle = fill(&memtable, &mut rng, some(3000));
    for _ in 0..some(5000) {
        let (key, seq) = (random_key(&mut rng), rng.below(some(3100)));
        let mut versions = oracle.range((key.clone(), Reverse(seq))..=(key.clone(), Reverse(0)));
        let expected =
            versions.next().map(|((_, seq), (kind, value))| (seq.0, *kind, value.clone()));
        let pinned = memtable.get_pinned(&key, seq);
        let found = pinned.map(|(seq, kind, value)| (seq, kind, value.to_vec()));
        assert_eq!(found, expected);
        assert_eq!(memtable.get(&key, seq).map(|entry| entry.seq), expected.map(|found| found.0));
    }
    assert_eq!(memtable.len(), oracle.len());
}

fn cursors_walk_both_ways_and_seek(config: Config) {
    let mut rng = Rng::new(seed_from_env(12));
    let memtable = Memtable::new(config, &Pool::new(0));
    let oracle = fill(&memtable, &mut rng, some(2000));
    let mut cursor = memtable.cursor();
    assert_at(&cursor, None);
    cursor.seek_first();
    for entry in &oracle {
        assert_at(&cursor, Some(entry));
        cursor.next();
    }
    assert_at(&cursor, None);
    cursor.seek_last();
    for entry in oracle.iter().rev() {
        assert_at(&cursor, Some(entry));
        cursor.previous();
    }
    assert_at(&cursor, None);
    for _ in 0..some(1000) {
        let (key, seq) = (random_key(&mut rng), rng.below(some(2100)));
        cursor.seek(&key, seq);
        assert_at(&cursor, oracle.range((key.clone(), Reverse(seq))..).next());
        cursor.seek_before(&key);
        assert_at(&cursor, oracle.range(..(key.clone(), Reverse(MAX_SEQ))).next_back());
    }
}

fn an_empty_memtable_has_nothing(config: Config) {
    let memtable = Memtable::new(config, &Pool::new(0));
    assert!(memtable.is_empty());
    assert_eq!(memtable.get(b"", MAX_SEQ), None);
    let mut cursor = memtable.cursor();
    for step in [Cursor::seek_first, Cursor::seek_last, Cursor::next, Cursor::previous] {
        step(&mut cursor);
        assert_at(&cursor, None);
    }
    memtable.insert(b"", 1, EntryKind::Value, b"");
    assert_eq!(memtable.get(b"", 0), None);
    assert_eq!(memtable.get(b"", 1).map(|entry| entry.value), Some(&b""[..]));
}

fn pinned_values_outlive_their_memtable(config: Config) {
    let memtable = Memtable::new(config, &Pool::new(0));
    memtable.insert(b"k", 1, EntryKind::Value, b"value");
    let (_, _, value) = memtable.get_pinned(b"k", 1).unwrap();
    let mut cursor = memtable.cursor();
    cursor.seek_first();
    drop(memtable);
    let copy = value.clone();
    drop(value);
    assert_eq!(std::thread::spawn(move || copy.to_vec()).join().unwrap(), b"value");
    assert_eq!(cursor.entry().unwrap().value, b"value");
}

fn ascending_keys_and_all_heights_are_found(config: Config) {
    let memtable = Memtable::new(config, &Pool::new(0));
    for number in 0..some(5000) {
        let key = number.to_be_bytes();
        memtable.insert(&key, number + 1, EntryKind::Value, &key);
        if number % 100 == 50 {
            memtable.insert(
                &(number / 2).to_be_bytes(),
                10_000 + number,
                EntryKind::Value,
                b"again",
            );
        }
    }
    let mut cursor = memtable.cursor();
    cursor.seek_first();
    let mut walked = 0;
    let mut last = Vec::new();
    while let Some(entry) = cursor.entry() {
        assert!(entry.key >= &last[..]);
        last = entry.key.to_vec();
        walked += 1;
        cursor.next();
    }
    assert_eq!(walked, some(5000) + some(50));
}

fn concurrent_writers_lose_nothing_and_readers_see_order(config: Config) {
    let memtable = Memtable::new(config, &Pool::new(0));
    let next_seq = AtomicU64::new(1);
    let seed = seed_from_env(13);
    let oracles: Vec<Oracle> = std::thread::scope(|scope| {
        let write = |thread: u64| {
            let (memtable, next_seq) = (Arc::clone(&memtable), &next_seq);
            move || {
                let mut rng = Rng::new(seed + thread);
                let mut oracle = Oracle::new();
                for step in 0..some(3000) {
                    let seq = next_seq.fetch_add(1, Ordering::Relaxed);
                    // Some keys of this thread alone, some of all, some ascending.
                    let key = match step % 3 {
                        0 => random_key(&mut rng),
                        1 => format!("t{thread}-{}", rng.below(500)).into_bytes(),
                        _ => seq.to_be_bytes().to_vec(),
                    };
                    let value = random_value(&mut rng);
                    memtable.insert(&key, seq, EntryKind::Value, &value);
                    let found = memtable.get(&key, seq).unwrap();
                    assert_eq!((found.seq, found.value), (seq, &value[..]));
                    oracle.insert((key, Reverse(seq)), (EntryKind::Value, value));
                }
                oracle
            }
        };
        let writers: Vec<_> = (0..4).map(|thread| scope.spawn(write(thread))).collect();
        scope.spawn(|| {
            for _ in 0..some(20).max(2) {
                let mut cursor = memtable.cursor();
                cursor.seek_first();
                let mut last: Option<(Vec<u8>, Reverse<SeqNo>)> = None;
                while let Some(entry) = cursor.entry() {
                    let here = (entry.key.to_vec(), Reverse(entry.seq));
                    assert!(last.is_none_or(|last| last < here));
                    last = Some(here);
                    cursor.next();
                }
            }
        });
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let oracle: Oracle = oracles.into_iter().flatten().collect();
    let mut cursor = memtable.cursor();
    cursor.seek_first();
    for entry in &oracle {
        assert_at(&cursor, Some(entry));
        cursor.next();
    }
    assert_at(&cursor, None);
}

fn memory_is_counted(config: Config) {
    let memtable = Memtable::new(config, &Pool::new(0));
    let mut data = 0;
    for number in 0..some(1000) {
        let value = vec![7; usize::try_from(number % 50).unwrap()];
        memtable.insert(&number.to_be_bytes(), number + 1, EntryKind::Value, &value);
        data += 8 + value.len();
    }
    let memory = memtable.memory();
    assert_eq!(memory.data_bytes, data);
    assert!(memory.metadata_bytes > 0);
    assert_eq!(memory.total_bytes(), memory.used_bytes() + memory.unused_bytes);
    memtable.insert_range_tombstone(b"a", Some(b"b"), 2000);
    assert!(memtable.memory().metadata_bytes > memory.metadata_bytes);
    assert!(!memtable.is_empty());
}

macro_rules! conformance {
    ($($kind:ident: $config:expr),* $(,)?) => {$(
        mod $kind {
            use super::*;

            #[test]
            fn gets_find_the_newest_version_not_above_a_seq() {
                super::gets_find_the_newest_version_not_above_a_seq($config);
            }
            #[test]
            fn cursors_walk_both_ways_and_seek() {
                super::cursors_walk_both_ways_and_seek($config);
            }
            #[test]
            fn an_empty_memtable_has_nothing() {
                super::an_empty_memtable_has_nothing($config);
            }
            #[test]
            fn pinned_values_outlive_their_memtable() {
                super::pinned_values_outlive_their_memtable($config);
            }
            #[test]
            fn ascending_keys_and_all_heights_are_found() {
                super::ascending_keys_and_all_heights_are_found($config);
            }
            #[test]
            fn concurrent_writers_lose_nothing_and_readers_see_order() {
                super::concurrent_writers_lose_nothing_and_readers_see_order($config);
            }
            #[test]
            fn memory_is_counted() {
                super::memory_is_counted($config);
            }
        }
    )*};
}

conformance! {
    skip_list: Config::SkipList { branching: 4, height: 12 },
    skip_list_of_height_1: Config::SkipList { branching: 2, height: 1 },
    skip_list_dense: Config::SkipList { branching: 2, height: 20 },
    btree: Config::BTree,
    flodb: flodb(64, 3, DrainInsert::Multi),
    flodb_without_membuffer: flodb(0, 0, DrainInsert::Multi),
    flodb_of_one_bucket: flodb(1, 4, DrainInsert::Single),
    flodb_that_holds_everything: flodb(8192, 6, DrainInsert::Single),
}

fn flodb(buckets: usize, partition_bits: u8, insert: DrainInsert) -> Config {
    Config::FloDb(FloDbConfig { buckets, partition_bits, insert, update: Update::InPlace })
}
