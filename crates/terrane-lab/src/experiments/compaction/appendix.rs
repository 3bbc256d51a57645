//! The footnotes and the appendix of the paper: sizes of filters and indexes, pages, the cache, T, and
//! filter bits; and what one fence pointer for several pages saves (Dent §3.2).

use std::path::Path;

use anyhow::{Context, Result};
use terrane::inspect::{self, TableReport};
use terrane::{Background, Db, Design, Durability, Options};
use terrane_workload::Distribution;

use super::recording::{headers, kib};
use super::sizes::{CompactionSizes, KeySet, OF_EACH_KIND};
use super::tree::{LoadPlan, LoadedTree};
use crate::human;
use crate::results::Results;

/// A table of the paper: 512 pages of 128 entries of 128 bytes, of which 4 are the key.
const TABLE_ENTRIES: u32 = 512 * 128;
const VALUE_BYTES: usize = 124;

pub(super) fn measure(
    sizes: &CompactionSizes,
    keys: &KeySet,
    dir: &Path,
    results: &mut Results,
) -> Result<()> {
    pages(&dir.join("table"), results)?;
    caches(sizes, keys, dir, results)?;
    filters(sizes, keys, dir, results)
}

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

fn pages(dir: &Path, results: &mut Results) -> Result<()> {
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

fn caches(sizes: &CompactionSizes, keys: &KeySet, dir: &Path, results: &mut Results) -> Result<()> {
    let budgets: [u64; 4] = [1, 2, 4, 8];
    let mut rows = Vec::new();
    for name in OF_EACH_KIND {
        let mut row = vec![name.to_owned()];
        for mib in budgets {
            let design = sizes.design(name)?;
            let budget = (mib << 20).max(8 * design.buffer_bytes);
            let load = LoadPlan { budget, is_interleaved: true, ..LoadPlan::inserts(design) };
            let tree = LoadedTree::load(sizes, keys, &load, dir)?;
            let pages = tree.look_up(0, Distribution::Uniform)?.pages;
            let stats = tree.close()?;
            let key = mib.to_string();
            results.record("cache_moved", &[&key, name], stats.moved());
            results.record("cache_pages", &[&key, name], pages);
            row.push(format!("{:.2}, {:.2}, {pages:.2}", stats.moved(), stats.lookup_pages));
        }
        rows.push(row);
    }
    let columns = budgets.map(|mib| format!("{mib} MiB: moved ×, pages between, after"));
    let title = "Memory of the database, most of it cache, with 10 % lookups (Fig. 10, 11)";
    results.table(title, &headers("strategy", &columns), rows);
    Ok(())
}

fn filters(
    sizes: &CompactionSizes,
    keys: &KeySet,
    dir: &Path,
    results: &mut Results,
) -> Result<()> {
    let bits = [2, 5, 10, 16];
    let mut rows = Vec::new();
    for name in OF_EACH_KIND {
        let mut row = vec![name.to_owned()];
        for bits in bits {
            let mut design = sizes.design(name)?;
            design.filter_bits = format!("{bits}").parse()?;
            let tree = LoadedTree::load(sizes, keys, &LoadPlan::inserts(design), dir)?;
            let existing = tree.look_up(0, Distribution::Uniform)?.blocks;
            let empty = tree.look_up(100, Distribution::Uniform)?.blocks;
            let stats = tree.close()?;
            let key = bits.to_string();
            results.record("bits_moved", &[&key, name], stats.moved());
            results.record("bits_empty_blocks", &[&key, name], empty);
            let jobs = [stats.mean_job(), stats.largest_job()].map(kib).join(" / ");
            row.push(format!("{jobs}, {empty:.3}, {existing:.3}"));
        }
        rows.push(row);
    }
    let columns =
        bits.map(|bits| format!("{bits} bits: KiB moved, mean / most; blocks empty, existing"));
    results.table("Filter bits (Fig. 14)", &headers("strategy", &columns), rows);
    Ok(())
}
