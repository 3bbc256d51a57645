//! The cost of transactions, compared with the same operations without one.
//!
//! `cargo bench -p terrane --bench transactions -- ENTRIES OPERATIONS ROUNDS DIR`: the database has
//! `ENTRIES` entries of 100 bytes, and each operation gets two random keys and puts both. The ways
//! alternate: `get` and `put`, `get` and a batch, and a transaction. Each is measured with one thread
//! whose writes are not synced, and with four that sync each write. Prints the CPU time of a thread and
//! the time per operation: the median over the rounds, and the ratio to the first way in the same round.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]
#![allow(clippy::disallowed_methods, reason = "a benchmark removes its files")]

use std::path::Path;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use terrane::{Db, Durability, Options, WriteBatch};
use terrane_testkit::Rng;

const SYNCING_THREADS: u64 = 4;

#[derive(Debug, Clone, Copy)]
enum Way {
    Plain,
    Batch,
    Transaction,
}

const WAYS: [(Way, &str); 3] =
    [(Way::Plain, "get and put"), (Way::Batch, "get and batch"), (Way::Transaction, "transaction")];

fn cpu_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key
}

/// Gets two keys, and puts both with the next value.
fn operate(db: &Db, way: Way, keys: [[u8; 16]; 2]) {
    let next = |old: Option<terrane::Value>| {
        let mut value = old.unwrap().to_vec();
        value[0] = value[0].wrapping_add(1);
        value
    };
    match way {
        Way::Plain => {
            let values = keys.map(|key| next(db.get(key).unwrap()));
            keys.iter().zip(values).for_each(|(key, value)| db.put(key, value).unwrap());
        }
        Way::Batch => {
            let mut batch = WriteBatch::new();
            let values = keys.map(|key| next(db.get(key).unwrap()));
            keys.iter().zip(values).for_each(|(key, value)| {
                batch.put(key, value);
            });
            db.write(&batch).unwrap();
        }
        Way::Transaction => db
            .transaction(|tx| {
                let values = [next(tx.get(keys[0])?), next(tx.get(keys[1])?)];
                keys.iter().zip(values).for_each(|(key, value)| tx.put(key, value));
                Ok(())
            })
            .unwrap(),
    }
}

/// Returns the CPU time of the threads and the elapsed time, both in nanoseconds per operation.
fn round(db: &Db, way: Way, entries: u64, operations: u64, threads: u64) -> [f64; 2] {
    let start = Instant::now();
    let cpu: u64 = std::thread::scope(|scope| {
        let client = |thread: u64| {
            let mut rng = Rng::new(thread + 7);
            let before = cpu_nanos();
            for _ in 0..operations / threads {
                operate(db, way, [(); 2].map(|()| key(rng.below(entries))));
            }
            cpu_nanos() - before
        };
        let clients: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || client(thread))).collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    [cpu, start.elapsed().as_nanos() as u64].map(|nanos| nanos as f64 / operations as f64)
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn measure(
    dir: &Path,
    durability: Durability,
    threads: u64,
    [entries, operations, rounds]: [u64; 3],
) {
    let db = Options::new().durability(durability).memory_budget(1 << 30).open(dir).unwrap();
    for number in 0..entries {
        db.put_with(
            key(number),
            [0; 84],
            terrane::WriteOptions::new().durability(Durability::Process),
        )
        .unwrap();
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let mut times = WAYS.map(|_| Vec::new());
    for _ in 0..rounds {
        for ((way, _), times) in WAYS.iter().zip(&mut times) {
            times.push(round(&db, *way, entries, operations, threads));
        }
    }
    println!("{durability:?}, {threads} threads, medians of {rounds} rounds");
    for ((_, name), own) in WAYS.iter().zip(&times) {
        for (at, unit) in ["CPU ns", "ns"].into_iter().enumerate() {
            let ratios = own.iter().zip(&times[0]).map(|(own, plain)| own[at] / plain[at]);
            let nanos = median(own.iter().map(|own| own[at]).collect());
            println!("{name:>14} {nanos:>10.0} {unit:<7} {:.2}×", median(ratios.collect()));
        }
    }
    db.close().unwrap();
    std::fs::remove_dir_all(dir).unwrap();
}

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let [entries, operations, rounds, dir] = &arguments[..] else {
        return println!("nothing to do: see the head of this file");
    };
    let sizes = [entries, operations, rounds].map(|text| text.parse::<u64>().unwrap());
    measure(Path::new(dir), Durability::Process, 1, sizes);
    let synced = [sizes[0], (sizes[1] / 50).max(SYNCING_THREADS), sizes[2]];
    measure(Path::new(dir), Durability::Sync, SYNCING_THREADS, synced);
}
