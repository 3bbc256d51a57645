//! Opens a database, writes, reads, and iterates: `cargo run -p terrane --example quick_start`.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]

use std::error::Error;
use std::path::Path;

use terrane::{Db, Durability, WriteBatch, WriteOptions};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

pub(crate) fn run(dir: &Path) -> Result<()> {
    let db = Db::open(dir.join("db"))?;
    db.put("apple", "red")?;
    db.put("banana", "yellow")?;
    assert_eq!(db.get("apple")?.unwrap(), "red");
    assert!(db.get("cherry")?.is_none());

    // A batch is applied whole or not at all. This one survives a power failure once the call returns.
    let mut batch = WriteBatch::new();
    batch.put("cherry", "dark").put("damson", "blue").delete("banana");
    db.write_with(&batch, WriteOptions::new().durability(Durability::Sync))?;

    // Keys are in the order of their bytes. An item of an iterator may be an error.
    for entry in db.range("b"..)? {
        let (key, value) = entry?;
        println!("{} is {}", key.escape_ascii(), value.escape_ascii());
    }
    assert_eq!(db.range("b"..)?.count(), 2);

    // A snapshot does not see later writes.
    let snapshot = db.snapshot();
    db.delete_range("a".."d")?;
    assert_eq!((snapshot.iter()?.count(), db.iter()?.count()), (3, 1));

    // Closing flushes the memtable and reports errors. A database that is only dropped replays its log
    // when it is next opened.
    db.close()?;
    Ok(())
}

/// Runs the example in a directory that is removed afterwards.
fn main() -> Result<()> {
    run(tempfile::tempdir()?.path())
}
