//! The cost of a backup to the writers of a database: `cargo run --release -p terrane-backup --example
//! cost`.
//!
//! One thread writes values of 1 KiB at random keys, and records the time of each call. Each round has four
//! phases: no backup, a first backup, no backup, and a second backup to the same repository; every other
//! round runs them in reverse order, and its second backup goes to the repository of the previous round.
//! Compactions end before each phase. A write that takes longer than 100 ms is printed with the stalls of
//! the engine during the phase. At the end, the medians of the rounds are printed, with their ratios.
//!
//! The arguments are optional: a directory, the MiB of the database, the writes per second (0: as many as possible),
//! the rounds, and the rate of the backups in MiB/s (0: none).
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use terrane::{Db, Event};
use terrane_backup::{CreateOptions, Directory, create};

/// How long writers run without a backup.
const QUIET: Duration = Duration::from_secs(4);

/// Writes that take at least this long are printed.
const SLOW: Duration = Duration::from_millis(100);

/// A generator of keys and values, good enough for data that does not compress.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn value(&mut self) -> Vec<u8> {
        (0..128).flat_map(|_| self.next().to_le_bytes()).collect()
    }
}

/// The times of the writes of a phase.
#[derive(Clone, Copy)]
struct Phase {
    writes_per_second: f64,
    p50: Duration,
    p99: Duration,
    longest: Duration,
}

/// The measured database and its load.
struct Setup<'a> {
    db: &'a Db,
    keys: u64,
    writes_per_second: u32,
}

impl Setup<'_> {
    /// Writes until `is_done`.
    fn write(&self, is_done: &AtomicBool) -> Phase {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut took = Vec::new();
        let begun = Instant::now();
        while !is_done.load(Ordering::Relaxed) {
            let (key, value) = (random.next() % self.keys, random.value());
            let call = Instant::now();
            self.db.put(key.to_be_bytes(), value).unwrap();
            let lasted = call.elapsed();
            took.push(lasted);
            if lasted >= SLOW {
                let after = (call - begun).as_secs_f64();
                println!("  a write took {lasted:.0?}, {after:.2} s after the begin");
            }
            if self.writes_per_second > 0 {
                let count = u32::try_from(took.len()).unwrap();
                let due = begun + Duration::from_secs(1) * count / self.writes_per_second;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
        }
        let writes_per_second = took.len() as f64 / begun.elapsed().as_secs_f64();
        took.sort_unstable();
        let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
        Phase { writes_per_second, p50: at(0.5), p99: at(0.99), longest: at(1.0) }
    }

    /// Runs something while another thread writes.
    fn beside(&self, name: &str, run: impl FnOnce()) -> Phase {
        self.db.wait_for_compactions().unwrap();
        let number = self.db.events().last().map_or(0, |event| event.number);
        let is_done = AtomicBool::new(false);
        let phase = std::thread::scope(|scope| {
            let writer = scope.spawn(|| self.write(&is_done));
            run();
            is_done.store(true, Ordering::Relaxed);
            writer.join().unwrap()
        });
        let Phase { writes_per_second, p50, p99, longest } = phase;
        println!(
            "{name}: {writes_per_second:.0} writes/s, p50 {p50:?}, p99 {p99:?}, longest {longest:?}"
        );
        if longest >= SLOW {
            for event in self.db.events().iter().filter(|event| event.number > number) {
                if matches!(event.event, Event::WritesStalled(_) | Event::WritesResumed { .. }) {
                    println!("  {}", event.event);
                }
            }
        }
        phase
    }

    fn backup(&self, name: &str, repository: &Path, options: &CreateOptions) -> Phase {
        self.beside(name, || {
            let begun = Instant::now();
            let created = create(self.db, &Directory::new(repository), options).unwrap();
            let (stored, all) = (created.stored_bytes >> 20, created.backup.bytes >> 20);
            let seconds = begun.elapsed().as_secs_f64();
            println!("  stored {stored} MiB of {all} MiB in {seconds:.2} s");
        })
    }
}

fn print_medians(name: &str, phases: &[Phase], quiet: &[Phase]) {
    let median = |of: &dyn Fn(&Phase) -> f64, phases: &[Phase]| {
        let mut values: Vec<f64> = phases.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let both = |of: &dyn Fn(&Phase) -> f64| {
        let (own, other) = (median(of, phases), median(of, quiet));
        (own, own / other)
    };
    let (rate, rate_ratio) = both(&|phase| phase.writes_per_second);
    let (p99, p99_ratio) = both(&|phase| phase.p99.as_secs_f64() * 1e6);
    let (longest, longest_ratio) = both(&|phase| phase.longest.as_secs_f64() * 1e3);
    println!(
        "{name}: {rate:.0} writes/s ({rate_ratio:.3}), p99 {p99:.1} µs ({p99_ratio:.2}), longest \
         {longest:.1} ms ({longest_ratio:.1})"
    );
}

fn main() {
    let mut args = std::env::args().skip(1);
    let temporary = tempfile::tempdir().unwrap();
    let dir = args.next().map_or_else(|| temporary.path().to_owned(), Into::into);
    let mut number =
        |default: u64| args.next().map_or(default, |text| text.parse::<u64>().unwrap());
    let (mebibytes, writes, rounds, rate) = (number(128), number(5000), number(5), number(0));
    let keys = mebibytes << 10;
    let db = Db::open(dir.join("db")).unwrap();
    let mut random = Random(1);
    for key in 0..keys {
        db.put(key.to_be_bytes(), random.value()).unwrap();
    }
    db.flush().unwrap();
    let setup = Setup { db: &db, keys, writes_per_second: u32::try_from(writes).unwrap() };
    let options = match rate {
        0 => CreateOptions::new(),
        rate => CreateOptions::new().rate(rate << 20),
    };
    let (mut quiet, mut first, mut second) = (Vec::new(), Vec::new(), Vec::new());
    let mut last = None;
    for round in 0..rounds {
        let repository = dir.join(format!("repository {round}"));
        let mut begin = || quiet.push(setup.beside("no backup", || std::thread::sleep(QUIET)));
        if round % 2 == 0 {
            begin();
            first.push(setup.backup("first backup", &repository, &options));
            begin();
            second.push(setup.backup("second backup", &repository, &options));
        } else {
            let before = last.take().unwrap_or_else(|| repository.clone());
            second.push(setup.backup("second backup", &before, &options));
            begin();
            first.push(setup.backup("first backup", &repository, &options));
            begin();
            std::fs::remove_dir_all(before).unwrap();
        }
        if let Some(old) = last.replace(repository) {
            std::fs::remove_dir_all(old).unwrap();
        }
    }
    println!("medians, and their ratios to those without a backup:");
    print_medians("no backup", &quiet, &quiet);
    print_medians("first backup", &first, &quiet);
    print_medians("second backup", &second, &quiet);
}
