//! Measures microseconds per get and per seek, with and without read threads: `cargo bench
//! -p terrane --bench parallel_reads [-- DIR]`.
//!
//! One line per measurement: `place operation read-threads median-micros (ratio to none)`. The tree
//! is tiered, with 24 runs and no compactions. The places are tables whose blocks are all in memory,
//! and tables read from the disk with direct I/O and a hundredth of the blocks in memory. Half of
//! the measurements use no filters, so that a get must search all runs. Each round measures every
//! number of threads, so changes in machine speed affect all of them alike.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]
#![allow(clippy::disallowed_methods, reason = "a benchmark removes its files")]

use std::path::Path;
use std::time::Instant;

use terrane::{Db, Durability, Options, ReadMode};
use terrane_testkit::Rng;

const RUNS: u64 = 24;
const KEYS_PER_RUN: u64 = 20_000;
const VALUE_BYTES: usize = 400;
const THREADS: [usize; 4] = [0, 1, 2, 4];
const ROUNDS: usize = 5;

fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&Rng::new(number).bits().to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn fill(dir: &Path, filter_bits: &str) {
    let design = format!(
        "tiering T=4 L0=60; buffer=64MiB; filter={filter_bits}; compression=none; delay=70; stop=80"
    );
    let options = Options::new().durability(Durability::None).design(design.parse().unwrap());
    let db = options.open(dir).unwrap();
    let value = [7; VALUE_BYTES];
    for run in 0..RUNS {
        for number in 0..KEYS_PER_RUN {
            db.put(key(number * RUNS + run), value).unwrap();
        }
        db.flush().unwrap();
    }
    assert_eq!(db.tree().shape.run_count() as u64, RUNS);
    db.close().unwrap();
}

fn open(dir: &Path, read_mode: ReadMode, threads: usize) -> Db {
    // The smallest budget leaves a cache of at most half a mebibyte.
    let budget = if read_mode == ReadMode::Direct { 2 << 20 } else { 512 << 20 };
    let options = Options::new().read_mode(read_mode).read_threads(threads).memory_budget(budget);
    options.open(dir).unwrap()
}

/// Returns the microseconds per get and per seek.
fn measure(db: &Db, operations: u64, seed: u64) -> [f64; 2] {
    let micros = |start: Instant| start.elapsed().as_secs_f64() * 1e6 / operations as f64;
    let mut rng = Rng::new(seed);
    let start = Instant::now();
    for _ in 0..operations {
        assert!(db.get(key(rng.below(RUNS * KEYS_PER_RUN))).unwrap().is_some());
    }
    let get = micros(start);
    let start = Instant::now();
    for _ in 0..operations {
        let mut iter = db.range(key(rng.below(RUNS * KEYS_PER_RUN))..).unwrap();
        assert!(iter.advance().unwrap());
    }
    [get, micros(start)]
}

fn compare(dir: &Path, place: &str, read_mode: ReadMode, operations: u64) {
    let mut samples = vec![[const { Vec::new() }; 2]; THREADS.len()];
    for round in 0..=ROUNDS {
        for (threads, samples) in THREADS.iter().zip(&mut samples) {
            let db = open(dir, read_mode, *threads);
            // Warm up: open the tables, and read what fits into memory.
            measure(&db, operations / 10 + 1000 * u64::from(read_mode == ReadMode::Cached), 99);
            let micros = measure(&db, operations, round as u64);
            if round > 0 {
                samples.iter_mut().zip(micros).for_each(|(all, one)| all.push(one));
            }
            db.close().unwrap();
        }
    }
    for (index, operation) in ["get", "seek"].iter().enumerate() {
        let median = |samples: &[Vec<f64>; 2]| {
            let mut sorted = samples[index].clone();
            sorted.sort_by(f64::total_cmp);
            sorted[sorted.len() / 2]
        };
        let none = median(&samples[0]);
        for (threads, samples) in THREADS.iter().zip(&samples) {
            let micros = median(samples);
            println!("{place:<24} {operation:<5} {threads} {micros:>9.2} ({:.2})", none / micros);
        }
    }
}

fn main() {
    let base = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let temporary = base.is_none().then(|| tempfile::tempdir().unwrap());
    let base = base.map_or_else(|| temporary.as_ref().unwrap().path().to_owned(), Into::into);
    println!("place                    op    read-threads micros-per-op (speed relative to none)");
    for filter_bits in ["10", "0"] {
        let dir = base.join(format!("parallel-reads-{filter_bits}"));
        fill(&dir, filter_bits);
        let name = |place: &str| format!("{place}, filter={filter_bits}");
        compare(&dir, &name("cached"), ReadMode::Cached, 20_000);
        compare(&dir, &name("direct"), ReadMode::Direct, 1_000);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
