//! While a database is written at full speed, the anonymous memory of its process is at most that of
//! the idle process, which is printed, and the memory budget, under every design.
//!
//! The tests run themselves as that process. Its memory is sampled the whole time. By default every
//! memtable runs with the smallest budget; `TERRANE_ROUNDS` is the number of random choices of a design,
//! a budget and a value size, and `TERRANE_SEED` the first seed.
#![cfg(target_os = "linux")]
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have threads and variables of their own")]

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use terrane::{Db, Options, WriteBatch};
use terrane_policy::catalogue;
use terrane_testkit::{Rng, StopOnDrop, seed_from_env};

const CASE_VARIABLE: &str = "TERRANE_MEMORY_CASE";

const MIB: u64 = 1 << 20;

/// The iterators that the writing process opens one after the other, and holds.
const ITERATORS: u64 = 15;

/// What a process writes, and its budget.
#[derive(Debug, Clone)]
struct Case {
    design: String,
    budget_bytes: u64,
    value_bytes: usize,
    seed: u64,
}

impl Case {
    fn new(design: &str, budget_mib: u64, value_bytes: usize) -> Self {
        Self { design: design.into(), budget_bytes: budget_mib * MIB, value_bytes, seed: 1 }
    }

    fn random(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let entry = &catalogue::ALL[rng.index(catalogue::ALL.len())];
        Self {
            design: entry.name.into(),
            budget_bytes: *rng.pick(&[8, 8, 32, 128]) * MIB,
            value_bytes: *rng.pick(&[20, 100, 1000, 10_000]),
            seed,
        }
    }

    fn to_line(&self) -> String {
        let Self { design, budget_bytes, value_bytes, seed } = self;
        format!("{budget_bytes} {value_bytes} {seed} {design}")
    }

    fn parse(line: &str) -> Self {
        let mut parts = line.splitn(4, ' ');
        let mut number = || parts.next().unwrap().parse::<u64>().unwrap();
        let (budget_bytes, value_bytes, seed) = (number(), number() as usize, number());
        Self { design: parts.next().unwrap().into(), budget_bytes, value_bytes, seed }
    }

    fn open(&self, dir: &std::path::Path) -> Db {
        let entry = catalogue::find(&self.design);
        let design = entry.map_or_else(|| self.design.parse().unwrap(), |entry| (entry.design)());
        Options::new().memory_budget(self.budget_bytes).design(design).open(dir).unwrap()
    }
}

/// Returns the anonymous memory of this process in bytes.
fn anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Writes several times the budget, half of each value compressible.
fn write(db: &Db, case: &Case, mut at_steps: impl FnMut()) {
    let mut rng = Rng::new(case.seed);
    let mut value = vec![0; case.value_bytes];
    let entries = 5 * case.budget_bytes / (case.value_bytes as u64 + 40);
    for number in 0..entries {
        for byte in &mut value[..case.value_bytes / 2] {
            *byte = rng.bits() as u8;
        }
        db.put(rng.below(entries).to_be_bytes(), &value).unwrap();
        if number % (entries / ITERATORS) == 0 {
            at_steps();
        }
    }
}

/// The process of a case; does nothing when no test is its parent.
#[test]
fn the_writing_process() {
    let Ok(line) = std::env::var(CASE_VARIABLE) else { return };
    let case = Case::parse(&line);
    let dir = tempfile::tempdir().unwrap();
    let db = case.open(dir.path());
    let base = anonymous_bytes();
    let (is_done, highest) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let bytes = anonymous_bytes();
                if highest.fetch_max(bytes, Ordering::Relaxed) < bytes
                    && bytes > base + case.budget_bytes
                {
                    println!("{} KiB: {:?}", bytes >> 10, db.stats().memory);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let end = StopOnDrop(&is_done);
        write(&db, &case, || ());
        assert!(db.iter().unwrap().map(Result::unwrap).count() > 0);
        drop(end);
    });
    let highest = highest.into_inner();
    let percent = (highest - base) * 100 / case.budget_bytes;
    println!("base {} KiB, highest {} KiB: {percent} % of the budget", base >> 10, highest >> 10);
    assert!(highest <= base + case.budget_bytes, "{percent} % of the budget");
    db.close().unwrap();
}

