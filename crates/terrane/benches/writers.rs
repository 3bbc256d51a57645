//! Puts of several threads, with and without the log: `cargo bench -p terrane --bench writers -- PUTS
//! VALUE_BYTES ROUNDS DIR [MEMTABLE...]`.
//!
//! Each thread puts random keys of 16 bytes into one memtable of 1 GiB, so nothing is flushed. Prints
//! medians of ROUNDS runs for each memtable, without a log (`none`) and with one (`process`), for one
//! and two threads: millions of puts per second, nanoseconds of CPU per put of the writing threads and
//! of the whole process, and the rate relative to one thread. Runs with one and two threads alternate.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]
#![allow(clippy::disallowed_methods, reason = "a benchmark removes its files")]

use std::path::Path;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use terrane::{Db, Options};
use terrane_policy::Design;
use terrane_testkit::Rng;

const MEMTABLES: [&str; 7] = [
    "btree",
    "skiplist",
    "vector",
    "hash-skiplist(prefix=6,buckets=100000)",
    "hash-linkedlist(prefix=6,buckets=100000)",
    "hash-vector(buckets=100000)",
    "flodb",
];

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What a run, or the median run, measured.
#[derive(Clone, Copy, Default)]
struct Sample {
    millions_per_second: f64,
    writer_nanos: f64,
    process_nanos: f64,
}

/// Puts random keys. Returns the CPU time of the thread.
fn client(db: &Db, puts: u64, value: &[u8], mut rng: Rng) -> u64 {
    let start = nanos(ClockId::ThreadCPUTime);
    for _ in 0..puts {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&rng.bits().to_be_bytes());
        db.put(key, value).unwrap();
    }
    nanos(ClockId::ThreadCPUTime) - start
}

fn run(
    memtable: &str,
    durability: &str,
    threads: u64,
    puts: u64,
    value: &[u8],
    dir: &Path,
) -> Sample {
    let design: Design = format!("leveling; buffer=1GiB; memtable={memtable}").parse().unwrap();
    // A memtable gets at most a quarter of the budget.
    let options = Options::new().memory_budget(4 * design.buffer_bytes).design(design);
    let db = options.durability(durability.parse().unwrap()).open(dir).unwrap();
    let (start, process) = (Instant::now(), nanos(ClockId::ProcessCPUTime));
    let cpu: u64 = std::thread::scope(|scope| {
        let put = |thread| {
            let (db, rng) = (&db, Rng::new(thread + 2));
            scope.spawn(move || client(db, puts / threads, value, rng))
        };
        let clients: Vec<_> = (0..threads).map(put).collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    let seconds = start.elapsed().as_secs_f64();
    let process = nanos(ClockId::ProcessCPUTime) - process;
    db.close().unwrap();
    std::fs::remove_dir_all(dir).unwrap();
    let all = (puts / threads * threads) as f64;
    Sample {
        millions_per_second: all / seconds / 1e6,
        writer_nanos: cpu as f64 / all,
        process_nanos: process as f64 / all,
    }
}

fn median(samples: &[Sample]) -> Sample {
    let of = |field: fn(&Sample) -> f64| {
        let mut values: Vec<f64> = samples.iter().map(field).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Sample {
        millions_per_second: of(|sample| sample.millions_per_second),
        writer_nanos: of(|sample| sample.writer_nanos),
        process_nanos: of(|sample| sample.process_nanos),
    }
}

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let [puts, value_bytes, rounds, dir, memtables @ ..] = &arguments[..] else {
        return println!("nothing to do: see the head of this file");
    };
    let number = |text: &str| text.parse::<u64>().unwrap();
    let (puts, rounds) = (number(puts), number(rounds));
    let value = vec![1; number(value_bytes) as usize];
    let memtables: Vec<&str> = match memtables {
        [] => MEMTABLES.to_vec(),
        some => some.iter().map(String::as_str).collect(),
    };
    println!("memtable log threads M/s writers-ns process-ns ratio");
    for memtable in memtables {
        for durability in ["none", "process"] {
            let mut samples = [Vec::new(), Vec::new()];
            for _ in 0..rounds {
                for (threads, samples) in (1..).zip(&mut samples) {
                    let dir = Path::new(dir);
                    samples.push(run(memtable, durability, threads, puts, &value, dir));
                }
            }
            let one = median(&samples[0]).millions_per_second;
            for (threads, samples) in (1..).zip(&samples) {
                let Sample { millions_per_second, writer_nanos, process_nanos } = median(samples);
                println!(
                    "{memtable:<42} {durability:<8} {threads} {millions_per_second:7.3} \
                     {writer_nanos:7.1} {process_nanos:7.1} {:5.2}",
                    millions_per_second / one
                );
            }
        }
    }
}
