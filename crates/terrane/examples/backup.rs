//! A backup of a database in use, and its restoration: `cargo run -p terrane --example backup`.
//!
//! A checkpoint is a complete database. It shares tables with the original by hard links if the file
//! system has them, so it takes little time and space. It becomes a backup when it is copied to another
//! device; its files do not change meanwhile.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]
#![allow(clippy::disallowed_methods, reason = "a program copies files with the standard library")]

use std::error::Error;
use std::fs;
use std::path::Path;

use terrane::{Db, inspect};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Copies the files of a directory, which has no directories.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for file in fs::read_dir(from)? {
        let file = file?;
        fs::copy(file.path(), to.join(file.file_name()))?;
    }
    Ok(())
}

pub(crate) fn run(dir: &Path) -> Result<()> {
    let (original, checkpoint, backup) =
        (dir.join("db"), dir.join("checkpoint"), dir.join("backup"));
    let db = Db::open(&original)?;
    for number in 0..1000u32 {
        db.put(number.to_be_bytes(), "before the backup")?;
    }
    // Other threads may read and write during this call.
    db.checkpoint(&checkpoint)?;
    db.put(7u32.to_be_bytes(), "after the backup")?;
    copy(&checkpoint, &backup)?;
    fs::remove_dir_all(&checkpoint)?;

    // A backup that was never verified is a hope.
    let report = inspect::verify(&backup, &mut |_| {})?;
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    println!("the backup has {} tables and no damage", report.tables);

    // The original is lost. To restore it, copy the backup to its place.
    db.close()?;
    fs::remove_dir_all(&original)?;
    copy(&backup, &original)?;
    let db = Db::open(&original)?;
    assert_eq!(db.iter()?.count(), 1000);
    assert_eq!(db.get(7u32.to_be_bytes())?.unwrap(), "before the backup");
    Ok(())
}

/// Runs the example in a directory that is removed afterwards.
fn main() -> Result<()> {
    run(tempfile::tempdir()?.path())
}
