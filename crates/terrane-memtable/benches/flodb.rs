//! FloDB's claims about its memory component, on this machine: `cargo bench --bench flodb`.
//!
//! | variable | what it sets | default |
//! |---|---|---|
//! | `THREADS` | threads that write or read, beside one that drains | 1 |
//! | `MEMORY_MIB` | sizes of a memtable, with commas | `16,64,256` |
//! | `SECONDS` | how long a figure of writes takes | 1 |
//! | `ROUNDS` | how often everything is measured; the median is printed | 3 |
//! | `ONLY` | the figures to measure, with commas | all |
//!
//! Keys are 8 bytes long and spread evenly, values 256 bytes, as in the paper. A memtable that is
//! full is thrown away, so that memory alone is measured. Each line is a measurement: figure, what,
//! parameter, figure in its unit.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark takes times")]
#![cfg(not(loom))]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use terrane_memtable::{
    Config, DrainInsert, EntryKind, FloDbConfig, MAX_SEQ, Memtable, Pool, Update,
};
use terrane_testkit::Rng;

const VALUE: [u8; 256] = [7; 256];

struct Settings {
    threads: u64,
    memory_mib: Vec<u64>,
    seconds: f64,
    rounds: usize,
    only: Vec<String>,
}

impl Settings {
    fn from_env() -> Self {
        let read = |name: &str, default: &str| std::env::var(name).unwrap_or(default.into());
        let list = |text: String| -> Vec<String> {
            text.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        let memory = list(read("MEMORY_MIB", "16,64,256"));
        Self {
            threads: read("THREADS", "1").parse().unwrap(),
            memory_mib: memory.iter().map(|mib| mib.parse().unwrap()).collect(),
            seconds: read("SECONDS", "1").parse().unwrap(),
            rounds: read("ROUNDS", "3").parse().unwrap(),
            only: list(read("ONLY", "")),
        }
    }
}

fn spread(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn flodb(front_bytes: u64, partition_bits: u8, insert: DrainInsert, update: Update) -> Config {
    // Three places for every two entries, six in a bucket.
    let buckets = usize::try_from(front_bytes / 300 * 3 / 2 / 6).unwrap();
    Config::FloDb(FloDbConfig { buckets, partition_bits, insert, update })
}

const LIST: Config = Config::SkipList { branching: 4, height: 12 };

/// Figures 5 and 7: half updates, half lookups, on a structure that holds `entries`.
fn mixed(config: Config, entries: u64, settings: &Settings, pool: &Arc<Pool>) -> f64 {
    let memtable = Memtable::new(config, pool);
    for number in 0..entries {
        memtable.update(&spread(number), number + 1, EntryKind::Value, &[7; 8], || number);
    }
    let operations = 1_000_000;
    let next_seq = AtomicU64::new(entries + 1);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..settings.threads {
            let (memtable, next_seq) = (&memtable, &next_seq);
            scope.spawn(move || {
                let mut rng = Rng::new(thread);
                for step in 0..operations {
                    let key = spread(rng.below(entries));
                    if step % 2 == 0 {
                        black_box(memtable.look_up(&key, MAX_SEQ));
                    } else {
                        let seq = next_seq.fetch_add(1, Ordering::Relaxed);
                        let horizon = || seq.saturating_sub(64);
                        memtable.update(&key, seq, EntryKind::Value, &[7; 8], horizon);
                    }
                }
            });
        }
    });
    (operations * settings.threads) as f64 / start.elapsed().as_secs_f64() / 1e6
}

/// Figure 8: draining 5000 keys at a time, of a range that holds `neighbours` keys for each of
/// them, into a list of a million.
fn drain(insert: DrainInsert, neighbours: u64, pool: &Arc<Pool>) -> f64 {
    const INITIAL: u64 = 1_000_000;
    const BATCH: u64 = 5_000;
    let memtable = Memtable::new(flodb(4 << 20, 0, insert, Update::InPlace), pool);
    let mut seq = 0;
    let step = u64::MAX / INITIAL;
    let mut put = |key: u64| {
        seq += 1;
        memtable.update(&key.to_be_bytes(), seq, EntryKind::Value, &[7; 8], || seq - 1);
    };
    for number in 0..INITIAL {
        put((number.wrapping_mul(0x9e37_79b9) % INITIAL) * step);
    }
    memtable.drain_all();
    let mut rng = Rng::new(5);
    let mut nanos = 0;
    for _ in 0..20 {
        let width = (BATCH * neighbours).min(INITIAL) * step;
        let from = rng.below(u64::MAX - width + 1);
        (0..BATCH).for_each(|_| put(from + rng.below(width)));
        let before = memtable.drained();
        let start = Instant::now();
        memtable.drain_all();
        nanos += start.elapsed().as_nanos() / (memtable.drained() - before).max(1) as u128;
    }
    nanos as f64 / 20.0
}

/// What came of a run of writes.
#[derive(Clone, Copy)]
struct Written {
    mops: f64,
    /// The share of writes that completed in the Membuffer.
    in_front: f64,
    /// Writes for each memtable that was thrown away.
    per_memtable: f64,
}

