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
    Config, DrainInsert, EntryKind, FloDbConfig, LowerLevel, MAX_SEQ, Memtable, Pool, Update,
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
    let lower = if std::env::var("LOWER").as_deref() == Ok("skiplist") {
        LowerLevel::SkipList
    } else {
        LowerLevel::BTree
    };
    Config::FloDb(FloDbConfig { buckets, partition_bits, lower, insert, update })
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
    /// Memtables that were full, for every million of writes.
    memtables: f64,
}

/// Which keys are written, and read.
#[derive(Clone, Copy)]
struct Mix {
    keys: u64,
    /// So many of them get 98 of 100 operations; 0 if all are alike.
    hot_keys: u64,
    /// Whether every second operation is a lookup.
    reads: bool,
}

/// What the threads of a run of writes share.
struct Run<'a> {
    config: Config,
    bytes: u64,
    mix: Mix,
    pool: &'a Arc<Pool>,
    active: RwLock<Arc<Memtable>>,
    next_seq: AtomicU64,
    is_over: AtomicBool,
    wants_drain: AtomicBool,
    operations: AtomicU64,
    in_front: AtomicU64,
    thrown_away: AtomicU64,
    start: Instant,
    seconds: f64,
}

impl Run<'_> {
    fn drain(&self) {
        while !self.is_over.load(Ordering::Relaxed) {
            let memtable = Arc::clone(&self.active.read().unwrap());
            let is_wanted = self.wants_drain.swap(false, Ordering::Relaxed);
            if !is_wanted || memtable.drain() == 0 {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    }

    fn client(&self, mut rng: Rng) {
        let (mut operations, mut in_front) = (0, 0);
        while !self.is_over.load(Ordering::Relaxed) {
            let memtable = Arc::clone(&self.active.read().unwrap());
            for _ in 0..256 {
                let is_hot = self.mix.hot_keys > 0 && rng.percent(98);
                let key = rng.below(if is_hot { self.mix.hot_keys } else { self.mix.keys });
                operations += 1;
                if self.mix.reads && operations % 2 == 0 {
                    black_box(memtable.look_up(&spread(key), MAX_SEQ));
                } else {
                    in_front += u64::from(self.write(&memtable, key));
                }
            }
            if memtable.filled_bytes() as u64 >= self.bytes {
                self.replace(&memtable);
            }
            if self.start.elapsed().as_secs_f64() > self.seconds {
                self.is_over.store(true, Ordering::Relaxed);
            }
        }
        self.operations.fetch_add(operations, Ordering::Relaxed);
        self.in_front.fetch_add(in_front, Ordering::Relaxed);
    }

    fn write(&self, memtable: &Memtable, key: u64) -> bool {
        let seq = self.next_seq.fetch_add(1, Ordering::Relaxed);
        let horizon = || seq.saturating_sub(64);
        let inserted = memtable.update(&spread(key), seq, EntryKind::Value, &VALUE, horizon);
        if inserted.wants_drain && !self.wants_drain.load(Ordering::Relaxed) {
            self.wants_drain.store(true, Ordering::Relaxed);
        }
        inserted.is_in_membuffer
    }

    fn replace(&self, full: &Arc<Memtable>) {
        let mut active = self.active.write().unwrap();
        if Arc::ptr_eq(&active, full) {
            *active = Memtable::new_after(full, self.config, self.pool);
            self.thrown_away.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Figures 15 to 17: operations for some time on memtables that are thrown away when full, one
/// thread draining meanwhile.
fn run(config: Config, bytes: u64, mix: Mix, settings: &Settings, pool: &Arc<Pool>) -> Written {
    let run = Run {
        config,
        bytes,
        mix,
        pool,
        active: RwLock::new(Memtable::new(config, pool)),
        next_seq: AtomicU64::new(1),
        is_over: AtomicBool::new(false),
        wants_drain: AtomicBool::new(false),
        operations: AtomicU64::new(0),
        in_front: AtomicU64::new(0),
        thrown_away: AtomicU64::new(0),
        start: Instant::now(),
        seconds: settings.seconds,
    };
    std::thread::scope(|scope| {
        if matches!(config, Config::FloDb(flodb) if flodb.buckets > 0) {
            scope.spawn(|| run.drain());
        }
        for thread in 0..settings.threads {
            let run = &run;
            scope.spawn(move || run.client(Rng::new(thread + 1)));
        }
    });
    let operations = run.operations.into_inner() as f64;
    let written = if mix.reads { operations / 2.0 } else { operations };
    Written {
        mops: operations / run.start.elapsed().as_secs_f64() / 1e6,
        in_front: run.in_front.into_inner() as f64 / written,
        memtables: run.thrown_away.into_inner() as f64 * 1e6 / written,
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

type Figures = BTreeMap<String, Vec<f64>>;

fn measure(settings: &Settings, pool: &Arc<Pool>, found: &mut Figures) {
    let mut note = |name: String, figure: f64| found.entry(name).or_default().push(figure);
    let wants =
        |figure: &str| settings.only.is_empty() || settings.only.iter().any(|only| only == figure);
    if wants("5") {
        for entries in [32_000, 1_000_000] {
            let table = flodb(entries * 300, 0, DrainInsert::Multi, Update::InPlace);
            for (name, config) in [("hash", table), ("skiplist", LIST), ("btree", Config::BTree)] {
                let mops = mixed(config, entries, settings, pool);
                note(format!("fig-5-7 {name} entries={entries} Mops/s"), mops);
            }
        }
    }
    if wants("8") {
        for neighbours in [1, 10, 100] {
            for (name, insert) in [("single", DrainInsert::Single), ("multi", DrainInsert::Multi)] {
                let nanos = drain(insert, neighbours, pool);
                note(format!("fig-8 {name} neighbours={neighbours} ns/key"), nanos);
            }
        }
    }
    for &mib in &settings.memory_mib {
        let bytes = mib << 20;
        for (name, config) in kinds(bytes) {
            if wants("17") {
                let mix = Mix { keys: 100_000_000, hot_keys: 0, reads: false };
                let written = run(config, bytes, mix, settings, pool);
                note(format!("fig-17 {name} memory={mib} Mops/s"), written.mops);
                note(format!("fig-17 {name} memory={mib} in-membuffer"), written.in_front);
            }
            if wants("16") {
                // The hot ones take 6 MiB.
                let mix = Mix { keys: 1_000_000, hot_keys: 20_000, reads: true };
                let written = run(config, bytes, mix, settings, pool);
                note(format!("fig-16 {name} memory={mib} Mops/s"), written.mops);
                note(format!("fig-16 {name} memory={mib} memtables/Mwrite"), written.memtables);
            }
        }
    }
}

/// A claim of the paper: one figure over another is at least so much.
struct Claim {
    text: &'static str,
    figure: String,
    over: String,
    least: f64,
}

fn claims(settings: &Settings) -> Vec<Claim> {
    let claim = |text, figure: String, over: String, least| Claim { text, figure, over, least };
    let fig =
        |figure: &str, name: &str, mib: u64| format!("fig-{figure} {name} memory={mib} Mops/s");
    let mut claims = vec![
        claim(
            "a hash table is ten times as fast as a skip-list (Figs. 5, 7)",
            "fig-5-7 hash entries=1000000 Mops/s".into(),
            "fig-5-7 skiplist entries=1000000 Mops/s".into(),
            10.0,
        ),
        claim(
            "multi-insert is faster than single inserts (Fig. 8)",
            "fig-8 single neighbours=1 ns/key".into(),
            "fig-8 multi neighbours=1 ns/key".into(),
            1.0,
        ),
        claim(
            "it is the better the nearer the keys are (Fig. 8)",
            "fig-8 multi neighbours=100 ns/key".into(),
            "fig-8 multi neighbours=1 ns/key".into(),
            1.0,
        ),
    ];
    for &mib in &settings.memory_mib {
        claims.extend([
            claim(
                "two levels, one writer: 3.1 times one level (Fig. 17)",
                fig("17", "flodb", mib),
                fig("17", "flodb(membuffer=0%)", mib),
                3.1,
            ),
            claim(
                "twice as fast as with single inserts (Fig. 17)",
                fig("17", "flodb", mib),
                fig("17", "flodb(insert=single)", mib),
                2.0,
            ),
            claim(
                "skewed: eight times a multi-version skip-list (Fig. 16)",
                fig("16", "flodb", mib),
                fig("16", "skiplist", mib),
                8.0,
            ),
        ]);
    }
    let (smallest, largest) = (settings.memory_mib.iter().min(), settings.memory_mib.iter().max());
    if let (Some(&smallest), Some(&largest)) = (smallest, largest) {
        claims.push(claim(
            "one level is slower with more memory (Figs. 3, 17)",
            fig("17", "flodb(membuffer=0%)", smallest),
            fig("17", "flodb(membuffer=0%)", largest),
            1.0,
        ));
    }
    claims
}

fn main() {
    let settings = Settings::from_env();
    let pool = Pool::new(2 << 30);
    let mut found = Figures::new();
    for _ in 0..settings.rounds {
        measure(&settings, &pool, &mut found);
    }
    let median = |name: &str| {
        let mut figures = found.get(name)?.clone();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied()
    };
    for name in found.keys() {
        println!("{name} {:.3}", median(name).unwrap_or_default());
    }
    for Claim { text, figure, over, least } in claims(&settings) {
        if let (Some(figure_is), Some(over_is)) = (median(&figure), median(&over)) {
            let ratio = figure_is / over_is;
            let verdict = if ratio >= least { "holds" } else { "does not hold" };
            println!("claim: {text}: {figure} / {over} = {ratio:.2}, at least {least}: {verdict}");
        }
    }
}
