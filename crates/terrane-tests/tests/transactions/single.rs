//! Changes of one key that depend on its value.

use std::time::Duration;

use terrane::storage::MemoryStorage;
use terrane::{Durability, KeyspaceOptions};

use super::{MEMTABLES, open, small};

const THREADS: usize = 4;

fn add_one(old: Option<&[u8]>) -> Option<Vec<u8>> {
    let count = old.map_or(0, |old| u64::from_le_bytes(old.try_into().unwrap()));
    Some((count + 1).to_le_bytes().to_vec())
}

/// Threads that increment a few counters with `get` and `put` lose increments.
#[test]
fn counters_of_threads_lose_no_increments() {
    for memtable in MEMTABLES {
        for durability in [Durability::Process, Durability::Sync, Durability::None] {
            let options = small(&MemoryStorage::new(1), memtable).durability(durability);
            let db = options.open("db").unwrap();
            let keyspace = db.keyspace("counters", KeyspaceOptions::new()).unwrap();
            let each = if durability == Durability::Sync { 100 } else { 400 };
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let (db, keyspace) = (&db, &keyspace);
                    scope.spawn(move || {
                        for number in 0..each {
                            db.update("total", add_one).unwrap();
                            keyspace.update([b'a' + (number % 3) as u8], add_one).unwrap();
                            // Other writes, so that memtables are replaced meanwhile.
                            db.put(format!("{thread}-{number}"), [0; 300]).unwrap();
                        }
                    });
                }
            });
            let count = |value: terrane::Value| u64::from_le_bytes((*value).try_into().unwrap());
            let total = count(db.get("total").unwrap().unwrap());
            assert_eq!(total, (THREADS * each) as u64, "{memtable} {durability:?}");
            let others = keyspace.iter().unwrap().map(|entry| count(entry.unwrap().1));
            assert_eq!(others.sum::<u64>(), (THREADS * each) as u64, "{memtable} {durability:?}");
        }
    }
}

#[test]
fn swaps_happen_only_at_the_expected_value() {
    let db = open("btree");
    let none = None::<&str>;
    assert!(!db.compare_and_swap("key", Some("a"), Some("b")).unwrap());
    assert!(db.compare_and_swap("key", none, Some("a")).unwrap());
    assert!(!db.compare_and_swap("key", none, Some("b")).unwrap());
    assert!(db.compare_and_swap("key", Some("a"), Some("")).unwrap());
    assert_eq!(db.get("key").unwrap().unwrap(), "");
    assert!(!db.compare_and_swap("key", none, Some("b")).unwrap(), "an empty value is a value");
    assert!(db.compare_and_swap("key", Some(""), none).unwrap());
    assert!(db.get("key").unwrap().is_none());
    assert!(db.put_if_absent("key", "c").unwrap());
    assert!(!db.put_if_absent("key", "d").unwrap());
    assert_eq!(db.update("key", |_| None).unwrap(), None);
    assert!(db.get("key").unwrap().is_none());
    let writes = db.stats().writes;
    assert_eq!(db.update("key", |_| None).unwrap(), None);
    assert_eq!(db.stats().writes, writes, "nothing to delete");
}

/// Threads take numbered jobs from a queue; each job is taken once.
#[test]
fn jobs_of_a_queue_are_taken_once() {
    const JOBS: usize = 300;
    for memtable in MEMTABLES {
        let db = open(memtable);
        for number in 0..JOBS {
            db.put(format!("job{number:05}"), "").unwrap();
        }
        let take = || {
            db.transaction(|tx| {
                let first = tx.prefix("job")?.next().transpose()?;
                first.iter().for_each(|(key, _)| tx.delete(key));
                Ok(first.map(|(key, _)| key.to_vec()))
            })
        };
        let worker = || {
            let mut taken = Vec::new();
            while let Some(job) = take().unwrap() {
                taken.push(job);
                std::thread::sleep(Duration::from_micros(1));
            }
            taken
        };
        let mut taken: Vec<_> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(worker)).collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
        });
        assert_eq!(taken.len(), JOBS, "{memtable}");
        taken.sort();
        taken.dedup();
        assert_eq!(taken.len(), JOBS, "{memtable}");
        assert!(db.is_empty().unwrap());
    }
}
