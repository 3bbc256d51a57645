//! No put takes long because its memtable is full: it does not create the next one, nor reclaim versions in all of
//! this one.

use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use terrane::storage::MemoryStorage;
use terrane::{Background, Db, Design, Durability, Options};
use terrane_testkit::{Rng, seed_from_env};

use crate::support::DIR;

const BUFFER: u64 = 64 << 20;
const VALUE_BYTES: usize = 4000;

pub(crate) fn cpu_micros() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1000
}

/// The bytes of a value that is overwritten.
const OVERWRITTEN_BYTES: usize = 256;

/// The longest CPU time of a put that creates no memtable.
const LONGEST_MICROS: u64 = 1500;

/// How often a longest put is measured until it was short twice. Interrupts of a loaded machine count as CPU time of the
/// thread that they interrupt, up to 4 ms, in up to a third of all runs. Work that a put should not do is in all runs.
const RUNS_MAX: usize = 10;

fn assert_short(kind: &str, longest: impl FnMut() -> u64) {
    let mut measured = Vec::new();
    for micros in std::iter::repeat_with(longest).take(RUNS_MAX) {
        measured.push(micros);
        if measured.iter().filter(|micros| **micros < LONGEST_MICROS).count() == 2 {
            return;
        }
    }
    panic!("{kind}: {measured:?} µs");
}

fn open(kind: &str, background: Background) -> Db {
    open_with(BUFFER, kind, background)
}

fn open_with(buffer: u64, kind: &str, background: Background) -> Db {
    let design = format!("tiering; buffer={buffer}; delay=never; stop=never; memtable={kind}");
    let design: Design = design.parse().unwrap();
    let options = Options::new().design(design).memory_budget(2 << 30).background(background);
    options.storage(Arc::new(MemoryStorage::new(1))).durability(Durability::None).open(DIR).unwrap()
}

/// Puts until the memtable is replaced. Returns the CPU time of the longest put near the end.
fn longest_put(db: &Db, number: &mut u64) -> u64 {
    let put = |number: &mut u64| {
        *number += 1;
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let before = cpu_micros();
        db.put(key, [7; VALUE_BYTES]).unwrap();
        cpu_micros() - before
    };
    // The next memtable is requested when this one is three quarters full. Puts take microseconds
    // here, so the sleep gives the thread the time that slower writers would.
    while db.tree().memtable_bytes < BUFFER / 10 * 9 {
        put(number);
    }
    std::thread::sleep(Duration::from_millis(300));
    let filled = |db: &Db| db.tree().memtable_bytes;
    let mut longest = 0;
    let mut last = filled(db);
    loop {
        longest = longest.max(put(number));
        let now = filled(db);
        if now < last {
            return longest;
        }
        last = now;
    }
}

/// When the put itself created the memtable, that took up to 99 ms of CPU time for a preallocated
/// vector, and milliseconds for the buckets of hashed kinds.
#[test]
fn no_put_creates_the_memtable_that_it_rotates_to() {
    for kind in [
        "vector(prealloc=64MiB)",
        "vector(prealloc=64MiB,query=scan)",
        "hash-vector(buckets=2000000)",
        "hash-skiplist(prefix=8,buckets=2000000)",
        "hash-linkedlist(prefix=8,buckets=2000000)",
    ] {
        let db = open(kind, Background::Threads);
        let mut number = 0;
        assert_short(kind, || longest_put(&db, &mut number));
    }
    // Without threads the put creates it, which takes longer.
    let db = open("vector(prealloc=64MiB)", Background::Inline);
    let longest = longest_put(&db, &mut 0);
    assert!(longest > LONGEST_MICROS, "{longest} µs");
}

/// Puts into a new database until the memtable has learned the span of its keys, and after that. Returns the CPU time of
/// the longest put.
fn longest_first_put(background: Background) -> u64 {
    let db = open_with(4 * BUFFER, "flodb(membuffer=90%)", background);
    let put = |number: u64| {
        // So that a thread on the same processor creates the Membuffer meanwhile.
        if number > 1000 && number.is_multiple_of(100) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let before = cpu_micros();
        db.put(key, [7; VALUE_BYTES]).unwrap();
        cpu_micros() - before
    };
    let longest = (0..8000).map(put).max().unwrap();
    assert!(db.stats().membuffer.writes > 0, "{}", db.stats());
    longest
}

/// The put that found that the first memtable had enough keys created the Membuffer: 5 ms of CPU time or more for
/// 230 MiB.
#[test]
fn no_put_creates_the_membuffer_of_the_first_memtable() {
    assert_short("first flodb", || longest_first_put(Background::Threads));
    // Without threads the put creates it.
    let longest = longest_first_put(Background::Inline);
    assert!(longest > LONGEST_MICROS, "{longest} µs");
}

/// Overwrites keys at random in a new database, until its memtable was full. Returns the CPU time of the longest put.
fn longest_overwrite(kind: &str, seed: u64) -> u64 {
    let db = open(kind, Background::Threads);
    let mut rng = Rng::new(seed);
    // Two versions of each key fill the memtable.
    let keys = BUFFER / OVERWRITTEN_BYTES as u64 / 2;
    let put = |_| {
        let key = rng.below(keys).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let before = cpu_micros();
        db.put(key, [7; OVERWRITTEN_BYTES]).unwrap();
        cpu_micros() - before
    };
    let longest = (0..3 * keys).map(put).max().unwrap();
    let stats = db.stats();
    // On a machine whose processors are busy, the first flush may not have ended.
    let was_full = stats.flushes > 0 || db.tree().immutable_memtables > 0;
    assert!(was_full || stats.membuffer.updates_in_place > 0, "{kind}: never full: {stats}");
    longest
}

/// The put that found a memtable full reclaimed versions in all of it: 4 to 49 ms of CPU time. Nothing else that
/// puts do to a full memtable takes long either, whatever its kind.
#[test]
fn no_put_reclaims_a_whole_memtable() {
    for kind in [
        "btree",
        "skiplist",
        "vector",
        "hash-vector(buckets=100000)",
        "hash-skiplist(prefix=8,buckets=100000)",
        "hash-linkedlist(prefix=8,buckets=100000)",
        "flodb",
        "flodb(lower=skiplist)",
        "flodb(drain-threads=0)",
        "flodb(update=versions)",
        "auto",
    ] {
        let mut seeds = seed_from_env(17)..;
        assert_short(kind, || longest_overwrite(kind, seeds.next().unwrap_or_default()));
    }
}
