//! Transfers between accounts of two keyspaces: the total never changes, even after a crash.

use std::io::ErrorKind as Io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use terrane::storage::{Crash, Fault, FaultStorage, MemoryStorage, Survival};
use terrane::{
    Background, Db, Durability, Isolation, Keyspace, KeyspaceOptions, Result, Transaction,
    TransactionOptions,
};
use terrane_testkit::{Rng, print_counts, seed_from_env};

use super::{MEMTABLES, small};

const ACCOUNTS: u64 = 10;
const EACH: i64 = 100;
const THREADS: u64 = 4;
const TRANSFERS: u64 = 300;

/// The accounts with even numbers are in the default keyspace, the others in a second one.
struct Bank {
    db: Db,
    other: Keyspace,
}

fn name(account: u64) -> String {
    format!("account {account}")
}

impl Bank {
    fn open(storage: &MemoryStorage, memtable: &str, durability: Durability, inline: bool) -> Self {
        let background = if inline { Background::Inline } else { Background::Threads };
        let options = small(storage, memtable).durability(durability).background(background);
        let db = options.open("db").unwrap();
        let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
        Self { db, other }
    }

    fn fill(&self) {
        let filled = self
            .db
            .transaction(|tx| (0..ACCOUNTS).try_for_each(|account| self.set(tx, account, EACH)));
        filled.unwrap();
    }

    fn balance(&self, tx: &Transaction, account: u64) -> Result<i64> {
        let value = match account % 2 {
            0 => tx.get(name(account))?,
            _ => tx.get_in(&self.other, name(account))?,
        };
        Ok(value.map_or(0, |value| i64::from_le_bytes((*value).try_into().unwrap())))
    }

    fn set(&self, tx: &mut Transaction, account: u64, balance: i64) -> Result<()> {
        match account % 2 {
            // An empty account has no entry, so that keys come and go.
            0 if balance == 0 => tx.delete(name(account)),
            0 => tx.put(name(account), balance.to_le_bytes()),
            _ => tx.put_in(&self.other, name(account), balance.to_le_bytes())?,
        }
        Ok(())
    }

    fn transfer(&self, rng: &mut Rng) -> Result<()> {
        let (from, to, amount) = (rng.below(ACCOUNTS), rng.below(ACCOUNTS), rng.below(50) as i64);
        self.db.transaction(|tx| {
            let balance = self.balance(tx, from)?;
            if from == to || balance < amount {
                return Ok(());
            }
            let received = self.balance(tx, to)? + amount;
            self.set(tx, from, balance - amount)?;
            self.set(tx, to, received)
        })
    }

    /// The total by lookups and the total by scans, both in one transaction that only reads.
    fn totals(&self) -> (i64, i64) {
        let isolation = TransactionOptions::new().isolation(Isolation::Snapshot);
        for options in [TransactionOptions::new(), isolation] {
            let tx = self.db.begin_with(options);
            let sum = |entries: terrane::TransactionIter<'_>| -> i64 {
                let value = |entry: Result<(_, terrane::Value)>| entry.unwrap().1;
                entries.map(|entry| i64::from_le_bytes((*value(entry)).try_into().unwrap())).sum()
            };
            let scanned = sum(tx.prefix("account").unwrap())
                + sum(tx.prefix_in(&self.other, "account").unwrap());
            let found = (0..ACCOUNTS).map(|account| self.balance(&tx, account).unwrap()).sum();
            assert_eq!(scanned, found);
            tx.commit().unwrap();
            if options.eq(&isolation) {
                return (scanned, found);
            }
        }
        unreachable!("both isolations")
    }
}

const TOTAL: i64 = ACCOUNTS as i64 * EACH;

