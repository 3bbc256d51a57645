//! Concurrent puts, gets and deletes on a few keys are linearizable.
//!
//! Threads record the start, the end and the answer of each operation. For each key there must be
//! an order of its operations that respects these times and in which every get returns the last put
//! or delete before it (Wing and Gong 1993, with the memoization of Lowe 2017). Keys can be checked
//! one by one because linearizability is local.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have threads and variables of their own")]

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane::storage::MemoryStorage;
use terrane::{
    Background, Db, Design, Durability, Options, ReadMode, Value, WriteBatch, WritePath,
};
use terrane_policy::MemtableKind;
use terrane_testkit::{Rng, print_counts, seed_from_env};

const THREADS: u64 = 4;
const KEYS: u64 = 3;

#[derive(Debug, Clone, Copy)]
enum Action {
    /// `None` is a delete.
    Write(Option<u64>),
    Read(Option<u64>),
}

#[derive(Debug, Clone, Copy)]
struct Event {
    begin: u64,
    end: u64,
    action: Action,
}

/// Returns true if some order of the events explains every read. At the start there is no value.
fn is_linearizable(events: &[Event]) -> bool {
    let mut events = events.to_vec();
    events.sort_by_key(|event| event.begin);
    let mut tried: HashSet<(Vec<u64>, Option<u64>)> = HashSet::new();
    let words = events.len().div_ceil(64);
    let mut stack = vec![(vec![0u64; words], None::<u64>, 0usize)];
    while let Some((done, value, count)) = stack.pop() {
        if count == events.len() {
            return true;
        }
        if !tried.insert((done.clone(), value)) {
            continue;
        }
        let is_done = |index: usize| done[index / 64] >> (index % 64) & 1 == 1;
        // An event can come next only if it began before the first of the remaining events ended.
        let left = || events.iter().enumerate().filter(|(index, _)| !is_done(*index));
        let first_end = left().map(|(_, event)| event.end).min().unwrap();
        for (index, event) in left().take_while(|(_, event)| event.begin <= first_end) {
            let next = match event.action {
                Action::Write(written) => written,
                Action::Read(read) if read == value => value,
                Action::Read(_) => continue,
            };
            let mut after = done.clone();
            after[index / 64] |= 1 << (index % 64);
            stack.push((after, next, count + 1));
        }
    }
    false
}

