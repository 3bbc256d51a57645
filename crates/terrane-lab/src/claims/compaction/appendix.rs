//! What the paper has in footnotes and in its appendix: sizes of filters and indexes, pages, the
//! cache, T, and bits of filters; and what a fence pointer for a group of pages saves (Dent §3.2).

use std::path::Path;

use anyhow::{Context, Result};
use terrane::inspect::{self, TableReport};
use terrane::{Background, Db, Design, Durability, Options};
use terrane_workload::Distribution;

use super::check::{Checks, most};
use super::setting::{Keys, OF_EACH_KIND, Setting};
use super::tree::{Load, Tree, Work};
use crate::claims::report::{Report, times};
use crate::human;

/// A table of the paper: 512 pages of 128 entries of 128 bytes, of which 4 are the key.
const TABLE_ENTRIES: u32 = 512 * 128;
const VALUE_BYTES: usize = 124;
const PAPER_FILTER_BYTES: f64 = (80 << 10) as f64;
const PAPER_INDEX_BYTES: f64 = (16 << 10) as f64;

pub(super) fn measure(
    setting: &Setting,
    keys: &Keys,
    dir: &Path,
    report: &mut Report,
) -> Result<()> {
    pages(&dir.join("table"), report)?;
    caches(setting, keys, dir, report)?;
    filters(setting, keys, dir, report)
}

/// One table of the paper's size on a disk, and what it says of itself.
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
    let told = inspect::table(&file.context("a flush made no table")?)?;
    std::fs::remove_dir_all(&dir)?;
    Ok(told)
}

fn write_all(db: &Db) -> Result<()> {
    for number in 0..TABLE_ENTRIES {
        // An odd factor: all different, over all 32 bits.
        let key = number.wrapping_mul(0x9e37_79b1).to_be_bytes();
        db.put(key, [7; VALUE_BYTES])?;
    }
    Ok(db.flush()?)
}

fn pages(dir: &Path, report: &mut Report) -> Result<()> {
    let mut rows = Vec::new();
    let mut of_paper = None;
    let mut index_bytes = Vec::new();
    for kib in [1, 2, 4, 8, 16, 32] {
        let told = table(dir, kib)?;
        let per_entry = told.index_bytes as f64 / f64::from(TABLE_ENTRIES);
        index_bytes.push(told.index_bytes as f64);
        rows.push(vec![
            format!("{kib} KiB"),
            told.blocks.to_string(),
            human::bytes(told.index_bytes),
            format!("{per_entry:.3}"),
            format!("{:.2} %", 100.0 * told.index_bytes as f64 / told.size_bytes as f64),
            format!("{kib} KiB"),
        ]);
        if kib == 16 {
            of_paper = Some(told);
        }
    }
    let headers = [
        "page",
        "fence pointers",
        "index",
        "bytes of it for an entry",
        "of the table",
        "read for a key",
    ];
    report.table(
        "Fence pointers for pages, and for groups of them (65,536 entries)",
        &headers,
        rows,
    );
    let told = of_paper.context("no table has pages of 16 KiB")?;
    let (filter, index) = (told.filter_bytes as f64, told.index_bytes as f64);
    report.check(
        "S2-112",
        "a table's filter takes 80 KiB at 512 pages of 128 entries and 10 bits",
        human::bytes(told.filter_bytes),
        (filter / PAPER_FILTER_BYTES - 1.0).abs() < 0.02,
        "",
    );
    report.check(
        "S2-112",
        "and its index 16 KiB: 32 bytes for each page",
        human::bytes(told.index_bytes),
        index <= PAPER_INDEX_BYTES,
        "",
    );
    report.check(
        "S1-17, Dent §3.2",
        "a fence pointer for a group of four pages has a quarter of the memory (`block=16KiB` in place of 4)",
        times(index_bytes[2] / index_bytes[4]),
        index_bytes[2] / index_bytes[4] > 3.5,
        "",
    );
    Ok(())
}

