//! The cost of operations by kind of memtable and number of entries, in nanoseconds: the table by
//! which `memtable=auto` chooses. `cargo bench -p terrane-memtable --bench costs` prints the file
//! `terrane-policy/src/memtable_choice/costs.txt`.
//!
//! Kinds take turns, and every number is the minimum of several rounds. With several threads, a number is
//! the time from the start of the first thread to the end of the last, per operation of one thread.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]
#![allow(clippy::disallowed_types, reason = "a benchmark takes times")]
#![cfg(not(loom))]

use std::fmt::Display;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use terrane_memtable::{
    BTreeConfig, Config, DrainInsert, EntryKind, FloDbConfig, HashLinkedListConfig,
    HashSkipListConfig, HashVectorConfig, HashView, LowerLevel, MAX_SEQ, Memtable, Pool,
    SkipListConfig, Update, VectorConfig, VectorQuery,
};
use terrane_testkit::Rng;

const SIZES: [u64; 4] = [1 << 10, 1 << 13, 1 << 16, 1 << 19];
const ROUNDS: usize = 20;
const THREADS: [u64; 2] = [1, 2];

/// The number of reads that most measurements make.
const READS: u64 = 1000;
/// The number of entries that a long walk visits.
const STEPS: u64 = 1000;

const WRITES: [&str; 3] = ["insert", "insert_ascending", "update"];
const READS_BY_NAME: [&str; 6] =
    ["lookup", "lookup_missing", "order", "seek", "seek_fresh", "step"];

type WriteCosts = [f64; WRITES.len()];
type ReadCosts = [f64; READS_BY_NAME.len()];

fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&Rng::new(number).bits().to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Runs `work` in `threads` threads, with the numbers below `count` divided among them. Returns the
/// nanoseconds per call of a thread.
fn each(threads: u64, count: u64, work: impl Fn(u64) + Sync) -> f64 {
    if threads == 1 {
        let start = Instant::now();
        (0..count).for_each(work);
        return start.elapsed().as_nanos() as f64 / count as f64;
    }
    let ready = AtomicU64::new(0);
    let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|thread| {
                let (work, ready) = (&work, &ready);
                scope.spawn(move || {
                    ready.fetch_add(1, Ordering::AcqRel);
                    while ready.load(Ordering::Acquire) < threads {
                        std::hint::spin_loop();
                    }
                    let start = Instant::now();
                    (thread..count).step_by(threads as usize).for_each(work);
                    (start, Instant::now())
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let start = spans.iter().map(|(start, _)| *start).min().unwrap();
    let end = spans.iter().map(|(_, end)| *end).max().unwrap();
    (end - start).as_nanos() as f64 * threads as f64 / count as f64
}

fn fill(memtable: &Memtable, key: &[u8], number: u64) {
    memtable.insert(key, number + 1, EntryKind::Value, &[7; 100]);
}

/// Returns the cost of inserting `count` keys into an empty memtable. Small memtables are filled
/// several times, so that there is enough to measure.
fn inserts(
    (config, threads, count): (Config, u64, u64),
    pool: &Arc<Pool>,
    key: impl Fn(u64) -> [u8; 16] + Sync,
) -> (f64, Arc<Memtable>) {
    let fills = (20_000 / count).max(1);
    let many: Vec<Arc<Memtable>> = (0..fills).map(|_| Memtable::new(config, pool)).collect();
    let insert = each(threads, fills * count, |step| {
        let number = step % count;
        fill(&many[(step / count) as usize], &key(number), number);
    });
    (insert, Arc::clone(&many[0]))
}

/// Returns the cost of overwriting a tenth of `count` keys.
fn updates(config: Config, threads: u64, count: u64, pool: &Arc<Pool>) -> f64 {
    let memtable = Memtable::new(config, pool);
    let keys = (count / 10).max(1);
    let seq = AtomicU64::new(1);
    let update = |number: u64| {
        let seq = seq.fetch_add(1, Ordering::Relaxed);
        let before = seq.saturating_sub(threads);
        memtable.update(&key(number % keys), seq, EntryKind::Value, &[7; 100], || before);
    };
    (0..keys).for_each(update);
    each(threads, 2 * keys, update)
}

fn measure_writes(config: Config, threads: u64, count: u64, pool: &Arc<Pool>) -> WriteCosts {
    let ascending = |number: u64| {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&number.to_be_bytes());
        key
    };
    let (insert, _) = inserts((config, threads, count), pool, key);
    let (insert_ascending, _) = inserts((config, threads, count), pool, ascending);
    [insert, insert_ascending, updates(config, threads, count, pool)]
}

fn measure_reads(config: Config, count: u64, pool: &Arc<Pool>) -> ReadCosts {
    let (insert, memtable) = inserts((config, 1, count), pool, key);
    let memtable = &memtable;
    let some = |number: u64| key(number.wrapping_mul(7919) % count);
    // The first read of a vector sorts its entries; `order` includes the time for that.
    let sort = |memtable: &Arc<Memtable>| {
        let start = Instant::now();
        let mut cursor = memtable.cursor();
        cursor.seek_first();
        black_box(cursor.entry());
        // A seek drains the partition that it leads to.
        let seeks = if matches!(config, Config::FloDb(_)) { READS } else { 0 };
        (0..seeks).for_each(|number| cursor.seek(&some(number), MAX_SEQ));
        start.elapsed().as_nanos() as f64 / count as f64
    };
    let is_lookup_sorting =
        matches!(config, Config::Vector(VectorConfig { query: VectorQuery::Resort, .. }));
    let mut order = if is_lookup_sorting { sort(memtable) } else { 0.0 };
    let lookup = each(1, READS, |number| {
        black_box(memtable.get(&some(number), MAX_SEQ).unwrap());
    });
    let lookup_missing = each(1, READS, |number| {
        black_box(memtable.get(&key(count + number), MAX_SEQ));
    });
    if !is_lookup_sorting {
        order = sort(memtable);
    }
    // The cost of a scan includes creating its cursor.
    let seek = each(1, READS, |number| {
        let mut cursor = memtable.cursor();
        cursor.seek(&some(number), MAX_SEQ);
        black_box(cursor.entry());
    });
    let step = each(1, READS / 50, |number| {
        let mut cursor = memtable.cursor();
        cursor.seek(&some(number), MAX_SEQ);
        for _ in 0..STEPS {
            black_box(cursor.entry());
            cursor.next();
        }
    }) / STEPS as f64;
    let pairs = each(1, READS, |number| {
        fill(memtable, &key(2 * count + number), 2 * count + number);
        let mut cursor = memtable.cursor();
        cursor.seek(&some(number), MAX_SEQ);
        black_box(cursor.entry());
    });
    let seek_fresh = (pairs - insert).max(seek);
    [lookup, lookup_missing, order, seek, seek_fresh, step]
}

fn main() {
    let pool = Pool::new(1 << 30);
    let kinds = |count: u64| {
        let vector = |query| Config::Vector(VectorConfig { prealloc_bytes: 0, query });
        let buckets = usize::try_from(count).unwrap();
        [
            ("btree", Config::BTree(BTreeConfig)),
            ("skip-list", Config::SkipList(SkipListConfig { branching: 4, height: 12 })),
            ("vector", vector(VectorQuery::Resort)),
            ("vector(query=scan)", vector(VectorQuery::Scan)),
            (
                "hash-vector",
                Config::HashVector(HashVectorConfig { prefix: 255, buckets, view: HashView::Kept }),
            ),
            (
                "hash-skip-list",
                Config::HashSkipList(HashSkipListConfig {
                    prefix: 8,
                    buckets,
                    height: 12,
                    view: HashView::Kept,
                }),
            ),
            (
                "hash-linked-list",
                Config::HashLinkedList(HashLinkedListConfig {
                    prefix: 8,
                    buckets,
                    threshold: 256,
                    view: HashView::Kept,
                }),
            ),
            (
                "flodb",
                // Buckets of six slots for a quarter of the entries, plus half as many to spare.
                Config::FloDb(FloDbConfig {
                    buckets: (buckets / 16).max(1),
                    partition_bits: 4,
                    lower: LowerLevel::BTree,
                    insert: DrainInsert::Multi,
                    update: Update::InPlace,
                }),
            ),
        ]
    };
    let mut writes =
        vec![[[[f64::INFINITY; WRITES.len()]; SIZES.len()]; THREADS.len()]; kinds(1).len()];
    let mut reads = vec![[[f64::INFINITY; READS_BY_NAME.len()]; SIZES.len()]; kinds(1).len()];
    for _ in 0..ROUNDS {
        for (size, &count) in SIZES.iter().enumerate() {
            for (kind, (_, config)) in kinds(count).into_iter().enumerate() {
                for (best, &threads) in writes[kind].iter_mut().zip(&THREADS) {
                    keep_least(&mut best[size], measure_writes(config, threads, count, &pool));
                }
                keep_least(&mut reads[kind][size], measure_reads(config, count, &pool));
            }
        }
    }
    print("kind", "operation", "threads", SIZES);
    for (((name, _), writes), reads) in kinds(1).iter().zip(&writes).zip(&reads) {
        for (threads, sizes) in THREADS.into_iter().zip(writes) {
            print_all(name, WRITES, threads, sizes);
        }
        print_all(name, READS_BY_NAME, 1, reads);
    }
}

fn keep_least<const N: usize>(best: &mut [f64; N], costs: [f64; N]) {
    best.iter_mut().zip(costs).for_each(|(best, cost)| *best = best.min(cost));
}

fn print_all<const N: usize>(
    kind: &str,
    operations: [&str; N],
    threads: u64,
    sizes: &[[f64; N]; SIZES.len()],
) {
    for (number, operation) in operations.into_iter().enumerate() {
        print(kind, operation, threads, sizes.map(|costs| costs[number].round() as u64));
    }
}

fn print(kind: &str, operation: &str, threads: impl Display, values: [u64; SIZES.len()]) {
    let values = values.map(|value| format!(" {value:>7}")).concat();
    println!("{kind:<18} {operation:<16} {threads:>7}{values}");
}