fn run(db: &Db, seed: u64, operations: u64) -> Vec<Vec<Event>> {
    let clock = AtomicU64::new(0);
    let per_thread: Vec<Vec<(u64, Event)>> = std::thread::scope(|scope| {
        let spawn = |thread: u64| {
            let clock = &clock;
            scope.spawn(move || {
                let mut rng = Rng::new(seed * 100 + thread);
                let mut events = Vec::new();
                for number in 0..operations {
                    let key = rng.below(KEYS);
                    let name = [b'k', key as u8];
                    // Every value is written only once.
                    let unique = seed << 40 | thread << 32 | number;
                    let begin = clock.fetch_add(1, Ordering::SeqCst);
                    let action = match rng.below(10) {
                        0..=3 => {
                            db.put(name, unique.to_be_bytes()).unwrap();
                            Action::Write(Some(unique))
                        }
                        4 => {
                            db.delete(name).unwrap();
                            Action::Write(None)
                        }
                        5 => {
                            let mut batch = WriteBatch::new();
                            batch.put([b'x', thread as u8], "x").put(name, unique.to_be_bytes());
                            db.write(&batch).unwrap();
                            Action::Write(Some(unique))
                        }
                        6 => Action::Read(scan(db, &name)),
                        7 => {
                            let found = db.multi_get([&name, b"x0"]).unwrap();
                            let number =
                                |value: &Value| u64::from_be_bytes(value[..].try_into().unwrap());
                            Action::Read(found[0].as_ref().map(number))
                        }
                        8 => {
                            let found = db.snapshot().get(name).unwrap();
                            Action::Read(
                                found
                                    .map(|value| u64::from_be_bytes(value[..].try_into().unwrap())),
                            )
                        }
                        _ => {
                            let found = db.get(name).unwrap();
                            Action::Read(
                                found
                                    .map(|value| u64::from_be_bytes(value[..].try_into().unwrap())),
                            )
                        }
                    };
                    let end = clock.fetch_add(1, Ordering::SeqCst);
                    events.push((key, Event { begin, end, action }));
                }
                events
            })
        };
        let threads: Vec<_> = (0..THREADS).map(spawn).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let all = || per_thread.iter().flatten();
    (0..KEYS)
        .map(|key| all().filter(|(other, _)| *other == key).map(|(_, event)| *event).collect())
        .collect()
}

fn scan(db: &Db, key: &[u8]) -> Option<u64> {
    let mut found = db.range(key..).unwrap().map(|entry| entry.unwrap());
    let (first, value) = found.next()?;
    (first == key).then(|| u64::from_be_bytes(value[..].try_into().unwrap()))
}

#[test]
fn concurrent_histories_are_linearizable() {
    let seed = seed_from_env(1);
    let rounds =
        std::env::var("TERRANE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(40);
    let mut operations = 0;
    for round in 0..rounds {
        let mut rng = Rng::new(seed + round);
        // Memtables hold only a kilobyte, so that operations overlap rotations, flushes and
        // compactions.
        let memtable = loop {
            let kind = *rng.pick(MemtableKind::EXAMPLES);
            // A restarting scan may share the snapshot of an older scan.
            if !kind.contains("scan=restart") && !kind.contains("prealloc") {
                break kind;
            }
        };
        let buffer = *rng.pick(&["1KiB", "16KiB"]);
        let level0 = *rng.pick(&["L0=1", "L0=1", "L0=4; flush=merge"]);
        let design = format!("balanced base=2KiB {level0}; buffer={buffer}; table=1KiB");
        let design: Design = format!("{design}; memtable={memtable}").parse().unwrap();
        let interval = Durability::Interval(std::time::Duration::from_millis(1));
        let durability =
            *rng.pick(&[Durability::Process, Durability::Sync, Durability::None, interval]);
        let options = Options::new()
            .storage(Arc::new(MemoryStorage::new(round)))
            .durability(durability)
            .background(*rng.pick(&[Background::Threads, Background::Inline]))
            .write_path(*rng.pick(&[WritePath::Concurrent, WritePath::Queue]))
            .read_mode(*rng.pick(&[ReadMode::Cached, ReadMode::Direct]))
            .design(design);
        let db = options.log_segment_bytes(64 << 10).open("db").unwrap();
        for (key, events) in run(&db, seed + round, 60).into_iter().enumerate() {
            operations += events.len() as u64;
            assert!(
                is_linearizable(&events),
                "key {key} of seed {}, {durability}: {events:#?}",
                seed + round
            );
        }
    }
    print_counts(&[("histories", rounds), ("history_operations", operations)]);
}

#[test]
fn the_checker_knows_right_from_wrong() {
    let event = |begin, end, action| Event { begin, end, action };
    let (put1, put2) = (Action::Write(Some(1)), Action::Write(Some(2)));
    let read = |value| Action::Read(value);
    assert!(is_linearizable(&[event(0, 1, put1), event(2, 3, read(Some(1)))]));
    assert!(!is_linearizable(&[event(0, 1, put1), event(2, 3, read(None))]));
    assert!(is_linearizable(&[
        event(0, 5, put1),
        event(1, 2, read(None)),
        event(3, 4, read(Some(1)))
    ]));
    assert!(!is_linearizable(&[
        event(0, 5, put1),
        event(1, 2, read(Some(1))),
        event(3, 4, read(None))
    ]));
    // Two concurrent writes may take effect in either order, but all readers must see the same
    // order.
    let writes = [event(0, 9, put1), event(0, 9, put2)];
    let seen = |a, b| [&writes[..], &[event(10, 11, read(a)), event(12, 13, read(b))]].concat();
    assert!(is_linearizable(&seen(Some(1), Some(1))));
    assert!(is_linearizable(&seen(Some(2), Some(2))));
    assert!(!is_linearizable(&seen(Some(1), Some(2))));
}
