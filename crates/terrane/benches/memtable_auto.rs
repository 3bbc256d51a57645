//! `memtable=auto` against every kind that it chooses from, on a random sequence of phases.
//!
//! `cargo bench -p terrane --bench memtable_auto -- SEED OPERATIONS ROUNDS`: each phase has its own mix
//! of operations, number of threads and number of keys, and continues with the tree and the memtable of
//! the previous phase. Kinds take turns, and rounds alternate direction. Prints a Markdown table of the
//! median time per operation of each kind in each phase, relative to the fastest fixed kind.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]
#![allow(clippy::disallowed_types, reason = "a benchmark takes times")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use terrane::storage::MemoryStorage;
use terrane::{Db, Design, Durability, Event, Options};
use terrane_testkit::Rng;

const PHASES: usize = 10;
const KINDS: [&str; 6] =
    ["btree", "vector", "vector(query=scan)", "hash-vector(buckets=65536)", "flodb", "auto"];
const DESIGN: &str = "leveling; buffer=8MiB; delay=never; stop=never";

/// Lookups and ranges pick one of this many most recently written keys.
const RECENT: u64 = 20_000;

/// The number of entries that a range reads.
const RANGE: usize = 10;

#[derive(Debug, Clone, Copy)]
struct Phase {
    /// The number of lookups in 10,000 operations.
    lookups: u64,
    ranges: u64,
    threads: u64,
    /// The number of keys that are written again and again; 0 for new keys.
    keys: u64,
}

impl Phase {
    fn random(rng: &mut Rng) -> Self {
        let lookups = *rng.pick(&[0, 0, 1, 1000, 5000, 9000, 9990]);
        let ranges = *rng.pick(&[0, 0, 0, 500]) * u64::from(lookups < 9000);
        Self { lookups, ranges, threads: *rng.pick(&[1, 1, 2]), keys: *rng.pick(&[0, 0, 1000]) }
    }

    fn name(&self) -> String {
        let percent = |part: u64| part as f64 / 100.0;
        let keys = if self.keys > 0 { format!(", {} keys", self.keys) } else { String::new() };
        let Self { lookups, ranges, threads, .. } = *self;
        format!(
            "{} % lookups, {} % ranges, {threads} threads{keys}",
            percent(lookups),
            percent(ranges)
        )
    }
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    // Keys that are never written begin with larger bytes.
    key[..8].copy_from_slice(&(Rng::new(number).bits() >> 1).to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Performs the operations of a phase in one thread.
fn client(db: &Db, phase: &Phase, operations: u64, written: &AtomicU64, mut rng: Rng) {
    for _ in 0..operations {
        let kind = rng.below(10_000);
        let newest = written.load(Ordering::Relaxed).max(1);
        let known = match phase.keys {
            0 => newest - 1 - rng.below(newest.min(RECENT)),
            keys => rng.below(keys),
        };
        if kind < phase.lookups {
            let mut key = key(known);
            if kind.is_multiple_of(2) {
                key[0] |= 0x80;
            }
            drop(db.get(key).unwrap());
        } else if kind < phase.lookups + phase.ranges {
            let found = db.range(key(known)..).unwrap().take(RANGE);
            found.for_each(|entry| drop(entry.unwrap()));
        } else if phase.keys > 0 {
            db.put(key(known), [7; 100]).unwrap();
        } else {
            db.put(key(written.fetch_add(1, Ordering::Relaxed)), [7; 100]).unwrap();
        }
    }
}

/// Runs all phases. Returns the nanoseconds per operation and the last kind of each phase, and the
/// number of choices.
fn run(kind: &str, phases: &[Phase], operations: u64) -> (Vec<f64>, Vec<String>, usize) {
    let design: Design = format!("{DESIGN}; memtable={kind}").parse().unwrap();
    let storage = Arc::new(MemoryStorage::new(1));
    let options = Options::new().design(design).storage(storage).durability(Durability::None);
    let db = options.open("db").unwrap();
    let written = AtomicU64::new(0);
    let (mut each, mut kinds) = (Vec::new(), Vec::new());
    for (number, phase) in phases.iter().enumerate() {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..phase.threads {
                let rng = Rng::new(number as u64 * 100 + thread);
                let (db, written) = (&db, &written);
                scope.spawn(move || client(db, phase, operations / phase.threads, written, rng));
            }
        });
        each.push(start.elapsed().as_nanos() as f64 / operations as f64);
        kinds.extend(db.tree().memtable_choice.map(|choice| choice.kind.to_string()));
        db.wait_for_compactions().unwrap();
    }
    let chosen = |event: &terrane::LoggedEvent| matches!(event.event, Event::MemtableChosen { .. });
    (each, kinds, db.events().iter().filter(|event| chosen(event)).count())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let numbers: Vec<u64> =
        std::env::args().skip(1).filter_map(|word| word.parse::<u64>().ok()).collect();
    let [seed, operations, rounds] = numbers[..] else {
        return println!("nothing to do: see the head of this file");
    };
    let mut rng = Rng::new(seed);
    let phases: Vec<Phase> = (0..PHASES).map(|_| Phase::random(&mut rng)).collect();
    let mut all = vec![vec![Vec::new(); PHASES]; KINDS.len()];
    let (mut last, mut choices) = (Vec::new(), 0);
    for round in 0..rounds {
        for step in 0..KINDS.len() {
            let at = if round % 2 == 0 { step } else { KINDS.len() - 1 - step };
            let (each, kinds, count) = run(KINDS[at], &phases, operations);
            all[at].iter_mut().zip(each).for_each(|(all, one)| all.push(one));
            if !kinds.is_empty() {
                (last, choices) = (kinds, count);
            }
        }
    }
    let medians: Vec<Vec<f64>> =
        all.into_iter().map(|phases| phases.into_iter().map(median).collect()).collect();
    println!("| phase | {} | chosen at the end |", KINDS.join(" | "));
    println!("|---|{}---|", "---:|".repeat(KINDS.len()));
    let mut worst: f64 = 0.0;
    for (at, phase) in phases.iter().enumerate() {
        let fixed = medians[..KINDS.len() - 1].iter().map(|each| each[at]);
        let least = fixed.fold(f64::INFINITY, f64::min);
        let cells: Vec<String> = medians
            .iter()
            .map(|each| format!("{:.0} ns ({:.2}×)", each[at], each[at] / least))
            .collect();
        let chosen = last.get(at).map_or("", String::as_str);
        println!("| {} | {} | `{chosen}` |", phase.name(), cells.join(" | "));
        worst = worst.max(medians[KINDS.len() - 1][at] / least);
    }
    let whole: Vec<f64> = medians.iter().map(|each| each.iter().sum()).collect();
    let (auto, fixed) = (whole[KINDS.len() - 1], &whole[..KINDS.len() - 1]);
    let least = fixed.iter().copied().fold(f64::INFINITY, f64::min);
    println!(
        "\nauto takes at most {worst:.2}× of the best kind of a phase, and {:.2}× of the best kind of the whole \
         sequence, after {choices} reported choices.",
        auto / least
    );
}
