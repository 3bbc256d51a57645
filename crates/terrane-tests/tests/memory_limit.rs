//! The memory of a process stays within the memory budget, under a hard limit of the operating
//! system, while it fills, reads and scans several times as much data.
//!
//! The test runs itself as the process. Its anonymous memory is sampled the whole time.
#![cfg(target_os = "linux")]
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have threads and variables of their own")]

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use terrane::{Db, Event, Options, ReadMode};
use terrane_testkit::{Rng, StopOnDrop, seed_from_env};

const DIR_VARIABLE: &str = "TERRANE_MEMORY_DIR";
const MODE_VARIABLE: &str = "TERRANE_MEMORY_MODE";

const BUDGET: u64 = 64 << 20;

/// What the process takes beyond the budget: the program, the stacks of more than twenty threads, the
/// buffers of the log and of the allocator, and the test's own data. Measured: up to 18 MiB.
const PROGRAM: u64 = 24 << 20;

/// Fixed, because the default depends on the number of processors, and memory use depends on it.
const COMPACTION_THREADS: usize = 2;

/// Data segments and private mappings count in full against this limit, even where unused: 8 MiB
/// stacks, and the heaps of threads. The limit ends the process if memory use gets out of hand.
const HARD_LIMIT: u64 = BUDGET + BUDGET / 10 + PROGRAM + (128 << 20);

const VALUE_BYTES: usize = 400;
const KEYS: u64 = 500_000;

fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn value(number: u64, round: u64) -> Vec<u8> {
    Rng::new(number << 8 | round).bytes(VALUE_BYTES)
}

/// Returns the anonymous memory of this process in bytes.
fn anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

fn check_reads(db: &Db, rng: &mut Rng, reads: u64, round: u64) {
    for _ in 0..reads {
        let number = rng.below(KEYS);
        assert_eq!(db.get(key(number)).unwrap().unwrap(), value(number, round));
    }
}

/// Fills a database, reads and scans it while it is overwritten, and compacts it.
fn work(dir: &Path, mode: ReadMode, report: impl Fn(&str)) {
    let design = "balanced; buffer=4MiB; table=2MiB; memtable=btree".parse().unwrap();
    let options = Options::new().memory_budget(BUDGET).compaction_threads(COMPACTION_THREADS);
    let db = options.read_mode(mode).design(design).open(dir).unwrap();
    let mut rng = Rng::new(seed_from_env(81));
    (0..KEYS).for_each(|number| db.put(key(number), value(number, 0)).unwrap());
    report("fill");
    check_reads(&db, &mut rng, 10_000, 0);
    report("reads");
    assert_eq!(db.iter().unwrap().map(Result::unwrap).count() as u64, KEYS);
    report("scan");
    let keys: Vec<[u8; 8]> = (0..500).map(|_| key(rng.below(KEYS))).collect();
    assert!(db.multi_get(&keys).unwrap().iter().all(Option::is_some));
    std::thread::scope(|scope| {
        let writer = scope
            .spawn(|| (0..KEYS).for_each(|number| db.put(key(number), value(number, 1)).unwrap()));
        while !writer.is_finished() {
            let number = rng.below(KEYS);
            let found = db.get(key(number)).unwrap().unwrap();
            assert!(found == value(number, 0) || found == value(number, 1));
            assert!(db.range(key(number)..).unwrap().take(50).map(Result::unwrap).count() > 0);
        }
    });
    report("reads while writing");
    db.compact_range(..).unwrap();
    check_reads(&db, &mut rng, 5_000, 1);
    report("compaction");
    let stats = db.stats();
    assert!(stats.table_bytes > 3 * BUDGET, "{}", stats.table_bytes);
    assert!(stats.memory.total_bytes() <= BUDGET + BUDGET / 10, "{:?}", stats.memory);
    db.close().unwrap();
}

/// The process itself; does nothing when the test is not its parent.
#[test]
fn the_limited_process() {
    let Some(dir) = std::env::var_os(DIR_VARIABLE) else { return };
    let limit = Rlimit { current: Some(HARD_LIMIT), maximum: Some(HARD_LIMIT) };
    setrlimit(Resource::Data, limit).unwrap();
    let mode = std::env::var(MODE_VARIABLE).unwrap().parse().unwrap();
    let (is_done, highest) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                highest.fetch_max(anonymous_bytes(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let end = StopOnDrop(&is_done);
        work(Path::new(&dir), mode, |phase| {
            let highest = highest.swap(0, Ordering::Relaxed);
            println!("{phase}: {} KiB of anonymous memory", highest >> 10);
            assert!(highest <= BUDGET + BUDGET / 10 + PROGRAM, "{phase}: {highest} bytes");
        });
        drop(end);
    });
}

