//! The cost of operations by kind of memtable and number of entries, in nanoseconds: the table by
//! which `memtable=auto` chooses. `cargo bench -p terrane-memtable --bench costs` prints it in the
//! form of `terrane-policy/src/memtable_choice/costs.rs`.
//!
//! Kinds take turns, and every number is the minimum of several rounds.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]
#![allow(clippy::disallowed_types, reason = "a benchmark takes times")]
#![cfg(not(loom))]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use terrane_memtable::{
    BTreeConfig, Config, EntryKind, HashLinkedListConfig, HashSkipListConfig, HashVectorConfig,
    HashView, MAX_SEQ, Memtable, Pool, SkipListConfig, VectorConfig, VectorQuery,
};
use terrane_testkit::Rng;

const SIZES: [u64; 4] = [1 << 10, 1 << 13, 1 << 16, 1 << 19];
const ROUNDS: usize = 20;

/// The number of reads that most measurements make.
const READS: u64 = 1000;
/// The number of entries that a long walk visits.
const STEPS: u64 = 1000;

const OPERATIONS: [&str; 8] = [
    "insert",
    "insert_ascending",
    "lookup",
    "lookup_missing",
    "order",
    "seek",
    "seek_fresh",
    "step",
];

type Costs = [f64; OPERATIONS.len()];

fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&Rng::new(number).bits().to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Returns the nanoseconds per call of `count` calls.
fn each(count: u64, mut work: impl FnMut(u64)) -> f64 {
    let start = Instant::now();
    (0..count).for_each(&mut work);
    start.elapsed().as_nanos() as f64 / count as f64
}

fn measure(config: Config, count: u64, pool: &Arc<Pool>) -> Costs {
    let value = [7; 100];
    let put = |memtable: &Memtable, key: &[u8], number: u64| {
        memtable.insert(key, number + 1, EntryKind::Value, &value);
    };
    // Small memtables are filled several times, to have enough to measure.
    let fills = (20_000 / count).max(1);
    let many: Vec<Arc<Memtable>> = (0..fills).map(|_| Memtable::new(config, pool)).collect();
    let insert = each(fills * count, |step| {
        let number = step % count;
        put(&many[(step / count) as usize], &key(number), number);
    });
    let memtable = &many[0];
    let some = |number: u64| key(number.wrapping_mul(7919) % count);
    // The first read of a vector sorts its entries; `order` includes the time for that.
    let sort = |memtable: &Arc<Memtable>| {
        let start = Instant::now();
        let mut cursor = memtable.cursor();
        cursor.seek_first();
        black_box(cursor.entry());
        start.elapsed().as_nanos() as f64 / count as f64
    };
    let is_lookup_sorting =
        matches!(config, Config::Vector(VectorConfig { query: VectorQuery::Resort, .. }));
    let mut order = if is_lookup_sorting { sort(memtable) } else { 0.0 };
    let lookup = each(READS, |number| {
        black_box(memtable.get(&some(number), MAX_SEQ).unwrap());
    });
    let lookup_missing = each(READS, |number| {
        black_box(memtable.get(&key(count + number), MAX_SEQ));
    });
    if !is_lookup_sorting {
        order = sort(memtable);
    }
    let mut cursor = memtable.cursor();
    let seek = each(READS, |number| {
        cursor.seek(&some(number), MAX_SEQ);
        black_box(cursor.entry());
    });
    let step = each(READS / 50, |number| {
        cursor.seek(&some(number), MAX_SEQ);
        for _ in 0..STEPS {
            black_box(cursor.entry());
            cursor.next();
        }
    }) / STEPS as f64;
    let mut seeking = 0;
    for number in 0..READS {
        put(memtable, &key(2 * count + number), 2 * count + number);
        let start = Instant::now();
        cursor.seek(&some(number), MAX_SEQ);
        black_box(cursor.entry());
        seeking += start.elapsed().as_nanos();
    }
    let seek_fresh = seeking as f64 / READS as f64;
    let many: Vec<Arc<Memtable>> = (0..fills).map(|_| Memtable::new(config, pool)).collect();
    let insert_ascending = each(fills * count, |step| {
        let number = step % count;
        let mut key = [0; 16];
        key[..8].copy_from_slice(&number.to_be_bytes());
        put(&many[(step / count) as usize], &key, number);
    });
    [insert, insert_ascending, lookup, lookup_missing, order, seek, seek_fresh, step]
}

fn main() {
    let pool = Pool::new(1 << 30);
    let kinds = |count: u64| {
        let vector = |query| Config::Vector(VectorConfig { prealloc_bytes: 0, query });
        let buckets = usize::try_from(count).unwrap();
        [
            ("BTREE", Config::BTree(BTreeConfig)),
            ("SKIP_LIST", Config::SkipList(SkipListConfig { branching: 4, height: 12 })),
            ("VECTOR", vector(VectorQuery::Resort)),
            ("VECTOR_SCANNED", vector(VectorQuery::Scan)),
            (
                "HASH_VECTOR",
                Config::HashVector(HashVectorConfig { prefix: 255, buckets, view: HashView::Kept }),
            ),
            (
                "HASH_SKIP_LIST",
                Config::HashSkipList(HashSkipListConfig {
                    prefix: 8,
                    buckets,
                    height: 12,
                    view: HashView::Kept,
                }),
            ),
            (
                "HASH_LINKED_LIST",
                Config::HashLinkedList(HashLinkedListConfig {
                    prefix: 8,
                    buckets,
                    threshold: 256,
                    view: HashView::Kept,
                }),
            ),
        ]
    };
    let mut best = vec![[[f64::INFINITY; OPERATIONS.len()]; SIZES.len()]; kinds(1).len()];
    for _ in 0..ROUNDS {
        for (size, &count) in SIZES.iter().enumerate() {
            for (kind, (_, config)) in kinds(count).into_iter().enumerate() {
                let costs = measure(config, count, &pool);
                let best = &mut best[kind][size];
                best.iter_mut().zip(costs).for_each(|(best, cost)| *best = best.min(cost));
            }
        }
    }
    for ((name, _), sizes) in kinds(1).iter().zip(&best) {
        println!("pub(super) const {name}: KindCosts = KindCosts {{");
        for (operation, name) in OPERATIONS.iter().enumerate() {
            let values = sizes.map(|costs| format!("{:.0}.0", costs[operation]));
            println!("    {name}: [{}],", values.join(", "));
        }
        println!("}};");
    }
}
