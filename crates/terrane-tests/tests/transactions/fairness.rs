//! A long transaction succeeds, although short ones constantly change the keys that it reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use terrane::storage::{FaultStorage, MemoryStorage};
use terrane::{Durability, Error, Options, TransactionOptions};

use super::open;

#[test]
fn a_long_transaction_ends_among_short_ones() {
    let db = open("btree");
    for number in 0..100_u8 {
        db.put([number], [0; 8]).unwrap();
    }
    let (is_over, short) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut attempts = 0;
    std::thread::scope(|scope| {
        for thread in 0..3_u8 {
            let (db, is_over, short) = (&db, &is_over, &short);
            scope.spawn(move || {
                let mut number = thread;
                while !is_over.load(Ordering::Relaxed) {
                    number = (number + 7) % 100;
                    let one = |old: Option<&[u8]>| old.map(|old| vec![old[0].wrapping_add(1); 8]);
                    db.update([number], one).unwrap();
                    short.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let total = db.transaction(|tx| {
            attempts += 1;
            let mut total = 0;
            for entry in tx.iter()? {
                total += u64::from(entry?.1[0]);
                std::thread::sleep(Duration::from_micros(20));
            }
            tx.put("total", total.to_le_bytes());
            Ok(total)
        });
        // The short transactions continue.
        let before = short.load(Ordering::Relaxed);
        while short.load(Ordering::Relaxed) < before + 10 {
            std::thread::yield_now();
        }
        is_over.store(true, Ordering::Relaxed);
        total.unwrap();
    });
    assert!(attempts > 1, "no short transaction came between");
    // On a busy machine threads lose the processor in the middle of an attempt.
    assert!(attempts < 100, "{attempts} attempts");
}

/// A transaction that always conflicts with writes outside of transactions gives up.
#[test]
fn a_transaction_gives_up_after_its_attempts() {
    let db = open("btree");
    let mut runs = 0;
    let result: Result<(), Error> =
        db.transaction_with(TransactionOptions::new().attempts(12), |tx| {
            runs += 1;
            let old = tx.get("key")?;
            db.put("key", "other")?;
            tx.put("key", old.map_or(Vec::new(), |old| old.to_vec()));
            Ok(())
        });
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Conflict { attempts: 12, .. }), "{error:?}");
    assert_eq!(runs, 12);
    assert!(error.to_string().contains("12 attempts"), "{error}");
}

/// The function of a transaction may run other transactions, even while it has priority.
#[test]
fn transactions_within_a_transaction_do_not_hang() {
    let db = open("btree");
    let mut runs = 0;
    db.transaction(|tx| {
        runs += 1;
        tx.get("key")?;
        if runs < 12 {
            db.transaction(|inner| {
                inner.put("key", runs.to_string());
                Ok(())
            })?;
        }
        tx.put("done", "");
        Ok(())
    })
    .unwrap();
    assert_eq!(runs, 12);
}

/// A synced write is inserted before its sync, and a transaction cannot read it until it is visible. A
/// transaction that began before would conflict with it again and again.
#[test]
fn a_transaction_waits_for_the_sync_of_a_write_with_which_it_conflicts() {
    let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
    let options = Options::new().storage(Arc::new(storage.clone())).durability(Durability::Sync);
    let db = options.open("db").unwrap();
    storage.delay_log_syncs(Duration::from_millis(30));
    let mut attempts = 0;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| db.put("k", "written").unwrap());
        while db.stats().log_bytes_written == 0 {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(5));
        db.transaction(|tx| {
            attempts += 1;
            let old = tx.get("k")?.map(|old| old.to_vec()).unwrap_or_default();
            tx.put("k", [&old, "+".as_bytes()].concat());
            Ok(())
        })
        .unwrap();
        writer.join().unwrap();
    });
    assert_eq!(db.get("k").unwrap().unwrap(), "written+");
    assert!(attempts <= 3, "{attempts} attempts");
}