/// Runs the process of a case, and prints its peak. Returns false if it exceeds the budget.
fn run(case: &Case) -> bool {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_writing_process", "--nocapture"])
        .env(CASE_VARIABLE, case.to_line())
        // Each arena of the system allocator retains freed memory, which the database does not use.
        .env("MALLOC_ARENA_MAX", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        println!("{text}\n{errors}");
    }
    let line = text.lines().find(|line| line.starts_with("base ")).unwrap_or("failed");
    println!("{} of {} MiB: {line}", case.design, case.budget_bytes / MIB);
    output.status.success()
}

/// Runs all cases, and fails if one exceeds its budget.
fn run_all(cases: impl Iterator<Item = Case>) {
    let failed: Vec<Case> = cases.filter(|case| !run(case)).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn a_process_that_writes_at_full_speed_stays_within_its_budget() {
    let rounds = std::env::var("TERRANE_ROUNDS").ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(rounds) = rounds {
        let first: u64 = seed_from_env(83);
        return run_all((first..first + rounds).map(Case::random));
    }
    let designs = [
        "balanced; values=separate(500)",
        "leveling; memtable=btree; compression=lz4",
        "leveling; memtable=skiplist",
        "tiering; memtable=vector",
        "leveling; memtable=hash-skiplist(prefix=6,buckets=100000)",
        "leveling; memtable=hash-linkedlist(prefix=6,buckets=100000)",
        "leveling; memtable=hash-vector(buckets=100000)",
        "leveling; memtable=flodb",
        // Reads most runs.
        "lo+1",
    ];
    run_all(designs.into_iter().map(|design| Case::new(design, 8, 1000)));
}

/// All designs with all budgets, which takes an hour; `TERRANE_LARGE=1` runs it.
#[test]
fn every_design_stays_within_every_budget() {
    if std::env::var_os("TERRANE_LARGE").is_none() {
        return;
    }
    let budgets = [8, 16, 32, 64, 128, 512].into_iter();
    run_all(budgets.flat_map(|budget_mib| {
        catalogue::ALL.iter().map(move |entry| Case::new(entry.name, budget_mib, 1000))
    }));
}

#[test]
fn what_held_iterators_keep_counts_and_makes_memtables_smaller() {
    let dir = tempfile::tempdir().unwrap();
    let case = Case::new("leveling; buffer=4MiB", 16, 1000);
    let db = case.open(dir.path());
    let mut iterators = Vec::new();
    write(&db, &case, || {
        let memory = db.stats().memory;
        let bytes = memory.memtable_bytes + memory.kept_memtable_bytes;
        // Memtables that readers keep borrow nothing.
        assert!(iterators.len() != 2 || bytes <= 7 * MIB, "{memory:?}");
        iterators.push(db.iter().unwrap());
    });
    let memory = db.stats().memory;
    assert!(memory.kept_memtable_bytes > 2 * MIB, "{memory:?}");
    assert!(memory.total_bytes() <= case.budget_bytes / 16 * 15, "{memory:?}");
    drop(iterators);
    let since = Instant::now();
    while db.stats().memory.kept_memtable_bytes > 0 {
        assert!(since.elapsed() < Duration::from_secs(30), "{:?}", db.stats().memory);
        std::thread::sleep(Duration::from_millis(1));
    }
    db.close().unwrap();
}

#[test]
fn writes_larger_than_the_budget_are_admitted_alone() {
    let dir = tempfile::tempdir().unwrap();
    let case = Case::new("leveling; memtable=btree", 4, 1000);
    let db = case.open(dir.path());
    std::thread::scope(|scope| {
        scope.spawn(|| write(&db, &case, || ()));
        for number in 0..3 {
            let db = &db;
            scope.spawn(move || db.put([b'v', number], vec![number; 6 << 20]).unwrap());
        }
        let mut batch = WriteBatch::new();
        for key in 0..6000_u32 {
            batch.put([&b"batch"[..], &key.to_be_bytes()].concat(), [7; 1000]);
        }
        db.write(&batch).unwrap();
    });
    assert!((0..3).all(|number| db.get([b'v', number]).unwrap().unwrap() == vec![number; 6 << 20]));
    assert_eq!(db.prefix("batch").unwrap().count(), 6000);
    let stalls = db.stats().stalls;
    assert!(stalls.memory_budget_micros > 0, "{stalls:?}");
    db.close().unwrap();
}