fn caches(setting: &Setting, keys: &Keys, dir: &Path, report: &mut Report) -> Result<()> {
    let sizes = [1, 2, 4, 8];
    let mut rows = Vec::new();
    let (mut off, mut rises): (f64, _) = (1.0, true);
    for name in OF_EACH_KIND {
        let mut works: Vec<Work> = Vec::new();
        let mut pages = Vec::new();
        for mib in sizes {
            let design = setting.design(name)?;
            let budget = (mib << 20).max(8 * design.buffer_bytes);
            let load = Load { budget, is_interleaved: true, ..Load::inserts(design) };
            let tree = Tree::load(setting, keys, &load, dir)?;
            pages.push(tree.ask(0, Distribution::Uniform)?.read_amplification);
            works.push(tree.close()?);
        }
        let moved: Vec<f64> = works.iter().map(Work::moved).collect();
        off = off.max(most(&moved) / moved.iter().copied().fold(f64::MAX, f64::min));
        rises &= pages.windows(2).all(|pair| pair[1] <= pair[0] + 0.01);
        let cells = works.iter().zip(&pages).map(|(work, pages)| {
            format!("{:.2}, {:.2}, {pages:.2}", work.moved(), work.lookup_pages)
        });
        rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
    }
    let names = sizes.map(|mib| format!("{mib} MiB: moved ×, pages between, after"));
    let headers: Vec<&str> =
        std::iter::once("strategy").chain(names.iter().map(String::as_str)).collect();
    report.table(
        "Memory for all, most of it cache, with 10 % lookups (Fig. 10, 11)",
        &headers,
        rows,
    );
    report.check(
        "S2-94, O23",
        "strategies react to the size of the cache alike: what they move does not depend on it",
        format!("within {}", times(off)),
        off < 1.05,
        "",
    );
    report.check(
        "S2-94",
        "and lookups read fewer pages the larger it is, under each of them",
        if rises { "yes".into() } else { "not always".into() },
        rises,
        "",
    );
    Ok(())
}

fn filters(setting: &Setting, keys: &Keys, dir: &Path, report: &mut Report) -> Result<()> {
    let bits = [2, 5, 10, 16];
    let mut rows = Vec::new();
    let (mut off, mut falls): (f64, _) = (1.0, true);
    for name in OF_EACH_KIND {
        let (mut works, mut empty, mut there) = (Vec::new(), Vec::new(), Vec::new());
        for bits in bits {
            let mut design = setting.design(name)?;
            design.filter_bits = format!("{bits}").parse()?;
            let tree = Tree::load(setting, keys, &Load::inserts(design), dir)?;
            there.push(tree.ask(0, Distribution::Uniform)?.blocks);
            empty.push(tree.ask(100, Distribution::Uniform)?.blocks);
            works.push(tree.close()?);
        }
        let moved = Checks::named(works.iter().map(|work| ("", work.moved())).collect()).all();
        off = off.max(most(&moved) / moved.iter().copied().fold(f64::MAX, f64::min));
        falls &= empty.windows(2).all(|pair| pair[1] < pair[0]);
        let cells = works.iter().zip(empty.iter().zip(&there)).map(|(work, (empty, there))| {
            format!(
                "{:.0} / {:.0}, {empty:.3}, {there:.3}",
                kib(work.mean_job()),
                kib(work.largest_job())
            )
        });
        rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
    }
    let names =
        bits.map(|bits| format!("{bits} bits: KiB moved, mean / most; blocks empty, existing"));
    let headers: Vec<&str> =
        std::iter::once("strategy").chain(names.iter().map(String::as_str)).collect();
    report.table("Filter bits (Fig. 14)", &headers, rows);
    report.check(
        "S2-97, O23",
        "what compactions move hardly depends on filter bits",
        format!("within {}", times(off)),
        off < 1.05,
        "",
    );
    report.check(
        "S2-97",
        "blocks that lookups of missing keys look into fall with each bit, under every strategy",
        if falls { "yes".into() } else { "not always".into() },
        falls,
        "",
    );
    Ok(())
}

fn kib(bytes: f64) -> f64 {
    bytes / 1024.0
}
