//! A writing process is killed many times; every write that it acknowledged must survive.
//!
//! The test runs itself as the writer: the child writes numbered keys and prints each number once
//! its write has returned.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have threads and variables of their own")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use terrane::{Db, Design, Durability, KeyspaceOptions, Options, WriteBatch};
use terrane_policy::MemtableKind;
use terrane_testkit::{HANG_LIMIT, Rng, print_counts, seed_from_env};

const DIR_VARIABLE: &str = "TERRANE_KILL_DIR";
const MODE_VARIABLE: &str = "TERRANE_KILL_DURABILITY";
const THREADS: u64 = 2;

/// Trees of several shapes. The seed of a run picks one of them, and an example of a memtable.
const TREES: &[&str] = &[
    "balanced L0=2 base=64KiB",
    "tiering T=3 L0=2 base=64KiB",
    "leveling T=4 L0=1 base=64KiB",
    "lazy-leveling T=3 L0=2 base=64KiB",
    "1-leveling T=4 L0=2 base=64KiB",
    "balanced L0=3 base=64KiB",
    "tiering T=4 L0=3 base=64KiB",
];

fn open(dir: &Path, durability: Durability) -> Db {
    Options::new()
        .durability(durability)
        .log_segment_bytes(256 << 10)
        .memory_budget(8 << 20)
        .open(dir)
        .unwrap()
}

fn key(thread: u64, number: u64) -> Vec<u8> {
    // Keys are scattered, so that compactions have to merge.
    let scattered = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [&scattered.to_be_bytes()[..4], &thread.to_be_bytes()[7..], &number.to_be_bytes()].concat()
}

fn value(thread: u64, number: u64) -> Vec<u8> {
    Rng::new(thread << 32 | number).bits().to_be_bytes().repeat((number % 20) as usize + 1)
}

/// Writes until it is killed: batches across keyspaces, and deletes of earlier keys.
fn write_until_killed(dir: &Path, durability: Durability) {
    let db = open(dir, durability);
    let design = db.design();
    let other = db.keyspace("other", KeyspaceOptions::new().design(design)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, other) = (&db, &other);
            scope.spawn(move || {
                let from = next_number(db, thread);
                for number in from.. {
                    let mut batch = WriteBatch::new();
                    batch.put(key(thread, number), value(thread, number));
                    batch.put_in(other, key(thread, number), b"too");
                    batch.put([b'n', thread as u8], (number + 1).to_be_bytes());
                    if number >= 50 {
                        batch.delete(key(thread, number - 50));
                    }
                    db.write(&batch).unwrap();
                    // One write call per line, so the threads' lines do not mix.
                    std::io::stdout().write_all(format!("{thread} {number}\n").as_bytes()).unwrap();
                }
            });
        }
    });
}

fn next_number(db: &Db, thread: u64) -> u64 {
    let stored = db.get([b'n', thread as u8]).unwrap();
    stored.map_or(0, |bytes| u64::from_be_bytes(bytes[..].try_into().unwrap()))
}

/// Runs a child and kills it after the given time, or else once every thread has acknowledged more
/// than [`ENOUGH`] writes. Returns the last number that each thread acknowledged.
fn run_child(dir: &Path, durability: Durability, lives: Option<Duration>) -> Vec<Option<u64>> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_writes", "--nocapture", "--test-threads=1"])
        .env(DIR_VARIABLE, dir)
        .env(MODE_VARIABLE, durability.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let stdout = child.stdout.take().unwrap();
    let (kill_now, must_kill) = mpsc::channel::<()>();
    let killer = std::thread::spawn(move || {
        let _ = must_kill.recv_timeout(lives.unwrap_or(HANG_LIMIT));
        child.kill().unwrap();
        child.wait().unwrap()
    });
    let mut acknowledged = vec![None; THREADS as usize];
    for line in BufReader::new(stdout).lines() {
        let line = line.unwrap();
        // The child's test harness prints lines of its own, and it prints text in front of the
        // first line of `child_writes`.
        let mut words = line.rsplit(' ').map(str::parse::<u64>);
        if let (Some(Ok(number)), Some(Ok(thread))) = (words.next(), words.next()) {
            acknowledged[thread as usize] = Some(number);
        }
        if lives.is_none() && is_enough(&acknowledged) {
            let _ = kill_now.send(());
        }
    }
    let ended = killer.join().unwrap();
    // A panic has an exit code of its own.
    assert!(!ended.success() && ended.code() != Some(101), "the child ended by itself: {ended}");
    acknowledged
}

