//! A B-tree whose heads leave out prefixes of its keys, learned from the previous memtable or its own keys.
#![cfg(not(any(loom, miri)))]
#![allow(missing_docs, reason = "tests")]

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use terrane_memtable::{
    BTreeConfig, Config, DrainInsert, Entry, EntryKind, ExpectedKeys, FloDbConfig, Lookup,
    LowerLevel, MAX_SEQ, Memtable, Pool, Update,
};
use terrane_testkit::Rng;

fn after(prefixes: &[&str]) -> Arc<Memtable> {
    let (pool, config) = (Pool::new(0), Config::BTree(BTreeConfig));
    let before = Memtable::with_keys(config, &pool, ExpectedKeys::Unknown);
    for number in 0..6000 {
        let prefix = prefixes[number % prefixes.len()];
        let key = format!("{prefix}{:04}", number * 7919 % 10_000);
        before.insert(key.as_bytes(), 1, EntryKind::Value, b"");
    }
    Memtable::with_keys(config, &pool, ExpectedKeys::Like(&before))
}

fn random_key(rng: &mut Rng) -> Vec<u8> {
    let prefixes = ["user:00", "user:00", "user:00", "user:", "us", "customer:", "v", ""];
    let mut key = rng.pick(&prefixes).as_bytes().to_vec();
    (0..rng.index(5)).for_each(|_| key.push(*rng.pick(b"\x000129\xff")));
    key
}

/// A memtable without a predecessor, and its first keys, which have these prefixes.
fn first(prefixes: &[&str]) -> (Arc<Memtable>, Vec<Vec<u8>>) {
    let (pool, config) = (Pool::new(0), Config::BTree(BTreeConfig));
    let key = |number: usize| format!("{}{number:09}", prefixes[number % prefixes.len()]);
    let keys = (0..2000).map(|number| key(number).into_bytes()).collect();
    (Memtable::with_keys(config, &pool, ExpectedKeys::Unknown), keys)
}

#[test]
fn keys_with_and_without_the_expected_prefix_are_in_order() {
    for prefixes in [&["user:00"][..], &["user:00", "us", "customer:"], &[""]] {
        check_order(&after(prefixes), Vec::new());
        let (memtable, keys) = first(prefixes);
        check_order(&memtable, keys);
    }
}

/// Inserts some keys, one by one, and then random ones, and compares with a model.
fn check_order(memtable: &Arc<Memtable>, first_keys: Vec<Vec<u8>>) {
    let mut rng = Rng::new(terrane_testkit::seed_from_env(11));
    let mut model = BTreeMap::new();
    let mut seq = 0;
    for key in first_keys {
        seq += 1;
        memtable.insert(&key, seq, EntryKind::Value, &key);
        model.insert((key, Reverse(seq)), seq);
    }
    while seq < 8000 {
        let group: Vec<(Vec<u8>, u64)> =
            (1..=1 + rng.index(20) as u64).map(|by| (random_key(&mut rng), seq + by)).collect();
        let entry = |(key, seq): &(Vec<u8>, u64)| model.insert((key.clone(), Reverse(*seq)), *seq);
        group.iter().map(entry).for_each(drop);
        seq += group.len() as u64;
        let entries = group.iter().map(|(key, seq)| Entry {
            key,
            seq: *seq,
            kind: EntryKind::Value,
            value: key,
        });
        if rng.index(2) == 0 {
            memtable.insert_all(&entries.collect::<Vec<_>>());
        } else {
            entries.for_each(|entry| {
                memtable.insert(entry.key, entry.seq, entry.kind, entry.value);
            });
        }
    }
    let mut cursor = memtable.cursor();
    cursor.seek_first();
    for (key, Reverse(seq)) in model.keys() {
        let found = cursor.entry().map(|entry| (entry.key, entry.seq, entry.value));
        assert_eq!(found, Some((&key[..], *seq, &key[..])));
        cursor.next();
    }
    assert!(!cursor.is_valid());
    for _ in 0..2000 {
        let (key, at) = (random_key(&mut rng), rng.index(8000) as u64);
        let from = (key.clone(), Reverse(at));
        let expected = model.range(&from..).next().map(|((key, seq), _)| (key.clone(), seq.0));
        cursor.seek(&key, at);
        let found = cursor.entry().map(|entry| (entry.key.to_vec(), entry.seq));
        assert_eq!(found, expected);
        let expected = expected.filter(|(found, _)| *found == key);
        assert_eq!(memtable.get(&key, at).map(|entry| (entry.key.to_vec(), entry.seq)), expected);
        cursor.seek_before(&key);
        let before = model.range(..&(key, Reverse(MAX_SEQ))).next_back();
        let before = before.map(|((key, seq), _)| (key.clone(), seq.0));
        assert_eq!(cursor.entry().map(|entry| (entry.key.to_vec(), entry.seq)), before);
    }
}

/// Threads insert keys with prefixes that no earlier memtable had, one prefix after another, while others look them up.
#[test]
fn a_memtable_that_learns_prefixes_loses_nothing() {
    const PREFIXES: [&str; 4] = ["key:000000", "counter:000000", "", "counter:000000000000"];
    const WRITERS: u32 = 3;
    let flodb = FloDbConfig {
        buckets: 64,
        partition_bits: 2,
        lower: LowerLevel::BTree,
        insert: DrainInsert::Multi,
        update: Update::InPlace,
    };
    for config in [Config::BTree(BTreeConfig), Config::FloDb(flodb)] {
        let memtable = Memtable::with_keys(config, &Pool::new(0), ExpectedKeys::Unknown);
        let key = |number: u32| {
            let prefix = PREFIXES[(number / 6000) as usize];
            format!("{prefix}{:06}", number * 7919 % 1_000_000).into_bytes()
        };
        let written: [AtomicU32; WRITERS as usize] = Default::default();
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (memtable, written) = (&memtable, &written);
                scope.spawn(move || {
                    for number in (writer..24_000).step_by(WRITERS as usize) {
                        let seq = u64::from(number) + 1;
                        memtable.insert(&key(number), seq, EntryKind::Value, &key(number));
                        written[writer as usize].store(number + 1, Ordering::Release);
                    }
                });
            }
            scope.spawn(|| {
                let mut rng = Rng::new(terrane_testkit::seed_from_env(7));
                let until = || written.each_ref().map(|until| until.load(Ordering::Acquire));
                while until().iter().min() < Some(&23_990) {
                    let until = until();
                    let mut numbers: Vec<u32> = (0..20).map(|_| rng.index(24_000) as u32).collect();
                    numbers.retain(|number| *number < until[(number % WRITERS) as usize]);
                    let keys: Vec<Vec<u8>> = numbers.into_iter().map(key).collect();
                    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
                    let mut found = 0;
                    memtable.look_up_all_held(&keys, MAX_SEQ, |at, lookup| {
                        found += usize::from(matches!(lookup, Lookup::Found(..)));
                        let entry = memtable.get(keys[at], MAX_SEQ);
                        assert_eq!(entry.map(|entry| entry.value), Some(keys[at]));
                    });
                    assert_eq!(found, keys.len());
                }
            });
        });
        let all: BTreeMap<Vec<u8>, u32> = (0..24_000).map(|number| (key(number), number)).collect();
        let mut cursor = memtable.cursor();
        cursor.seek_first();
        for (key, number) in &all {
            let entry = cursor.entry().expect("as many entries as were inserted");
            assert_eq!((entry.key, entry.seq), (&key[..], u64::from(*number) + 1));
            cursor.next();
            assert!(memtable.get(key, MAX_SEQ).is_some());
        }
        assert!(!cursor.is_valid());
    }
}
