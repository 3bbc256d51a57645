//! Counters that several threads increment: `cargo run -p terrane --example counters`.
//!
//! A `get` followed by a `put` loses increments of other threads in between. `update` does not: it
//! computes the new value again if another write came first. `merge` does not read the value at all: it
//! writes an increment, and reads add them up.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]

use std::error::Error;
use std::path::Path;

use terrane::{Db, KeyspaceOptions, Value};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const THREADS: u64 = 4;
const INCREMENTS: u64 = 500;

/// Adds one to a counter. Numbers are stored in big-endian order.
fn increment(db: &Db, counter: &str) -> terrane::Result<()> {
    db.update(counter, |old| Some((number(old) + 1).to_be_bytes().to_vec()))?;
    Ok(())
}

/// Returns the number that a value holds; a missing counter is zero.
fn number(value: Option<&[u8]>) -> u64 {
    value.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes)
}

pub(crate) fn run(dir: &Path) -> Result<()> {
    let db = Db::open(dir.join("db"))?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| scope.spawn(|| (0..INCREMENTS).try_for_each(|_| increment(&db, "page views"))))
            .collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    let value: Option<Value> = db.get("page views")?;
    let views = number(value.as_deref());
    println!("{views} page views");
    assert_eq!(views, THREADS * INCREMENTS);

    // A keyspace with a merge operator counts without reading.
    let counters = db.keyspace("counters", KeyspaceOptions::new())?;
    counters.set_merge_operator("counter_add")?;
    std::thread::scope(|scope| {
        let count =
            || (0..INCREMENTS).try_for_each(|_| counters.merge("views", 1_i64.to_le_bytes()));
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(count)).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    let views = counters.get("views")?.unwrap();
    assert_eq!(views, (THREADS * INCREMENTS).to_le_bytes());

    // A maximum is kept in the same way.
    db.update("longest word", |old| Some(old.unwrap_or_default().max(b"antelope").to_vec()))?;
    assert_eq!(db.get("longest word")?.unwrap(), "antelope");
    Ok(())
}

/// Runs the example in a directory that is removed afterwards.
fn main() -> Result<()> {
    run(tempfile::tempdir()?.path())
}
