//! The two choices of a flush: a new run of level 0, or a merge with the runs of level 0 (§3.5).
//!
//! The paper names both choices and measures the first. Here the writer runs all background work,
//! so the counts are the same in every run. Level 0 is compacted at the same number of bytes in
//! both trees, so they differ only in their flushes.

use std::path::Path;

use anyhow::Result;
use terrane::{Background, Design, Durability, Options};
use terrane_lab::memtable::Load;
use terrane_policy::FlushMode;

use super::sizes::{BufferMode, BufferSizes, ENTRY_BYTES, NamedMemtable, PREFIX, hash_skip_list};
use crate::results::Results;

/// A sixteenth of the paper's buffer, and of its buckets, so that the flushes fill several levels.
const BUFFER_BYTES: f64 = (1 << 20) as f64;
const BUCKETS_PART: u32 = 16;

/// The number of inserts between two samples of the tree's shape; each sample also does a lookup.
const LOOK_EVERY: usize = 64;

/// Amplification and mean shape of a tree.
struct FlushModeCosts {
    flushes: u64,
    merged: u64,
    write_amplification: f64,
    read_amplification: f64,
    level0_runs: f64,
    level0_tables: f64,
    blocks_per_lookup: f64,
}

pub(super) fn measure(sizes: &BufferSizes, dir: &Path, results: &mut Results) -> Result<()> {
    let count = usize::try_from(sizes.entries_flushed()).unwrap_or(usize::MAX);
    let load = Load::new(count, ENTRY_BYTES, sizes.seed);
    let names = ["vector", "skip-list", "B-link tree"];
    let mut kinds = sizes.kinds(BufferMode::Ours);
    kinds.retain(|kind| names.contains(&kind.name));
    let buckets = (sizes.buckets() / BUCKETS_PART).max(1);
    let hashed = hash_skip_list(BufferMode::Ours, PREFIX, buckets);
    kinds.push(NamedMemtable { name: "hash skip-list", kind: hashed });
    let mut rows = Vec::new();
    for (number, kind) in kinds.iter().enumerate() {
        for flush in [FlushMode::New, FlushMode::Merge] {
            let costs = run(sizes, &load, kind, flush, &dir.join(format!("{number}-{flush}")))?;
            let flush = flush.to_string();
            let keys = [flush.as_str(), kind.name];
            results.record("level0_tables", &keys, costs.level0_tables);
            results.record("level0_runs", &keys, costs.level0_runs);
            results.record("flush_written", &keys, costs.write_amplification);
            results.record("flush_read", &keys, costs.read_amplification);
            results.record("flush_blocks", &keys, costs.blocks_per_lookup);
            let numbers = [
                costs.write_amplification,
                costs.read_amplification,
                costs.level0_runs,
                costs.level0_tables,
                costs.blocks_per_lookup,
            ];
            let counts = [costs.flushes, costs.merged].map(|count| count.to_string());
            let names = [kind.name.to_owned(), flush.clone()];
            let cells = names.into_iter().chain(counts);
            rows.push(cells.chain(numbers.map(|number| format!("{number:.2}"))).collect());
        }
    }
    results.table(
        format!("§3.5: {count} unique inserts into a tree, by what flushes do (`flush=`)"),
        &[
            "memtable",
            "flush",
            "flushes",
            "merged",
            "write amplification",
            "read by flushes and compactions",
            "runs in level 0",
            "tables in level 0",
            "blocks a lookup",
        ],
        rows,
    );
    Ok(())
}

fn run(
    sizes: &BufferSizes,
    load: &Load,
    kind: &NamedMemtable,
    flush: FlushMode,
    dir: &Path,
) -> Result<FlushModeCosts> {
    // The trees have no filters: with filters, lookups would hardly benefit from the fewer runs of
    // merging flushes.
    let mut design: Design =
        "1-leveling T=4 L0=4; trigger=level-saturation; block=4KiB; filter=0".parse()?;
    design.memtable = kind.kind;
    design.flush = flush;
    design.buffer_bytes = ((BUFFER_BYTES * sizes.scale) as u64).max(64 << 10);
    design.table_bytes = design.buffer_bytes;
    design.validate()?;
    let options =
        Options::new().design(design).durability(Durability::None).background(Background::Inline);
    let db = options.open(dir)?;
    let (mut number, mut looks, mut runs, mut tables) = (0_usize, 0_usize, 0, 0);
    load.each(|key, value| {
        db.put(key, value)?;
        number += 1;
        if number % LOOK_EVERY > 0 {
            return Ok(());
        }
        while db.run_background_job()? {}
        let tree = db.tree();
        let level0 = tree.shape.level(0);
        looks += 1;
        runs += level0.runs.len();
        tables += level0.table_count();
        // Look up any of the inserted keys.
        let sought = looks.wrapping_mul(0x9e37_79b9) % number;
        db.get(&load.keys()[sought]).map(drop)
    })?;
    let stats = db.stats();
    db.close()?;
    let user_bytes = stats.user_bytes_written.max(1) as f64;
    let mean = |sum: usize| sum as f64 / f64::max(looks as f64, 1.0);
    Ok(FlushModeCosts {
        flushes: stats.flushes,
        merged: stats.flushes_merged,
        write_amplification: stats.write_amplification().unwrap_or(f64::NAN),
        read_amplification: stats.compaction_bytes_read as f64 / user_bytes,
        level0_runs: mean(runs),
        level0_tables: mean(tables),
        blocks_per_lookup: stats.read_amplification().unwrap_or(f64::NAN),
    })
}