#[test]
fn a_process_stays_within_its_memory_budget() {
    // One mode per run is enough, because each takes a while.
    let modes = ["cached", "direct"];
    let mode = modes[seed_from_env(82) as usize % 2];
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_limited_process", "--nocapture"])
        .env(DIR_VARIABLE, dir.path())
        .env(MODE_VARIABLE, mode)
        // The system allocator retains freed memory: the more threads and freed large blocks, the
        // more it retains. The database does not use that memory.
        .env("MALLOC_ARENA_MAX", "1")
        .env("MALLOC_MMAP_THRESHOLD_", "131072")
        .env("MALLOC_TRIM_THRESHOLD_", "131072")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{mode}:\n{text}\n{errors}");
    assert!(text.contains("compaction: "), "{text}");
    println!("{mode}:\n{text}");
}

const ADDRESS_SPACE_VARIABLE: &str = "TERRANE_ADDRESS_SPACE_DIR";

/// A process that may use 1,000 MiB; does nothing when the test is not its parent.
#[test]
fn the_process_with_little_address_space() {
    let Some(dir) = std::env::var_os(ADDRESS_SPACE_VARIABLE) else { return };
    let limit = 1000 << 20;
    setrlimit(Resource::As, Rlimit { current: Some(limit), maximum: Some(limit) }).unwrap();
    let db = Options::new().open(&dir).unwrap();
    // What the process has mapped leaves less.
    let budget_bytes = db.stats().memory.budget_bytes;
    assert!((limit / 4..limit / 2).contains(&budget_bytes), "{budget_bytes}");
    assert!(db.events().is_empty(), "{:?}", db.events());
    db.put("key", "value").unwrap();
    db.close().unwrap();
    let (send, events) = channel();
    let options = Options::new().on_event(move |event| send.send(event.event.clone()).unwrap());
    let db = options.memory_budget(2 << 30).open(&dir).unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), b"value");
    let event = events.recv().unwrap();
    let Event::MemoryBudgetTooLarge { budget_bytes, limit_bytes, limit: source, .. } = &event
    else {
        panic!("{event}");
    };
    assert_eq!((*budget_bytes, &source[..]), (2 << 30, "the rest of RLIMIT_AS"));
    assert!((limit / 2..limit).contains(limit_bytes), "{limit_bytes}");
    assert!(event.to_string().contains("by the rest of RLIMIT_AS; lower the budget"), "{event}");
    println!("the budget follows the limit");
}

#[test]
fn the_default_budget_follows_the_limit_of_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_process_with_little_address_space", "--nocapture"])
        .env(ADDRESS_SPACE_VARIABLE, dir.path())
        // Each further arena of the allocator reserves 64 MiB of addresses.
        .env("MALLOC_ARENA_MAX", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("the budget follows the limit"), "{text}{output:?}");
}

const SHORT_VARIABLE: &str = "TERRANE_MEMORY_SHORT_DIR";

/// A process that needs more and more memory itself; does nothing when the test is not its parent.
#[test]
fn the_process_that_runs_short_of_memory() {
    const STEP: usize = 16 << 20;
    let Some(dir) = std::env::var_os(SHORT_VARIABLE) else { return };
    let limit = 800 << 20;
    setrlimit(Resource::Data, Rlimit { current: Some(limit), maximum: Some(limit) }).unwrap();
    let (send, events) = channel();
    let options = Options::new().on_event(move |event| {
        if let Event::MemoryShort { .. } | Event::MemoryRecovered { .. } = &event.event {
            send.send(event.event.clone()).unwrap();
        }
    });
    let db = options.memory_budget(300 << 20).compaction_threads(1).open(&dir).unwrap();
    let keys = 180_000u64;
    (0..keys).for_each(|number| db.put(key(number), [7; 1000]).unwrap());
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    (0..keys).for_each(|number| assert!(db.get(key(number)).unwrap().is_some()));
    let cache_bytes = || db.stats().memory.cache_bytes;
    let full = cache_bytes();
    assert!(full > 100 << 20, "{full}");
    assert!(events.try_recv().is_err(), "memory is short already");
    // An allocation that fails ends the process.
    let mut taken = Vec::new();
    while cache_bytes() > full / 2 {
        taken.push(std::hint::black_box(vec![1u8; STEP]));
        std::thread::sleep(Duration::from_millis(150));
        assert!(taken.len() * STEP < limit as usize, "{} bytes", cache_bytes());
    }
    let event = events.recv().unwrap();
    assert!(event.to_string().ends_with("of 800 MiB are free (RLIMIT_DATA)"), "{event}");
    assert_eq!(db.get(key(1)).unwrap().unwrap(), [7; 1000]);
    drop(taken);
    let event = events.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(matches!(event, Event::MemoryRecovered { .. }), "{event}");
    (0..keys).for_each(|number| assert!(db.get(key(number)).unwrap().is_some()));
    assert!(cache_bytes() > full / 4 * 3, "{} of {full}", cache_bytes());
    db.close().unwrap();
    println!("the cache gives memory back");
}

/// The budget was what the cache kept, however little memory the rest of the process found.
#[test]
fn the_cache_gives_memory_back_when_it_is_short() {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_process_that_runs_short_of_memory", "--nocapture"])
        .env(SHORT_VARIABLE, dir.path())
        .env("MALLOC_ARENA_MAX", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("the cache gives memory back"), "{text}{output:?}");
}
