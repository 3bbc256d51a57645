//! Random histories of threads are serializable: Elle's list-append model (Kingsbury and Alvaro, VLDB
//! 2020).
//!
//! Each transaction reads lists and appends numbers to them, each number once in the history. So a list
//! shows the order of the appends to it, and thereby the dependencies between transactions:
//!
//! - *ww*: the next append to a list follows the one before;
//! - *wr*: a transaction that read a list follows the transaction that appended its last number;
//! - *rw*: it precedes the transaction that appended the next one.
//!
//! The history is serializable if and only if these have no cycle. It is strictly serializable if there
//! is still no cycle when real-time order is added: a transaction that ended before another began
//! precedes it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane::storage::MemoryStorage;
use terrane::{Db, Durability, Error, Isolation, Transaction, TransactionOptions};
use terrane_testkit::{Rng, print_counts, seed_from_env};

use super::{MEMTABLES, small};

const LISTS: u64 = 5;
const THREADS: u64 = 4;
const EACH: u64 = 60;

/// A committed transaction.
#[derive(Debug, Clone, Default)]
struct Committed {
    began: u64,
    ended: u64,
    /// The lists that it read, without its own appends.
    reads: Vec<(u64, Vec<u64>)>,
    appends: Vec<(u64, u64)>,
}

fn name(list: u64) -> String {
    format!("list{list}")
}

fn numbers(value: Option<&[u8]>) -> Vec<u64> {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    value.unwrap_or_default().chunks(8).map(number).collect()
}

/// Reads all lists by a scan, or one by a lookup.
fn read(tx: &Transaction, rng: &mut Rng, reads: &mut Vec<(u64, Vec<u64>)>) -> Result<(), Error> {
    if rng.percent(25) {
        let mut found = BTreeMap::new();
        for entry in tx.prefix("list")? {
            let (key, value) = entry?;
            let list = u64::from(key[4] - b'0');
            found.insert(list, numbers(Some(&value)));
        }
        reads.extend((0..LISTS).map(|list| (list, found.remove(&list).unwrap_or_default())));
    } else {
        let list = rng.below(LISTS);
        reads.push((list, numbers(tx.get(name(list))?.as_deref())));
    }
    Ok(())
}

