//! The workload of FloDB's own test program on this engine; `compare/flodb/run.sh` runs the two
//! programs alternately.
//!
//! `cargo bench -p terrane --bench flodb_workload -- DESIGN DURABILITY THREADS INITIAL UPDATES
//! SCANS MILLIS DIR`: keys are big-endian integers of 8 bytes below twice `INITIAL` (rounded up to
//! a power of two); the upper half is loaded in random order. Values have 256 bytes. Of 100
//! operations, `UPDATES` are writes, half of them puts and half deletes, and the others look up a
//! key. If `SCANS` is 1, the others read 100 keys from a random key on, which counts as 100
//! operations. Prints millions of operations per second.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]
#![allow(clippy::disallowed_methods, reason = "a benchmark removes its files")]

use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use terrane::{Db, Options};
use terrane_policy::Design;
use terrane_testkit::Rng;

const VALUE: [u8; 256] = [1; 256];
const SCAN_KEYS: u64 = 100;

#[derive(Clone, Copy)]
struct Mix {
    range: u64,
    updates: u64,
    scans: bool,
}

/// Runs operations until `is_over` is true, and returns how many it ran.
fn client(db: &Db, mix: Mix, is_over: &AtomicBool, mut rng: Rng) -> u64 {
    let mut operations = 0;
    while !is_over.load(Ordering::Relaxed) {
        let number = 1 + rng.below(mix.range);
        let key = number.to_be_bytes();
        let choice = rng.below(200);
        operations += 1;
        if choice < mix.updates {
            db.put(key, VALUE).unwrap();
        } else if choice < 2 * mix.updates {
            db.delete(key).unwrap();
        } else if mix.scans {
            operations += SCAN_KEYS - 1;
            let end = (number + SCAN_KEYS).to_be_bytes();
            for entry in db.range(key..end).unwrap() {
                black_box(entry.unwrap());
            }
        } else {
            black_box(db.get(key).unwrap());
        }
    }
    operations
}

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let [design, durability, threads, initial, updates, scans, millis, dir] = &arguments[..] else {
        return println!("nothing to do: see the head of this file");
    };
    let number = |text: &str| text.parse::<u64>().unwrap();
    let initial = number(initial).next_power_of_two();
    let mix = Mix { range: 2 * initial, updates: number(updates), scans: number(scans) == 1 };
    let dir = Path::new(dir);
    let design: Design = design.parse().unwrap();
    // A memtable gets at most a quarter of the budget.
    let budget = (4 * design.buffer_bytes).max(512 << 20);
    let options = Options::new().memory_budget(budget).design(design);
    let db = options.durability(durability.parse().unwrap()).open(dir).unwrap();
    // An odd factor permutes the numbers below a power of two in a pseudo-random order.
    for step in 0..initial {
        let key = initial + step.wrapping_mul(0x9e37_79b9_7f4a_7c15) % initial;
        db.put(key.to_be_bytes(), VALUE).unwrap();
    }
    db.wait_for_compactions().unwrap();
    let is_over = AtomicBool::new(false);
    let start = Instant::now();
    let operations: u64 = std::thread::scope(|scope| {
        let (db, is_over) = (&db, &is_over);
        let clients: Vec<_> = (0..number(threads))
            .map(|thread| scope.spawn(move || client(db, mix, is_over, Rng::new(thread + 2))))
            .collect();
        std::thread::sleep(Duration::from_millis(number(millis)));
        is_over.store(true, Ordering::Relaxed);
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    println!("{:.3}", operations as f64 / start.elapsed().as_secs_f64() / 1e6);
    db.close().unwrap();
    std::fs::remove_dir_all(dir).unwrap();
}
