//! Records what threads write and read.

use std::sync::{Arc, Barrier};

use terrane::{Db, Snapshot, Value, WriteBatch};
use terrane_testkit::Rng;

use crate::checker::{Action, Event, State};
use crate::yielding_storage::Progress;

/// The number of threads.
pub const THREADS: u64 = 4;

/// The keys whose values are recorded: few, so that many operations concern the same key.
pub const KEYS: usize = 3;

/// The number of operations that a thread begins before it waits for the others.
const BURST: u64 = 20;

/// How the threads of a history behave.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub seed: u64,
    /// The number of operations of each thread.
    pub operations: u64,
    /// The largest number of other keys that a batch writes before the recorded ones.
    pub others_max: u64,
    /// The percentage of operations that scan all recorded keys.
    pub scan_percent: u64,
}

/// An operation, and whether it was a scan.
#[derive(Debug, Clone)]
pub struct Recorded {
    pub event: Event,
    pub is_scan: bool,
}

fn name(key: usize) -> [u8; 2] {
    [b'k', key as u8]
}

fn number(value: &Value) -> u64 {
    u64::from_be_bytes(value[..8].try_into().unwrap())
}

/// Reads one key or all keys, by one of several ways.
fn read(db: &Db, rng: &mut Rng) -> Action {
    let key = rng.index(KEYS);
    let one = |found: Option<Value>| vec![(key, found.as_ref().map(number))];
    let all = |mut get: Box<dyn FnMut(usize) -> Option<Value> + '_>| {
        (0..KEYS).map(|key| (key, get(key).as_ref().map(number))).collect()
    };
    Action::Read(match rng.below(8) {
        0..=3 => one(db.get(name(key)).unwrap()),
        4 => one(db.snapshot().get(name(key)).unwrap()),
        5 => {
            let snapshot: Snapshot = db.snapshot();
            all(Box::new(move |key| snapshot.get(name(key)).unwrap()))
        }
        6 => {
            let found = db.multi_get((0..KEYS).map(name).collect::<Vec<_>>()).unwrap();
            all(Box::new(move |key| found[key].clone()))
        }
        _ => one(db.multi_get([&name(key)[..], b"x0"]).unwrap().swap_remove(0)),
    })
}

/// Reads all keys, in one pass over a range with both bounds.
pub fn scan(db: &Db, is_backward: bool) -> State {
    let mut state = vec![None; KEYS];
    let range = db.range(name(0)..name(KEYS)).unwrap().map(|entry| entry.unwrap());
    let entries: Vec<_> = if is_backward { range.rev().collect() } else { range.collect() };
    for (key, value) in entries {
        state[usize::from(key[1])] = Some(number(&value));
    }
    state
}

/// Returns every key with its value.
pub fn pairs(state: State) -> Vec<(usize, Option<u64>)> {
    state.into_iter().enumerate().collect()
}

/// Writes one key, or several in a batch.
fn write(db: &Db, plan: &Plan, rng: &mut Rng, unique: u64) -> Action {
    let (key, value) = (rng.index(KEYS), unique.to_be_bytes());
    let put = match rng.below(8) {
        0..=3 => {
            // Values of several lengths, which overwrite each other.
            let value = [&value[..], &[7; 40][..rng.index(40)]].concat();
            db.put(name(key), value).unwrap();
            vec![(key, Some(unique))]
        }
        4 => {
            db.delete(name(key)).unwrap();
            vec![(key, None)]
        }
        5 => {
            let mut batch = WriteBatch::new();
            for key in 0..KEYS {
                batch.put(name(key), value);
            }
            db.write(&batch).unwrap();
            (0..KEYS).map(|key| (key, Some(unique))).collect()
        }
        _ => {
            let mut batch = WriteBatch::new();
            let others = if rng.percent(30) { plan.others_max } else { plan.others_max.min(3) };
            for other in 0..rng.between(1, others.max(1)) {
                batch.put([b'x', (other / 256) as u8, other as u8], "x");
            }
            batch.put(name(key), value);
            db.write(&batch).unwrap();
            vec![(key, Some(unique))]
        }
    };
    Action::Write(put)
}

/// Runs the threads and returns their records.
pub fn record(db: &Db, plan: &Plan, progress: &Arc<Progress>) -> Vec<Recorded> {
    let barrier = Barrier::new(THREADS as usize);
    let (seed, barrier) = (plan.seed, &barrier);
    std::thread::scope(|scope| {
        let spawn = |thread: u64| {
            scope.spawn(move || {
                let mut rng = Rng::new(seed * 100 + thread);
                let mut recorded = Vec::new();
                for step in 0..plan.operations {
                    if step.is_multiple_of(BURST) {
                        barrier.wait();
                    }
                    let is_scan = rng.percent(plan.scan_percent);
                    let begin = progress.moment();
                    let action = match is_scan {
                        true => Action::Read(pairs(scan(db, rng.percent(30)))),
                        false if rng.percent(40) => read(db, &mut rng),
                        // Every value is written only once.
                        false => write(db, plan, &mut rng, seed << 40 | thread << 32 | step),
                    };
                    let event = Event { begin, end: progress.moment(), action };
                    recorded.push(Recorded { event, is_scan });
                }
                recorded
            })
        };
        let threads: Vec<_> = (0..THREADS).map(spawn).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

/// Reads all keys in several ways, while nothing is written: their results must agree.
pub fn record_end(db: &Db, progress: &Progress, recorded: &mut Vec<Recorded>) {
    let get_all = |db: &Db| -> State {
        (0..KEYS).map(|key| db.get(name(key)).unwrap().as_ref().map(number)).collect()
    };
    let ways: [(bool, &dyn Fn() -> State); 4] = [
        (false, &|| get_all(db)),
        (true, &|| scan(db, false)),
        (false, &|| {
            db.flush().unwrap();
            get_all(db)
        }),
        (true, &|| scan(db, true)),
    ];
    for (is_scan, read) in ways {
        let begin = progress.moment();
        let action = Action::Read(pairs(read()));
        let event = Event { begin, end: progress.moment(), action };
        recorded.push(Recorded { event, is_scan });
    }
}