/// Figures 15 to 17: writes for some time into memtables that are thrown away when full, one thread
/// draining meanwhile. `hot` is the share of the keys that 98 of 100 operations go to.
fn writes(
    config: Config,
    bytes: u64,
    (keys, hot): (u64, f64),
    reads: bool,
    settings: &Settings,
    pool: &Arc<Pool>,
) -> Written {
    let active = RwLock::new(Memtable::new(config, pool));
    let (next_seq, is_over) = (AtomicU64::new(1), AtomicBool::new(false));
    let (operations, in_front, full) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let wants_drain = AtomicBool::new(false);
    let start = Instant::now();
    std::thread::scope(|scope| {
        if matches!(config, Config::FloDb(flodb) if flodb.buckets > 0) {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let memtable = Arc::clone(&active.read().unwrap());
                    let moved = wants_drain.swap(false, Ordering::Relaxed) && memtable.drain() > 0;
                    if !moved {
                        std::thread::sleep(Duration::from_micros(100));
                    }
                }
            });
        }
        for thread in 0..settings.threads {
            let (active, next_seq, is_over) = (&active, &next_seq, &is_over);
            let (operations, in_front, full) = (&operations, &in_front, &full);
            let wants_drain = &wants_drain;
            scope.spawn(move || {
                let mut rng = Rng::new(thread + 1);
                let hot_keys = ((keys as f64) * hot) as u64;
                let mut counts = (0, 0);
                while !is_over.load(Ordering::Relaxed) {
                    let memtable = Arc::clone(&active.read().unwrap());
                    for _ in 0..256 {
                        let key = if hot_keys > 0 && rng.percent(98) {
                            rng.below(hot_keys)
                        } else {
                            rng.below(keys)
                        };
                        counts.0 += 1;
                        if reads && counts.0 % 2 == 0 {
                            black_box(memtable.look_up(&spread(key), MAX_SEQ));
                            continue;
                        }
                        let seq = next_seq.fetch_add(1, Ordering::Relaxed);
                        let horizon = || seq.saturating_sub(64);
                        let key = spread(key);
                        let inserted =
                            memtable.update(&key, seq, EntryKind::Value, &VALUE, horizon);
                        counts.1 += u64::from(inserted.is_in_membuffer);
                        if inserted.wants_drain && !wants_drain.load(Ordering::Relaxed) {
                            wants_drain.store(true, Ordering::Relaxed);
                        }
                    }
                    if memtable.filled_bytes() as u64 >= bytes {
                        let mut active = active.write().unwrap();
                        if Arc::ptr_eq(&active, &memtable) {
                            *active = Memtable::new_after(&memtable, config, pool);
                            full.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    if start.elapsed().as_secs_f64() > settings.seconds {
                        is_over.store(true, Ordering::Relaxed);
                    }
                }
                operations.fetch_add(counts.0, Ordering::Relaxed);
                in_front.fetch_add(counts.1, Ordering::Relaxed);
            });
        }
    });
    let operations = operations.into_inner() as f64;
    let written = if reads { operations / 2.0 } else { operations };
    Written {
        mops: operations / start.elapsed().as_secs_f64() / 1e6,
        in_front: in_front.into_inner() as f64 / written,
        per_memtable: written / full.into_inner().max(1) as f64,
    }
}

fn kinds(bytes: u64) -> [(&'static str, Config); 6] {
    let quarter = bytes / 4;
    let half = bytes / 2;
    let (single, multi) = (DrainInsert::Single, DrainInsert::Multi);
    [
        ("btree", Config::BTree),
        ("skiplist", LIST),
        ("flodb(membuffer=0%)", flodb(0, 0, multi, Update::InPlace)),
        ("flodb(insert=single)", flodb(quarter, 4, single, Update::InPlace)),
        ("flodb", flodb(quarter, 4, multi, Update::InPlace)),
        ("flodb(membuffer=50%)", flodb(half, 4, multi, Update::InPlace)),
    ]
}

fn main() {
    let settings = Settings::from_env();
    let pool = Pool::new(2 << 30);
    let mut found: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for _ in 0..settings.rounds {
        let mut note = |name: String, figure: f64| found.entry(name).or_default().push(figure);
        let wants = |figure: &str| {
            settings.only.is_empty() || settings.only.iter().any(|only| only == figure)
        };
        if wants("5") {
            for entries in [32_000, 1_000_000] {
                let table = flodb(entries * 300, 0, DrainInsert::Multi, Update::InPlace);
                for (name, config) in
                    [("hash", table), ("skiplist", LIST), ("btree", Config::BTree)]
                {
                    let mops = mixed(config, entries, &settings, &pool);
                    note(format!("fig-5-7 {name} entries={entries} Mops/s"), mops);
                }
            }
        }
        if wants("8") {
            for neighbours in [1, 10, 100] {
                for (name, insert) in
                    [("single", DrainInsert::Single), ("multi", DrainInsert::Multi)]
                {
                    let nanos = drain(insert, neighbours, &pool);
                    note(format!("fig-8 {name} neighbours={neighbours} ns/key"), nanos);
                }
            }
        }
        for &mib in &settings.memory_mib {
            let bytes = mib << 20;
            for (name, config) in kinds(bytes) {
                if wants("17") {
                    let spread = (100_000_000, 0.0);
                    let written = writes(config, bytes, spread, false, &settings, &pool);
                    note(format!("fig-17 {name} memory={mib}MiB Mops/s"), written.mops);
                    note(format!("fig-17 {name} memory={mib}MiB in-membuffer"), written.in_front);
                }
                if wants("16") {
                    // Two in a hundred keys are 5 MiB.
                    let skewed = (1_000_000, 0.02);
                    let written = writes(config, bytes, skewed, true, &settings, &pool);
                    note(format!("fig-16 {name} memory={mib}MiB Mops/s"), written.mops);
                    note(
                        format!("fig-16 {name} memory={mib}MiB writes/memtable"),
                        written.per_memtable,
                    );
                }
            }
        }
    }
    for (name, mut figures) in found {
        figures.sort_by(f64::total_cmp);
        println!("{name} {:.3}", figures[figures.len() / 2]);
    }
}
