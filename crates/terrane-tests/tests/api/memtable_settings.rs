//! Every setting of every memtable does something: memory, a count or processor time that must change with it.

use std::sync::Arc;
use std::time::Duration;

use terrane::storage::MemoryStorage;
use terrane::{Background, Db, Options};
use terrane_testkit::HangGuard;

use crate::rotation_cpu::cpu_micros;
use crate::support::DIR;

/// Opens an empty database whose memtable holds 64 MiB.
fn open(memtable: &str, background: Background) -> Db {
    let design = format!("leveling; buffer=64MiB; memtable={memtable}").parse().unwrap();
    let options = Options::new().design(design).memory_budget(1 << 30).background(background);
    options.storage(Arc::new(MemoryStorage::new(1))).open(DIR).unwrap()
}

/// Keys whose first four bytes are equal, and whose order is random.
fn key(number: u64) -> [u8; 12] {
    let mut key = *b"same........";
    key[4..].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key
}

fn fill(db: &Db, keys: std::ops::Range<u64>) {
    keys.for_each(|number| db.put(key(number), [7; 20]).unwrap());
}

/// Returns the memory of a memtable with this many keys.
fn bytes(memtable: &str, keys: u64) -> u64 {
    let db = open(memtable, Background::Inline);
    fill(&db, 0..keys);
    db.tree().memtable_bytes
}

/// Asserts that one of two settings takes more memory, by at least `least` bytes.
fn assert_more_memory(less: &str, more: &str, keys: u64, least: u64) {
    let (small, large) = (bytes(less, keys), bytes(more, keys));
    assert!(large >= small + least, "{less}: {small}, {more}: {large} bytes");
}

/// Returns the least processor time of an operation, in microseconds.
fn least_micros(mut operation: impl FnMut()) -> u64 {
    let once = |_| {
        let before = cpu_micros();
        operation();
        cpu_micros() - before
    };
    (0..5).map(once).min().unwrap()
}

/// Asserts that one of two settings takes at least five times as long.
fn assert_slower(quick: &str, slow: &str, micros: impl Fn(&str) -> u64) {
    let (short, long) = (micros(quick), micros(slow));
    assert!(long > 5 * short.max(5), "{quick}: {short}, {slow}: {long} µs");
}

#[test]
fn settings_of_the_skip_list_change_its_memory() {
    const KEYS: u64 = 4000;
    // The mean height of a node is 1.07 or 2.
    assert_more_memory(
        "skiplist(branching=16,height=12)",
        "skiplist(branching=2,height=12)",
        KEYS,
        5 * KEYS,
    );
    assert_more_memory(
        "skiplist(branching=2,height=1)",
        "skiplist(branching=2,height=12)",
        KEYS,
        5 * KEYS,
    );
}

#[test]
fn settings_of_the_vector_change_its_costs() {
    // The system provides preallocated pages when they are used; the array of their entries counts at once.
    assert_more_memory("vector", "vector(prealloc=8MiB)", 1, 20_000);
    // A lookup sorts the few entries that are new, or all.
    assert_slower("vector", "vector(query=copy)", |memtable| {
        let db = open(memtable, Background::Inline);
        fill(&db, 0..20_000);
        db.get(key(1)).unwrap().unwrap();
        let mut number = 20_000;
        least_micros(|| {
            fill(&db, number..number + 1);
            number += 1;
            assert!(db.get(key(number)).unwrap().is_none());
        })
    });
    // The first lookup sorts everything, or compares hashes.
    assert_slower("vector(query=scan)", "vector", |memtable| {
        least_micros_of_first_get(memtable, 20_000)
    });
}

fn least_micros_of_first_get(memtable: &str, keys: u64) -> u64 {
    let once = |_| {
        let db = open(memtable, Background::Inline);
        fill(&db, 0..keys);
        let before = cpu_micros();
        db.get(key(1)).unwrap().unwrap();
        cpu_micros() - before
    };
    (0..5).map(once).min().unwrap()
}