#[test]
fn transfers_of_threads_keep_the_total() {
    let seed = seed_from_env(11_000);
    for (number, memtable) in MEMTABLES.into_iter().enumerate() {
        for durability in [Durability::Process, Durability::Sync] {
            let storage = MemoryStorage::new(seed);
            let bank = Bank::open(&storage, memtable, durability, false);
            bank.fill();
            let is_over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let workers: Vec<_> = (0..THREADS)
                    .map(|thread| {
                        let (bank, seed) = (&bank, seed + thread * 100 + number as u64);
                        scope.spawn(move || {
                            let mut rng = Rng::new(seed);
                            for number in 0..TRANSFERS {
                                bank.transfer(&mut rng).unwrap();
                                // Fills memtables, so that accounts move into tables.
                                bank.db.put(format!("x{thread}{number}"), [0; 200]).unwrap();
                            }
                        })
                    })
                    .collect();
                let reader = scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        assert_eq!(bank.totals(), (TOTAL, TOTAL), "{memtable}, seed {seed}");
                    }
                });
                workers.into_iter().for_each(|worker| worker.join().unwrap());
                is_over.store(true, Ordering::Relaxed);
                reader.join().unwrap();
            });
            assert_eq!(bank.totals(), (TOTAL, TOTAL));
        }
    }
}

/// Crashes before each call of the storage. After recovery, each transfer is complete or absent, and
/// synced transfers are present.
#[test]
fn transfers_survive_crashes_as_a_whole() {
    let seed = seed_from_env(12_000);
    let mut images = 0;
    for (number, durability) in [Durability::Sync, Durability::Process].into_iter().enumerate() {
        let seed = seed + number as u64;
        let mut rng = Rng::new(seed);
        let storage = MemoryStorage::new(seed);
        let memtable = MEMTABLES[seed as usize % MEMTABLES.len()];
        let bank = Bank::open(&storage, memtable, durability, true);
        bank.fill();
        bank.db.put("done", 0_u64.to_le_bytes()).unwrap();
        bank.db.flush().unwrap();
        storage.track_crash_points();
        for done in 1..=60_u64 {
            storage.mark(done - 1);
            bank.transfer(&mut rng).unwrap();
            bank.db
                .transaction(|tx| {
                    tx.put("done", done.to_le_bytes());
                    Ok(())
                })
                .unwrap();
            if done % 20 == 0 {
                bank.db.flush().unwrap();
            }
        }
        for point in storage.take_crash_points() {
            let survival = Survival { percent: rng.below(101), seed: rng.bits() };
            let crash = if rng.percent(30) { Crash::Process } else { Crash::Power(survival) };
            let image = point.image(crash);
            let after = Bank::open(&image, memtable, durability, true);
            assert_eq!(after.totals(), (TOTAL, TOTAL), "seed {seed}, before {}", point.operation());
            let done = after.db.get("done").unwrap().unwrap();
            let done = u64::from_le_bytes((*done).try_into().unwrap());
            let promised = durability == Durability::Sync || matches!(crash, Crash::Process);
            assert!(!promised || done >= point.mark(), "{done} of {}, seed {seed}", point.mark());
            images += 1;
        }
    }
    assert!(images > 100, "{images} images");
    print_counts(&[("transaction_images", images)]);
}

/// A transaction whose record cannot be written changes nothing.
#[test]
fn a_commit_that_fails_changes_nothing() {
    let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
    let options = terrane::Options::new()
        .storage(Arc::new(storage.clone()))
        .background(Background::Inline)
        .durability(Durability::Sync);
    let db = options.open("db").unwrap();
    db.put("key", "old").unwrap();
    let mut tx = db.begin();
    assert_eq!(tx.get("key").unwrap().unwrap(), "old");
    tx.put("key", "new");
    storage.set(Some(Fault {
        operation: None,
        path_contains: String::new(),
        after: 0,
        is_permanent: true,
        error: Io::StorageFull,
    }));
    assert!(tx.commit().is_err());
    storage.set(None);
    assert_eq!(db.get("key").unwrap().unwrap(), "old");
    db.update("key", |old| old.map(|old| [old, b"er"].concat())).unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), "older");
}
