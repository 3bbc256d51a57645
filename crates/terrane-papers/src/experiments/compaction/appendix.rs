//! Footnote 1 of the paper: sizes of filters and indexes; and the savings of one fence pointer for
//! several pages (Dent §3.2).

use std::path::Path;

use anyhow::{Context, Result};
use terrane::inspect::{self, TableReport};
use terrane::{Background, Db, Design, Durability, Options};
use terrane_lab::output::human;

use crate::results::Results;

/// A table of the paper: 512 pages of 128 entries of 128 bytes, of which 4 are the key.
const TABLE_ENTRIES: u32 = 512 * 128;
const VALUE_BYTES: usize = 124;

/// Writes one table of the paper's size to a disk and inspects it.
fn table(dir: &Path, block_kib: u32) -> Result<TableReport> {
    let design: Design =
        format!("leveling; buffer=64MiB; table=64MiB; block={block_kib}KiB").parse()?;
    let dir = dir.join(block_kib.to_string());
    let db = Options::new()
        .design(design)
        .durability(Durability::None)
        .background(Background::Inline)
        .open(&dir)?;
    write_all(&db)?;
    db.close()?;
    let files = std::fs::read_dir(&dir)?.filter_map(Result::ok).map(|entry| entry.path());
    let file = files.into_iter().find(|path| path.extension().is_some_and(|end| end == "sst"));
    let report = inspect::table(&file.context("a flush made no table")?)?;
    std::fs::remove_dir_all(&dir)?;
    Ok(report)
}

fn write_all(db: &Db) -> Result<()> {
    for number in 0..TABLE_ENTRIES {
        // Multiplication by an odd factor permutes all 32 bits, so the keys are distinct.
        let key = number.wrapping_mul(0x9e37_79b1).to_be_bytes();
        db.put(key, [7; VALUE_BYTES])?;
    }
    Ok(db.flush()?)
}

pub(super) fn measure(dir: &Path, results: &mut Results) -> Result<()> {
    let mut rows = Vec::new();
    for page_kib in [1, 2, 4, 8, 16, 32] {
        let report = table(dir, page_kib)?;
        let key = page_kib.to_string();
        results.record("index_bytes", &[&key], report.index_bytes as f64);
        results.record("filter_bytes", &[&key], report.filter_bytes as f64);
        let per_entry = report.index_bytes as f64 / f64::from(TABLE_ENTRIES);
        rows.push(vec![
            format!("{page_kib} KiB"),
            report.blocks.to_string(),
            human::bytes(report.index_bytes),
            format!("{per_entry:.3}"),
            format!("{:.2} %", 100.0 * report.index_bytes as f64 / report.size_bytes as f64),
            format!("{page_kib} KiB"),
        ]);
    }
    let headers = [
        "page",
        "fence pointers",
        "index",
        "bytes of it for an entry",
        "of the table",
        "read for a key",
    ];
    let title = "Fence pointers for pages, and for groups of them (65,536 entries)";
    results.table(title, &headers, rows);
    Ok(())
}