/// The number of writes after which a thread deletes its first keys.
const ENOUGH: u64 = 50;

fn is_enough(acknowledged: &[Option<u64>]) -> bool {
    acknowledged.iter().all(|number| number.is_some_and(|number| number > ENOUGH))
}

fn check(db: &Db, thread: u64, acknowledged: Option<u64>, story: &str) {
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    let next = next_number(db, thread);
    let promised = acknowledged.map_or(0, |number| number + 1);
    // One write may have happened without being acknowledged.
    assert!(
        (promised..=promised + 1).contains(&next),
        "{next} writes, {promised} acknowledged, {story}"
    );
    for number in next.saturating_sub(50)..next {
        let found = db.get(key(thread, number)).unwrap();
        assert_eq!(found.as_deref(), Some(&value(thread, number)[..]), "{number} in {story}");
    }
    for number in 0..next {
        assert!(
            other.contains(key(thread, number)).unwrap(),
            "{number} of the other keyspace in {story}"
        );
    }
    if next > 50 {
        for number in 0..next - 50 {
            assert!(!db.contains(key(thread, number)).unwrap(), "{number} came back in {story}");
        }
    }
    assert!(!other.contains(key(thread, next)).unwrap(), "half of a batch in {story}");
}

/// Runs as the child. Does nothing unless the parent passes a directory.
#[test]
fn child_writes() {
    let Some(dir) = std::env::var_os(DIR_VARIABLE) else { return };
    let durability = std::env::var(MODE_VARIABLE).unwrap().parse().unwrap();
    write_until_killed(Path::new(&dir), durability);
}

fn kill_many_times(durability: Durability, kills: u64) {
    let seed = seed_from_env(9000);
    let kills =
        std::env::var("TERRANE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(kills);
    let mut rng = Rng::new(seed);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    // The lengths of the two lists have no common factor, so all pairs occur.
    let tree = TREES[(seed % TREES.len() as u64) as usize];
    let examples = MemtableKind::EXAMPLES;
    let memtable = examples[(seed % examples.len() as u64) as usize];
    let values = ["inline", "separate(64,file=16KiB)"][(seed / 2 % 2) as usize];
    let design = format!("{tree}; memtable={memtable}; buffer=32KiB; table=32KiB; block=512");
    let design: Design = format!("{design}; values={values}").parse().unwrap();
    let small = Options::new().design(design).durability(durability).log_segment_bytes(256 << 10);
    let small = small.flush_threads(1 + (seed % 3) as usize);
    small.open(&path).unwrap().close().unwrap();
    let mut acknowledged: Vec<Option<u64>> = vec![None; THREADS as usize];
    let mut writes = 0;
    // On a busy machine a child may die before it writes. The last child writes enough.
    for kill in 0..=kills {
        let lives = (kill < kills).then(|| Duration::from_millis(rng.between(5, 150)));
        for (thread, number) in run_child(&path, durability, lives).into_iter().enumerate() {
            let before = acknowledged[thread].map_or(0, |last| last + 1);
            writes += number.map_or(0, |last| last + 1 - before);
            acknowledged[thread] = number.or(acknowledged[thread]);
        }
        let story = format!("kill {kill} of {durability}, seed {seed}");
        let db = open(&path, durability);
        for thread in 0..THREADS {
            check(&db, thread, acknowledged[thread as usize], &story);
            // The check has read the unacknowledged write, if any, so it must survive.
            acknowledged[thread as usize] = next_number(&db, thread).checked_sub(1);
        }
        if rng.percent(30) {
            db.close().unwrap();
        }
    }
    assert!(is_enough(&acknowledged), "{acknowledged:?}");
    print_counts(&[("kills", kills + 1), ("acknowledged_writes", writes)]);
}

#[test]
fn acknowledged_writes_survive_being_killed() {
    kill_many_times(Durability::Process, 12);
}

#[test]
fn synced_writes_survive_being_killed() {
    kill_many_times(Durability::Sync, 6);
}
