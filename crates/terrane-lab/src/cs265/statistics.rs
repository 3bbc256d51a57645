//! The statistics of CS 265.
//!
//! ```text
//! Logical Pairs: 12
//! LVL1: 3, LVL3: 11
//! 45:56:L1 56:TOMBSTONE:L1 91:45:L1
//!
//! 7:32:L3 19:73:L3 32:91:L3
//! ```
//!
//! The first line has the number of live pairs. The second has the number of entries of each level
//! that is not empty, old versions and tombstones included. Then these entries follow: a line per
//! level, separated by empty lines; in a level, newer runs come first, and each run is in key
//! order. The buffer is flushed first, because only levels are listed.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use terrane::{Db, inspect};
use terrane_policy::{Level, TableId};

use super::number;

/// Writes the statistics of a database.
pub(super) fn write(db: &Db, out: &mut impl Write) -> Result<()> {
    db.flush()?;
    db.wait_for_compactions()?;
    let mut logical = 0_u64;
    let mut live = db.iter()?;
    while live.advance()? {
        logical += 1;
    }
    drop(live);
    let shape = db.tree().shape;
    let levels: Vec<(usize, &Level)> = shape
        .levels
        .iter()
        .enumerate()
        .map(|(index, level)| (index + 1, level))
        .filter(|(_, level)| entries(level) > 0)
        .collect();
    let counts: Vec<String> =
        levels.iter().map(|(name, level)| format!("LVL{name}: {}", entries(level))).collect();
    writeln!(out, "Logical Pairs: {logical}\n{}", counts.join(", "))?;
    let files = table_files(db)?;
    for (number, (name, level)) in levels.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        write_level(*name, level, &files, out)?;
    }
    Ok(())
}

fn entries(level: &Level) -> u64 {
    level.runs.iter().flat_map(|run| &run.tables).map(|table| table.entries).sum()
}

/// Returns the file of each table, whose name starts with the table's number.
fn table_files(db: &Db) -> Result<HashMap<TableId, PathBuf>> {
    let mut files = HashMap::new();
    let dir = std::fs::read_dir(db.path());
    for file in dir.with_context(|| format!("cannot list {}", db.path().display()))? {
        let path = file?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = name.strip_suffix(".sst").and_then(|stem| stem.split_once('-'));
        if let Some(number) = number.and_then(|(number, _)| number.parse().ok()) {
            files.insert(TableId(number), path);
        }
    }
    Ok(files)
}

fn write_level(
    name: usize,
    level: &Level,
    files: &HashMap<TableId, PathBuf>,
    out: &mut impl Write,
) -> Result<()> {
    let mut blank = "";
    for table in level.runs.iter().flat_map(|run| &run.tables) {
        let file = files.get(&table.id).context("a table has no file")?;
        for entry in inspect::table(file)?.iter() {
            let entry = entry?;
            let key = number(&entry.key)?;
            match &entry.value {
                Some(value) => write!(out, "{blank}{key}:{}:L{name}", number(value)?)?,
                None => write!(out, "{blank}{key}:TOMBSTONE:L{name}")?,
            }
            blank = " ";
        }
    }
    Ok(writeln!(out)?)
}
