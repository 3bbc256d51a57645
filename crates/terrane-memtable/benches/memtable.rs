//! Nanoseconds per operation of each kind of memtable: `cargo bench -p terrane-memtable`. An
//! argument selects the kinds whose names contain it.
//!
//! One line per measurement: `kind operation entries median-nanoseconds min max`. Kinds take turns
//! within a round, so that drift of the machine affects them alike.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]
#![allow(clippy::disallowed_types, reason = "a benchmark takes times")]
#![cfg(not(loom))]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use terrane_memtable::{
    Config, EntryKind, ExpectedKeys, MAX_SEQ, Memtable, Pool, SkipListConfig, VectorConfig,
    VectorQuery,
};
use terrane_testkit::Rng;

const ENTRIES: u64 = 500_000;
const ROUNDS: usize = 3;

fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&Rng::new(number).bits().to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn ordered(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

/// Returns a key with one of two prefixes.
fn prefixed(number: u64) -> Vec<u8> {
    let prefix = if number.is_multiple_of(2) { "key" } else { "counter" };
    format!("{prefix}:{:012}", Rng::new(number).below(1_000_000)).into_bytes()
}

const OPERATIONS: usize = 11;

/// The number of lookups and range reads to measure. It is low, because some structures are slow
/// at them.
const SOME: u64 = 2000;

/// Measures keys with prefixes: inserts into a memtable that expects no keys, and operations on one that
/// replaces it.
fn measure_prefixed(config: Config, pool: &Arc<Pool>) -> [(&'static str, f64); 3] {
    let keys: Vec<Vec<u8>> = (0..ENTRIES).map(prefixed).collect();
    let nanos = |start: Instant, count: u64| start.elapsed().as_nanos() as f64 / count as f64;
    let fill = |memtable: &Memtable| {
        let start = Instant::now();
        for (seq, key) in (1..).zip(&keys) {
            memtable.insert(key, seq, EntryKind::Value, b"xxx");
        }
        nanos(start, ENTRIES)
    };
    let first = Memtable::with_keys(config, pool, ExpectedKeys::Unknown);
    let insert_first = fill(&first);
    let memtable = Memtable::with_keys(config, pool, ExpectedKeys::Like(&first));
    let insert = fill(&memtable);
    let start = Instant::now();
    for number in 0..SOME {
        let wanted = &keys[(number * 7919 % ENTRIES) as usize];
        black_box(memtable.get(wanted, MAX_SEQ).unwrap());
    }
    let get = nanos(start, SOME);
    [("insert-prefixed-1st", insert_first), ("insert-prefixed", insert), ("get-prefixed", get)]
}

/// Measures ascending keys: inserts, lookups, and the two alternately.
fn measure_ascending(config: Config, pool: &Arc<Pool>) -> [f64; 3] {
    let nanos = |start: Instant, count: u64| start.elapsed().as_nanos() as f64 / count as f64;
    let value = [7; 100];
    let memtable = Memtable::new(config, pool);
    let start = Instant::now();
    for number in 0..ENTRIES {
        memtable.insert(&ordered(number), number + 1, EntryKind::Value, &value);
    }
    let insert_ascending = nanos(start, ENTRIES);
    let start = Instant::now();
    for number in 0..SOME {
        let wanted = ordered(number * 7919 % ENTRIES);
        black_box(memtable.get(&wanted, MAX_SEQ).unwrap());
    }
    let get_ascending = nanos(start, SOME);
    let start = Instant::now();
    for number in ENTRIES..ENTRIES + SOME {
        memtable.insert(&ordered(number), number + 1, EntryKind::Value, &value);
        black_box(memtable.get(&ordered(number * 7919 % ENTRIES), MAX_SEQ).unwrap());
    }
    [insert_ascending, get_ascending, nanos(start, SOME)]
}

fn measure(config: Config, pool: &Arc<Pool>) -> [(&'static str, f64); OPERATIONS] {
    let nanos = |start: Instant| start.elapsed().as_nanos() as f64 / ENTRIES as f64;
    let some = |start: Instant| start.elapsed().as_nanos() as f64 / SOME as f64;
    let value = [7; 100];
    let memtable = Memtable::new(config, pool);
    let start = Instant::now();
    for number in 0..ENTRIES {
        memtable.insert(&key(number), number + 1, EntryKind::Value, &value);
    }
    let insert = nanos(start);
    let start = Instant::now();
    for number in 0..SOME {
        let wanted = key(number * 7919 % ENTRIES);
        black_box(memtable.get(&wanted, MAX_SEQ).unwrap());
    }
    let get = some(start);
    let start = Instant::now();
    for number in 0..SOME {
        black_box(memtable.get(&key(ENTRIES + number), MAX_SEQ));
    }
    let get_missing = some(start);
    let mut cursor = memtable.cursor();
    cursor.seek_first();
    let start = Instant::now();
    for number in 0..SOME {
        cursor.seek(&key(number * 7919 % ENTRIES), MAX_SEQ);
        for _ in 0..10 {
            black_box(cursor.entry());
            cursor.next();
        }
    }
    let seek = some(start);
    let mut cursor = memtable.cursor();
    let start = Instant::now();
    cursor.seek_first();
    while let Some(entry) = cursor.entry() {
        black_box(entry);
        cursor.next();
    }
    let walk = nanos(start);
    let [insert_ascending, get_ascending, in_turn] = measure_ascending(config, pool);
    let [prefixed_first, prefixed, get_prefixed] = measure_prefixed(config, pool);
    [
        ("insert-random", insert),
        ("get-random", get),
        ("get-missing", get_missing),
        ("seek-and-10", seek),
        ("walk", walk),
        ("insert-ascending", insert_ascending),
        ("get-ascending", get_ascending),
        ("ascending-in-turn", in_turn),
        prefixed_first,
        prefixed,
        get_prefixed,
    ]
}

fn main() {
    let mut kinds: Vec<(String, Config)> = Config::usual(ENTRIES as usize)
        .into_iter()
        .map(|config| (config.kind().to_owned(), config))
        .collect();
    let dense = SkipListConfig { branching: 2, height: 20 };
    kinds.push(("SkipList(branching=2)".to_owned(), Config::SkipList(dense)));
    let scanned = VectorConfig { prealloc_bytes: 0, query: VectorQuery::Scan };
    kinds.push(("Vector(query=scan)".to_owned(), Config::Vector(scanned)));
    if let Some(wanted) = std::env::args().nth(1).filter(|argument| !argument.starts_with('-')) {
        kinds.retain(|(kind, _)| kind.contains(&wanted));
    }
    let pool = Pool::new(1 << 30);
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push(kinds.iter().map(|(_, config)| measure(*config, &pool)).collect::<Vec<_>>());
    }
    for (index, (kind, _)) in kinds.iter().enumerate() {
        for operation in 0..OPERATIONS {
            let mut nanos: Vec<f64> =
                rounds.iter().map(|round| round[index][operation].1).collect();
            nanos.sort_by(f64::total_cmp);
            let name = rounds[0][index][operation].0;
            let (min, median, max) = (nanos[0], nanos[ROUNDS / 2], nanos[ROUNDS - 1]);
            println!("{kind:24} {name:19} {ENTRIES} {median:8.1} {min:8.1} {max:8.1}");
        }
    }
}
