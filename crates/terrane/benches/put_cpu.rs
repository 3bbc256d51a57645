//! The CPU time of single puts, and how it changes with the number of threads.
//!
//! `cargo bench -p terrane --bench put_cpu -- DESIGN DURABILITY THREADS PUTS VALUE_BYTES DIR [single]`:
//! each thread puts random keys of 16 bytes. Prints millions of puts per second, and the CPU time of the
//! writing threads in nanoseconds per put. On a busy machine the CPU time shows contention better than
//! the throughput does: without contention it is the same for any number of threads.
//!
//! With `single`, it also prints the largest CPU times of single puts, in microseconds, and which puts took
//! them. Measuring that takes two system calls per put.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]
#![allow(clippy::disallowed_methods, reason = "a benchmark removes its files")]

use std::path::Path;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use terrane::{Db, Options};
use terrane_policy::Design;
use terrane_testkit::Rng;

/// The number of largest times that are printed.
const LARGEST: usize = 8;

fn cpu_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The CPU times of single puts, in nanoseconds, each with the number of the put.
type Largest = Vec<(u64, u64)>;

/// Puts random keys. Returns the CPU time, and the largest times of single puts.
fn client(db: &Db, puts: u64, value: &[u8], is_single: bool, mut rng: Rng) -> (u64, Largest) {
    let mut largest = vec![(0, 0); LARGEST];
    let start = cpu_nanos();
    for number in 0..puts {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&rng.bits().to_be_bytes());
        let before = if is_single { cpu_nanos() } else { 0 };
        db.put(key, value).unwrap();
        if is_single {
            let took = cpu_nanos() - before;
            if took > largest[0].0 {
                largest[0] = (took, number);
                largest.sort_unstable();
            }
        }
    }
    (cpu_nanos() - start, largest)
}

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let (arguments, is_single) = match &arguments[..] {
        [first @ .., last] if last == "single" => (first, true),
        all => (all, false),
    };
    let [design, durability, threads, puts, value_bytes, dir] = arguments else {
        return println!("nothing to do: see the head of this file");
    };
    let number = |text: &str| text.parse::<u64>().unwrap();
    let (threads, dir) = (number(threads), Path::new(dir));
    let design: Design = design.parse().unwrap();
    // A memtable gets at most a quarter of the budget.
    let budget = (4 * design.buffer_bytes).max(512 << 20);
    let options = Options::new().memory_budget(budget).design(design);
    let db = options.durability(durability.parse().unwrap()).open(dir).unwrap();
    let value = vec![1; number(value_bytes) as usize];
    let each = number(puts) / threads;
    let start = Instant::now();
    let clients: Vec<(u64, Largest)> = std::thread::scope(|scope| {
        let (db, value) = (&db, &value);
        let clients: Vec<_> = (0..threads)
            .map(|thread| {
                let rng = Rng::new(thread + 2);
                scope.spawn(move || client(db, each, value, is_single, rng))
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let seconds = start.elapsed().as_secs_f64();
    let all = (each * threads) as f64;
    let cpu: u64 = clients.iter().map(|(cpu, _)| cpu).sum();
    println!("{:.3} M/s, {:.1} ns of CPU per put", all / seconds / 1e6, cpu as f64 / all);
    if is_single {
        let mut largest: Largest = clients.into_iter().flat_map(|(_, largest)| largest).collect();
        largest.sort_unstable_by(|a, b| b.cmp(a));
        let micros = largest.iter().take(LARGEST).map(|(nanos, put)| (nanos / 1000, *put));
        println!("largest, in microseconds, and puts: {:?}", micros.collect::<Vec<_>>());
    }
    db.close().unwrap();
    std::fs::remove_dir_all(dir).unwrap();
}