#[test]
fn settings_of_hashed_memtables_change_memory_and_costs() {
    const KEYS: u64 = 4000;
    for kind in ["hash-skiplist", "hash-linkedlist", "hash-vector"] {
        let few = format!("{kind}(prefix=12,buckets=1000)");
        let many = format!("{kind}(prefix=12,buckets=200000)");
        assert_more_memory(&few, &many, 1, 190_000 * 8);
        // All keys share four bytes and differ in the next eight: one bucket has all of them, or each has its own.
        let one = format!("{kind}(prefix=4,buckets=200000)");
        if kind == "hash-vector" {
            assert_slower(&many, &one, |memtable| least_micros_of_first_get(memtable, 20_000));
        } else {
            let (one, own) = (bytes(&one, KEYS), bytes(&many, KEYS));
            assert!(one.abs_diff(own) > 4 * KEYS, "{kind}: {one} and {own} bytes");
        }
        // A range beyond a prefix sorts everything once, or each time.
        let kept = format!("{kind}(prefix=12,buckets=1000,view=kept)");
        let copy = format!("{kind}(prefix=12,buckets=1000,view=copy)");
        assert_slower(&kept, &copy, |memtable| {
            let db = open(memtable, Background::Inline);
            fill(&db, 0..20_000);
            least_micros(|| assert!(db.iter().unwrap().advance().unwrap()))
        });
    }
    assert_more_memory(
        "hash-skiplist(prefix=4,buckets=1,height=1)",
        "hash-skiplist(prefix=4,buckets=1,height=12)",
        KEYS,
        KEYS,
    );
    // A bucket of all keys stays a list, or becomes a skip-list, which a lookup need not walk.
    assert_slower(
        "hash-linkedlist(prefix=4,buckets=1,threshold=256)",
        "hash-linkedlist(prefix=4,buckets=1,threshold=0)",
        |memtable| {
            let db = open(memtable, Background::Inline);
            fill(&db, 0..KEYS);
            least_micros(|| (0..100).for_each(|number| drop(db.get(key(number * 40)).unwrap())))
        },
    );
}

/// A tree's first memtable has no Membuffer until it has received a thousand keys.
const LEARNED: u64 = 2000;

#[test]
fn settings_of_flodb_change_what_the_membuffer_takes() {
    assert_more_memory(
        "flodb(membuffer=10%,drain-threads=0)",
        "flodb(membuffer=80%,drain-threads=0)",
        LEARNED,
        3 << 20,
    );
    let none = "flodb(membuffer=0%,drain-threads=0)";
    let lower = |kind: &str| bytes(&format!("flodb(membuffer=0%,drain-threads=0,{kind})"), 20_000);
    let (btree, skiplist) = (lower("lower=btree"), lower("lower=skiplist"));
    assert!(btree.abs_diff(skiplist) > 4 * 20_000, "{btree} and {skiplist} bytes");
    let membuffer_writes = |memtable: &str, keys: &dyn Fn(u64) -> [u8; 12]| {
        let db = open(memtable, Background::Inline);
        fill(&db, 0..LEARNED);
        (0..20_000).for_each(|number| db.put(keys(number), [7; 20]).unwrap());
        db.stats().membuffer.writes
    };
    assert_eq!(membuffer_writes(none, &|number| key(LEARNED + number)), 0);
    // New keys of a small part of the key space fit into a Membuffer of one partition, but not into one of many.
    let narrow = |number: u64| {
        let mut key = *b"same........";
        key[4..].copy_from_slice(&(number << 20 | 1 << 63).to_be_bytes());
        key
    };
    let of = |bits: u8| format!("flodb(membuffer=10%,drain-threads=0,partition-bits={bits})");
    let (one, many) = (membuffer_writes(&of(0), &narrow), membuffer_writes(&of(8), &narrow));
    assert!(one > 19_000 && many < one / 4, "{one} and {many} writes in the Membuffer");
}

#[test]
fn drain_threads_drain_and_without_them_nothing_does() {
    let drained = |memtable: &str| {
        let db = open(memtable, Background::Threads);
        fill(&db, 0..100_000);
        (db.stats().membuffer.drained, db)
    };
    assert_eq!(drained("flodb(membuffer=5%,drain-threads=0)").0, 0);
    let (_, db) = drained("flodb(membuffer=5%,drain-threads=1)");
    let guard = HangGuard::new();
    while db.stats().membuffer.drained < 10_000 {
        guard.check(|| format!("{:?}", db.stats().membuffer));
        std::thread::sleep(Duration::from_millis(1));
    }
}
