//! A queue that survives crashes: `cargo run -p terrane --example queue`.
//!
//! The key of a message is its number in big-endian order, so that keys are in the order of arrival.
//! A transaction takes the first message, so no two consumers get the same one, and a message is gone
//! only if its result is stored.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]

use std::error::Error;
use std::path::Path;

use terrane::{Db, Keyspace, KeyspaceOptions};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A queue in a keyspace of its own, and the results of its messages.
struct Queue {
    db: Db,
    messages: Keyspace,
    results: Keyspace,
}

impl Queue {
    fn open(db: &Db) -> terrane::Result<Self> {
        let keyspace = |name| db.keyspace(name, KeyspaceOptions::new());
        let (messages, results) = (keyspace("messages")?, keyspace("results")?);
        Ok(Self { db: db.clone(), messages, results })
    }

    /// Appends a message, and returns its number.
    fn push(&self, message: &str) -> terrane::Result<u64> {
        self.db.transaction(|tx| {
            // The counter also covers messages that were taken.
            let last = tx.get("last message")?.and_then(|bytes| bytes[..].try_into().ok());
            let number = last.map_or(0, u64::from_be_bytes) + 1;
            tx.put("last message", number.to_be_bytes());
            tx.put_in(&self.messages, number.to_be_bytes(), message)?;
            Ok(number)
        })
    }

    /// Takes the first message, and stores its result in the same step. Returns false if there is none.
    fn work(&self, work: impl Fn(&[u8]) -> Vec<u8>) -> terrane::Result<bool> {
        self.db.transaction(|tx| {
            let Some(first) = tx.iter_in(&self.messages)?.next().transpose()? else {
                return Ok(false);
            };
            let (number, message) = first;
            tx.put_in(&self.results, &number, work(&message))?;
            tx.delete_in(&self.messages, &number)?;
            Ok(true)
        })
    }
}

pub(crate) fn run(dir: &Path) -> Result<()> {
    let db = Db::open(dir.join("db"))?;
    let queue = Queue::open(&db)?;
    for word in ["wren", "owl", "heron"] {
        queue.push(word)?;
    }
    assert!(queue.work(<[u8]>::to_ascii_uppercase)?);
    drop((queue, db));

    // The process may end at any time; the queue continues where it was.
    let db = Db::open(dir.join("db"))?;
    let queue = Queue::open(&db)?;
    assert_eq!(queue.push("crow")?, 4);
    while queue.work(<[u8]>::to_ascii_uppercase)? {}
    let mut results = Vec::new();
    for entry in queue.results.iter()? {
        let (number, result) = entry?;
        let number = u64::from_be_bytes(number[..].try_into()?);
        println!("{number}: {}", result.escape_ascii());
        results.push((number, result.to_vec()));
    }
    assert_eq!(results[0], (1, b"WREN".to_vec()));
    assert_eq!(results[3], (4, b"CROW".to_vec()));
    Ok(())
}

/// Runs the example in a directory that is removed afterwards.
fn main() -> Result<()> {
    run(tempfile::tempdir()?.path())
}
