//! Concurrent writes, lookups and scans of a few keys are linearizable, over every kind of memtable.
//!
//! Threads record the start, the end and the answer of each operation. There must be an order of the
//! operations that respects these times and in which every read returns the last write before it:
//! for each key alone, and for all keys together, because batches and scans are atomic.
//!
//! A history in which operations follow one another shows nothing. So threads start each burst
//! together, the log of the test pauses writers between their sequence number and their insert, and
//! the test counts the operations that overlap another operation on the same key.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(unreachable_pub, reason = "a test crate has no users")]
#![allow(clippy::disallowed_methods, reason = "users have threads and variables of their own")]

mod checker;
mod history;
mod yielding_storage;

use std::sync::Arc;

use terrane::storage::MemoryStorage;
use terrane::{Background, Db, Design, Durability, Options, ReadMode, WritePath};
use terrane_policy::MemtableKind;
use terrane_testkit::{Rng, print_counts, seed_from_env};

use checker::{Event, events_of_key, is_linearizable, overlapping};
use history::{KEYS, Plan, Recorded, record, record_end};
use yielding_storage::{Progress, YieldingStorage};

/// Kinds of memtables that the examples of the policy crate lack.
const MORE_KINDS: &[&str] = &[
    "flodb(membuffer=25%,partition-bits=4,drain-threads=1,lower=skiplist)",
    "flodb(membuffer=50%,partition-bits=1,drain-threads=2,lower=skiplist,insert=single)",
    "flodb(membuffer=90%,partition-bits=0,drain-threads=0,lower=skiplist,update=versions)",
    "flodb(membuffer=0%,partition-bits=0,drain-threads=0,lower=skiplist)",
    "flodb(membuffer=0%,partition-bits=0,drain-threads=0)",
];

/// All kinds whose scans are linearizable.
fn kinds() -> Vec<&'static str> {
    let examples = MemtableKind::EXAMPLES.iter().copied();
    examples
        .filter(|kind| !kind.contains("scan=restart"))
        .chain(MORE_KINDS.iter().copied())
        .collect()
}

/// The sizes of the buffer, each with the number of other keys in a large batch. The smaller buffers
/// rotate within the history. The largest keeps everything in one memtable, where versions of a key
/// are far from each other in the order of arrival.
const BUFFERS: &[(&str, u64)] = &[("1KiB", 3), ("16KiB", 10), ("4MiB", 900)];

/// Opens a database whose log pauses writers, with one of these buffers.
fn open(
    memtable: &str,
    buffers: &[(&str, u64)],
    rng: &mut Rng,
    progress: &Arc<Progress>,
) -> (Db, Plan) {
    let seed = rng.bits() >> 32;
    let (buffer, others_max) = *rng.pick(buffers);
    let level0 = *rng.pick(&["L0=1", "L0=1", "L0=4; flush=merge"]);
    let design = format!("balanced base=2KiB {level0}; buffer={buffer}; table=1KiB");
    let design: Design = format!("{design}; memtable={memtable}").parse().unwrap();
    let interval = Durability::Interval(std::time::Duration::from_millis(1));
    let process = Durability::Process;
    let durability = *rng.pick(&[process, process, process, process, Durability::Sync, interval]);
    let storage =
        YieldingStorage { inner: MemoryStorage::new(seed), progress: Arc::clone(progress) };
    let options = Options::new()
        .storage(Arc::new(storage))
        .durability(durability)
        .background(*rng.pick(&[Background::Threads, Background::Inline]))
        .write_path(*rng.pick(&[WritePath::Concurrent, WritePath::Concurrent, WritePath::Queue]))
        .read_mode(*rng.pick(&[ReadMode::Cached, ReadMode::Direct]))
        .design(design);
    let db = options.log_segment_bytes(256 << 10).open("db").unwrap();
    (db, Plan { seed, operations: 60, others_max, scan_percent: rng.below(3) * 10 })
}

/// Records a history over a kind of memtable.
fn run(memtable: &str, buffers: &[(&str, u64)], seed: u64) -> Vec<Recorded> {
    let progress = Arc::new(Progress::default());
    let (db, plan) = open(memtable, buffers, &mut Rng::new(seed), &progress);
    let mut recorded = record(&db, &plan, &progress);
    record_end(&db, &progress, &mut recorded);
    recorded
}

/// Checks each key alone, which is quick, then all keys together. Returns how many events the keys
/// have, and how many of these overlap another event of the same key.
fn check(events: &[Event], label: &str) -> (usize, usize) {
    let (mut count, mut overlaps) = (0, 0);
    for key in 0..KEYS {
        let events = events_of_key(events, key);
        assert!(is_linearizable(&events, 1), "key {key}, {label}: {events:?}");
        count += events.len();
        overlaps += overlapping(&events);
    }
    assert!(is_linearizable(events, KEYS), "{label}: {events:?}");
    (count, overlaps)
}

fn rounds(default: u64) -> u64 {
    std::env::var("TERRANE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Runs and checks histories over several kinds in turn. At least a third of the operations must
/// overlap another one.
fn check_rounds(kinds: &[&str], buffers: &[(&str, u64)], rounds: u64) {
    let seed = seed_from_env(1);
    let (mut count, mut overlaps, mut scans) = (0, 0, 0);
    for round in 0..rounds {
        let memtable = kinds[((seed + round) % kinds.len() as u64) as usize];
        // A preallocated vector does not fit the smallest buffer.
        let smallest = usize::from(memtable.contains("prealloc"));
        let recorded = run(memtable, &buffers[smallest..], seed + round);
        scans += recorded.iter().filter(|recorded| recorded.is_scan).count();
        let events: Vec<Event> = recorded.into_iter().map(|recorded| recorded.event).collect();
        let (more, more_overlaps) = check(&events, &format!("{memtable}, seed {}", seed + round));
        (count, overlaps) = (count + more, overlaps + more_overlaps);
    }
    print_counts(&[
        ("histories", rounds),
        ("history_operations", count as u64),
        ("history_overlapping", overlaps as u64),
        ("history_scans", scans as u64),
    ]);
    assert!(overlaps * 3 >= count, "{overlaps} of {count} operations overlap another");
}

#[test]
fn concurrent_histories_are_linearizable() {
    let kinds = kinds();
    check_rounds(&kinds, BUFFERS, rounds(8 * kinds.len() as u64));
}

/// In memtables in the order of arrival, a lookup stops when no older entry can be a newer version.
#[test]
fn versions_that_arrive_far_out_of_order_are_linearizable() {
    let kinds = ["vector(query=scan)", "hash-vector(buckets=3,prefix=1)"];
    check_rounds(&kinds, &BUFFERS[2..], rounds(60));
}