fn run(db: &Db, isolation: Isolation, clock: &AtomicU64, rng: &mut Rng) -> Option<Committed> {
    let mut done =
        Committed { began: clock.fetch_add(1, Ordering::SeqCst), ..Committed::default() };
    let mut tx = db.begin_with(TransactionOptions::new().isolation(isolation));
    let mut own: Vec<u64> = Vec::new();
    for _ in 0..=rng.below(3) {
        if own.is_empty() {
            read(&tx, rng, &mut done.reads).unwrap();
        }
        std::thread::yield_now();
        if rng.percent(60) {
            let list = rng.below(LISTS);
            if own.contains(&list) {
                continue;
            }
            own.push(list);
            let number = clock.fetch_add(1, Ordering::SeqCst);
            let mut numbers = numbers(tx.get(name(list)).unwrap().as_deref());
            done.reads.push((list, numbers.clone()));
            numbers.push(number);
            tx.put(
                name(list),
                numbers.iter().flat_map(|one| one.to_le_bytes()).collect::<Vec<_>>(),
            );
            done.appends.push((list, number));
        }
    }
    match tx.commit() {
        Ok(()) => {
            done.ended = clock.fetch_add(1, Ordering::SeqCst);
            Some(done)
        }
        Err(Error::Conflict { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

fn record(db: &Db, isolation: Isolation, seed: u64) -> (Vec<Committed>, u64) {
    let (clock, history) = (AtomicU64::new(1), Mutex::new(Vec::new()));
    let conflicts = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (clock, history, conflicts) = (&clock, &history, &conflicts);
            scope.spawn(move || {
                let mut rng = Rng::new(seed * 100 + thread);
                for number in 0..EACH {
                    match run(db, isolation, clock, &mut rng) {
                        Some(done) => history.lock().unwrap().push(done),
                        None => drop(conflicts.fetch_add(1, Ordering::Relaxed)),
                    }
                    // Fills memtables, so that lists move into tables.
                    db.put(format!("x{thread}{number}"), [0; 400]).unwrap();
                }
            });
        }
    });
    (history.into_inner().unwrap(), conflicts.into_inner())
}

/// Returns the successors of each transaction, or the reason why they have no order.
fn dependencies(history: &[Committed], is_strict: bool) -> Result<Vec<Vec<usize>>, String> {
    let mut after = vec![Vec::new(); history.len()];
    let mut writers = BTreeMap::new();
    for (at, done) in history.iter().enumerate() {
        writers.extend(done.appends.iter().map(|append| (*append, at)));
    }
    for list in 0..LISTS {
        let reads = history.iter().enumerate().flat_map(|(at, done)| {
            let of_list = done.reads.iter().filter(move |(read, _)| *read == list);
            of_list.map(move |(_, numbers)| (at, numbers))
        });
        let reads: Vec<_> = reads.collect();
        // Every append is read by the next one, so the longest list read lacks only the last.
        let mut order = reads
            .iter()
            .map(|(_, numbers)| *numbers)
            .max_by_key(|one| one.len())
            .cloned()
            .unwrap_or_default();
        let unread: Vec<u64> = writers
            .keys()
            .filter(|(of, number)| *of == list && !order.contains(number))
            .map(|(_, number)| *number)
            .collect();
        if unread.len() > 1 {
            return Err(format!("list {list}: {unread:?} follow the same {order:?}"));
        }
        order.extend(unread);
        let writer = |number: &u64| writers.get(&(list, *number)).copied();
        if let Some(number) = order.iter().find(|number| writer(number).is_none()) {
            return Err(format!("list {list}: {number} was not committed"));
        }
        let order_of: Vec<usize> = order.iter().filter_map(writer).collect();
        order_of.windows(2).for_each(|pair| after[pair[0]].push(pair[1]));
        for (at, numbers) in reads {
            if !order.starts_with(numbers) {
                return Err(format!("list {list}: {numbers:?} is not a prefix of {order:?}"));
            }
            let edges = [
                numbers.last().and_then(writer).map(|from| (from, at)),
                order.get(numbers.len()).and_then(writer).map(|to| (at, to)),
            ];
            for (from, to) in edges.into_iter().flatten().filter(|(from, to)| from != to) {
                after[from].push(to);
            }
        }
    }
    if is_strict {
        for (from, first) in history.iter().enumerate() {
            let later = history.iter().enumerate().filter(|(_, done)| done.began > first.ended);
            after[from].extend(later.map(|(to, _)| to));
        }
    }
    Ok(after)
}

/// Returns whether the graph has a cycle: repeatedly removes nodes without predecessors.
fn has_cycle(after: &[Vec<usize>]) -> bool {
    let mut before = vec![0_usize; after.len()];
    after.iter().flatten().for_each(|to| before[*to] += 1);
    let mut free: Vec<usize> = (0..after.len()).filter(|at| before[*at] == 0).collect();
    let mut removed = 0;
    while let Some(at) = free.pop() {
        removed += 1;
        for to in &after[at] {
            before[*to] -= 1;
            if before[*to] == 0 {
                free.push(*to);
            }
        }
    }
    removed < after.len()
}

#[test]
fn histories_of_threads_are_strictly_serializable() {
    let seed = seed_from_env(14_000);
    let (mut transactions, mut conflicts) = (0, 0);
    for (number, memtable) in MEMTABLES.into_iter().cycle().take(10).enumerate() {
        let durability = [Durability::Process, Durability::Sync, Durability::None][number % 3];
        let seed = seed + number as u64;
        let db =
            small(&MemoryStorage::new(seed), memtable).durability(durability).open("db").unwrap();
        let (history, failed) = record(&db, Isolation::Serializable, seed);
        let story = format!("seed {seed}, {memtable}, {durability:?}");
        let after = dependencies(&history, true).unwrap_or_else(|why| panic!("{why}\n{story}"));
        assert!(!has_cycle(&after), "{story}");
        transactions += history.len() as u64;
        conflicts += failed;
    }
    assert!(transactions > 500 && conflicts > 50, "{transactions} and {conflicts} conflicts");
    print_counts(&[("transactions", transactions), ("conflicts", conflicts)]);
}

/// The checker finds the cycles that snapshot isolation allows, which shows that it can find cycles.
#[test]
fn histories_under_snapshot_isolation_have_cycles() {
    let seed = seed_from_env(15_000);
    let cycles = (0..20).filter(|number| {
        let db = small(&MemoryStorage::new(seed), "btree").open("db").unwrap();
        let (history, _) = record(&db, Isolation::Snapshot, seed + number);
        has_cycle(&dependencies(&history, false).unwrap())
    });
    assert!(cycles.count() > 0);
}

#[test]
fn the_checker_knows_the_anomalies() {
    let read = |list, numbers: &[u64]| (list, numbers.to_vec());
    let done = |reads: &[(u64, Vec<u64>)], appends: &[(u64, u64)]| Committed {
        reads: reads.to_vec(),
        appends: appends.to_vec(),
        ..Committed::default()
    };
    let first = done(&[], &[(0, 1), (1, 2)]);
    let in_order = [first.clone(), done(&[read(0, &[1]), read(1, &[2])], &[])];
    assert!(!has_cycle(&dependencies(&in_order, false).unwrap()));
    let read_skew = [first.clone(), done(&[read(0, &[1]), read(1, &[])], &[])];
    assert!(has_cycle(&dependencies(&read_skew, false).unwrap()));
    let write_skew = [done(&[read(1, &[])], &[(0, 1)]), done(&[read(0, &[])], &[(1, 2)])];
    assert!(has_cycle(&dependencies(&write_skew, false).unwrap()));
    let lost_update = [done(&[read(0, &[])], &[(0, 1)]), done(&[read(0, &[])], &[(0, 2)])];
    assert!(dependencies(&lost_update, false).is_err());
    let aborted_read = [done(&[read(0, &[7])], &[])];
    assert!(dependencies(&aborted_read, false).is_err());
    let stale = [
        Committed { began: 1, ended: 2, ..first },
        Committed { began: 3, ended: 4, ..done(&[read(0, &[])], &[]) },
    ];
    assert!(!has_cycle(&dependencies(&stale, false).unwrap()));
    assert!(has_cycle(&dependencies(&stale, true).unwrap()));
}
