//! Times the inner loops in nanoseconds: `cargo bench -p terrane --features micro --bench micro`.
//!
//! Prints one line per loop: its name, and the median, minimum and maximum of several rounds. Each
//! round runs every loop. Memtables have their own benchmark: `cargo bench -p terrane-memtable`.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark takes times")]

use std::time::Instant;

use terrane::micro;

const ROUNDS: u64 = 7;

type Operation = Box<dyn FnMut(u64)>;

fn main() {
    let dir = tempfile::tempdir().unwrap();
    // Name, operation, repetitions per round, and the number of items per operation.
    let mut loops: Vec<(&str, Operation, u64, u64)> = vec![
        ("block search", Box::new(micro::block_search()), 500_000, 1),
        ("filter probe", Box::new(micro::filter_probe()), 2_000_000, 1),
        ("log append", Box::new(micro::log_append(dir.path())), 1_000_000, 1),
        ("time record", Box::new(micro::time_record()), 5_000_000, 1),
        ("time sample", Box::new(micro::time_sample()), 5_000_000, 1),
        ("merge, an entry", Box::new(micro::merge_two()), 3, micro::ENTRIES_MERGED),
    ];
    let mut times = vec![Vec::new(); loops.len()];
    for round in 0..ROUNDS {
        for ((_, operation, count, entries), times) in loops.iter_mut().zip(&mut times) {
            let start = Instant::now();
            (round * *count..(round + 1) * *count).for_each(&mut *operation);
            times.push(start.elapsed().as_nanos() as f64 / (*count * *entries) as f64);
        }
    }
    println!("{:18} {:>9} {:>9} {:>9}", "ns", "median", "least", "greatest");
    for ((name, ..), mut times) in loops.into_iter().zip(times) {
        times.sort_by(f64::total_cmp);
        let (least, median) = (times[0], times[times.len() / 2]);
        let greatest = times[times.len() - 1];
        println!("{name:18} {median:9.1} {least:9.1} {greatest:9.1}");
    }
}
