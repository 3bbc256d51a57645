//! Transfers between accounts that no crash and no other thread can split: `cargo run -p terrane
//! --example transactions`.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]

use std::error::Error;
use std::path::Path;

use terrane::{Db, Durability, ErrorKind, Transaction, TransactionOptions};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const ACCOUNTS: u64 = 5;

fn balance(tx: &Transaction, account: u64) -> terrane::Result<u64> {
    let value = tx.get(account.to_be_bytes())?;
    Ok(value.and_then(|bytes| bytes[..].try_into().ok()).map_or(0, u64::from_be_bytes))
}

/// Moves an amount; returns false if the account does not have it. The function runs again if another
/// transaction changed one of the two accounts meanwhile.
fn transfer(db: &Db, from: u64, to: u64, amount: u64) -> terrane::Result<bool> {
    db.transaction(|tx| {
        let (has, target) = (balance(tx, from)?, balance(tx, to)?);
        let Some(rest) = has.checked_sub(amount) else { return Ok(false) };
        tx.put(from.to_be_bytes(), rest.to_be_bytes());
        tx.put(to.to_be_bytes(), (target + amount).to_be_bytes());
        Ok(true)
    })
}

pub(crate) fn run(dir: &Path) -> Result<()> {
    let db = Db::open(dir.join("db"))?;
    for account in 0..ACCOUNTS {
        db.put(account.to_be_bytes(), 100u64.to_be_bytes())?;
    }
    std::thread::scope(|scope| {
        let threads = [0, 1, 2].map(|thread| {
            let db = &db;
            scope.spawn(move || {
                (0..100u64).try_for_each(|step| {
                    let from = (thread + step) % ACCOUNTS;
                    transfer(db, from, (from + 1 + step % 3) % ACCOUNTS, step % 7).map(drop)
                })
            })
        });
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    let total = db.transaction(|tx| {
        (0..ACCOUNTS).map(|account| balance(tx, account)).sum::<terrane::Result<u64>>()
    })?;
    println!("all accounts together hold {total}");
    assert_eq!(total, 100 * ACCOUNTS);

    // A transaction that the program commits itself. Its last step is undone to the savepoint.
    let options = TransactionOptions::new().durability(Durability::Sync);
    let mut tx = db.begin_with(options);
    let before = balance(&tx, 0)?;
    tx.put(0u64.to_be_bytes(), (before + 1).to_be_bytes());
    tx.savepoint();
    tx.delete(1u64.to_be_bytes());
    assert!(tx.roll_back_to_savepoint());
    // Another write to what the transaction has read makes its commit fail.
    db.put(0u64.to_be_bytes(), 7u64.to_be_bytes())?;
    assert_eq!(tx.commit().unwrap_err().kind(), ErrorKind::Conflict);
    Ok(())
}

/// Runs the example in a directory that is removed afterwards.
fn main() -> Result<()> {
    run(tempfile::tempdir()?.path())
}
