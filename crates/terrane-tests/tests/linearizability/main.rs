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

/// FloDB's scan protocol where the moment of every scan comes after its begin, whether it is the
/// scan's own or shared with scans that began earlier.
const FRESH_SCANS: &[&str] = &[
    "flodb(membuffer=50%,partition-bits=1,drain-threads=1,scan=restart,moment=fresh)",
    "flodb(membuffer=50%,partition-bits=3,drain-threads=0,lower=skiplist,scan=restart,chain-max=0)",
    "flodb(membuffer=90%,partition-bits=0,drain-threads=2,scan=restart,restarts-max=0,moment=fresh)",
    "flodb(membuffer=0%,partition-bits=0,drain-threads=0,scan=restart,restarts-max=1,chain-max=0)",
    "flodb(membuffer=30%,partition-bits=2,drain-threads=1,update=versions,scan=restart,chain-max=0)",
];

/// FloDB's scan protocol where scans share the moments of earlier scans.
const SHARED_SCANS: &[&str] = &[
    "flodb(membuffer=50%,partition-bits=1,drain-threads=1,scan=restart)",
    "flodb(membuffer=50%,partition-bits=3,drain-threads=1,lower=skiplist,scan=restart,chain-max=3)",
    "flodb(membuffer=90%,partition-bits=0,drain-threads=2,scan=restart,restarts-max=0)",
    "flodb(membuffer=0%,partition-bits=0,drain-threads=0,scan=restart,restarts-max=1)",
];

/// FloDB's scan protocol where scans share the moments of scans that have ended.
const REUSED_SCANS: &[&str] = &[
    "flodb(membuffer=50%,partition-bits=1,drain-threads=1,scan=restart,moment=reused)",
    "flodb(membuffer=90%,partition-bits=2,lower=skiplist,scan=restart,moment=reused,chain-max=2)",
];

/// All kinds whose scans are linearizable.
fn kinds() -> Vec<&'static str> {
    let examples = MemtableKind::EXAMPLES.iter().copied();
    let examples = examples.filter(|kind| !kind.contains("scan=restart"));
    examples.chain(MORE_KINDS.iter().copied()).chain(FRESH_SCANS.iter().copied()).collect()
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
    (db, Plan { seed, operations: 60, others_max, scan_percent: rng.below(4) * 10 })
}

/// Records a history over a kind of memtable.
fn run(memtable: &str, buffers: &[(&str, u64)], seed: u64) -> Vec<Recorded> {
    let progress = Arc::new(Progress::default());
    let (db, plan) = open(memtable, buffers, &mut Rng::new(seed), &progress);
    let mut recorded = record(&db, &plan, &progress);
    record_end(&db, &progress, &mut recorded);
    recorded
}

/// Checks each key alone, which is quick, then all keys together.
fn check(events: &[Event], label: &str) {
    for key in 0..KEYS {
        let events = events_of_key(events, key);
        assert!(is_linearizable(&events, 1), "key {key}, {label}: {events:?}");
    }
    assert!(is_linearizable(events, KEYS), "{label}: {events:?}");
}

/// The state that scans see; all other operations are linearizable.
#[derive(Debug, Clone, Copy)]
enum ScanGuarantee {
    /// The state at a moment between their begin and their end.
    Linearizable,
    /// The state at a moment between the begin of the first scan in their chain and their end. Each
    /// later scan in a chain overlaps an earlier one.
    SinceChain,
    /// The state at a moment before their end.
    Serializable,
}

impl ScanGuarantee {
    /// Returns the events, with each scan beginning at the earliest state that it may see.
    fn events(self, mut recorded: Vec<Recorded>) -> Vec<Event> {
        recorded.sort_by_key(|recorded| recorded.event.begin);
        let (mut chain_begin, mut chain_end) = (0, 0);
        for recorded in recorded.iter_mut().filter(|recorded| recorded.is_scan) {
            let event = &mut recorded.event;
            if event.begin > chain_end {
                chain_begin = event.begin;
            }
            chain_end = chain_end.max(event.end);
            event.begin = match self {
                Self::Linearizable => event.begin,
                Self::SinceChain => chain_begin,
                Self::Serializable => 0,
            };
        }
        recorded.into_iter().map(|recorded| recorded.event).collect()
    }
}

fn rounds(default: u64) -> u64 {
    std::env::var("TERRANE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Runs and checks histories over several kinds in turn. At least a third of the operations must
/// overlap another one.
fn check_rounds(kinds: &[&str], buffers: &[(&str, u64)], rounds: u64, guarantee: ScanGuarantee) {
    let seed = seed_from_env(1);
    let (mut count, mut overlaps, mut scans) = (0, 0, 0);
    for round in 0..rounds {
        let memtable = kinds[((seed + round) % kinds.len() as u64) as usize];
        // A preallocated vector does not fit the smallest buffer.
        let smallest = usize::from(memtable.contains("prealloc"));
        let recorded = run(memtable, &buffers[smallest..], seed + round);
        scans += recorded.iter().filter(|recorded| recorded.is_scan).count();
        let events: Vec<Event> = recorded.iter().map(|recorded| recorded.event.clone()).collect();
        for key in 0..KEYS {
            let events = events_of_key(&events, key);
            count += events.len();
            overlaps += overlapping(&events);
        }
        check(&guarantee.events(recorded), &format!("{memtable}, seed {}", seed + round));
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
    check_rounds(&kinds, BUFFERS, rounds(8 * kinds.len() as u64), ScanGuarantee::Linearizable);
}

/// In an arrival-order memtable, a lookup stops when no older entry can be a newer version.
#[test]
fn versions_that_arrive_far_out_of_order_are_linearizable() {
    let kinds = ["vector(query=scan)", "hash-vector(buckets=3,prefix=1)"];
    check_rounds(&kinds, &BUFFERS[2..], rounds(60), ScanGuarantee::Linearizable);
}

/// Scans that piggyback on others may miss writes that returned before they began, but they see a
/// state that was current after the first scan of their chain began (FloDB paper, §4.4).
#[test]
fn piggybacking_scans_see_a_state_since_the_begin_of_their_chain() {
    let rounds = rounds(15 * SHARED_SCANS.len() as u64);
    check_rounds(SHARED_SCANS, BUFFERS, rounds, ScanGuarantee::SinceChain);
}

#[test]
fn scans_that_reuse_a_moment_see_a_state_of_the_past() {
    let rounds = rounds(15 * REUSED_SCANS.len() as u64);
    check_rounds(REUSED_SCANS, BUFFERS, rounds, ScanGuarantee::Serializable);
}
