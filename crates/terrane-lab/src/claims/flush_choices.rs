//! The two choices of a flush: a new run of level 0, or into what is there (§3.5).
//!
//! The paper names both and measures the first. Here both are measured, with background work done
//! by the writer itself, so that the figures are the same in every run. Both trees give up level 0
//! when it holds as many bytes, so that they differ in nothing but what flushes do.

use std::path::Path;

use anyhow::Result;
use terrane::{Background, Design, Durability, Options};
use terrane_policy::FlushMode;

use super::report::{Claim, Report, times};
use super::setting::{ENTRY_BYTES, Kind, Mode, PREFIX, Setting, hash_skip_list};
use crate::memtable::Load;

/// A sixteenth of the paper's buffer, and of its buckets, so that there are flushes enough for several
/// levels.
const BUFFER_BYTES: f64 = (1 << 20) as f64;
const BUCKETS_PART: u32 = 16;

/// The tree is looked at, and looked into, after so many inserts.
const LOOK_EVERY: usize = 64;

/// What a tree did, and what it was like meanwhile.
struct Work {
    flushes: u64,
    merged: u64,
    write_amplification: f64,
    read_amplification: f64,
    level0_runs: f64,
    level0_tables: f64,
    blocks_per_lookup: f64,
}

pub(super) fn measure(setting: &Setting, dir: &Path, report: &mut Report) -> Result<()> {
    let count = usize::try_from(setting.entries_flushed()).unwrap_or(usize::MAX);
    let load = Load::new(count, ENTRY_BYTES, setting.seed);
    let told = ["vector", "skip-list", "B-link tree"];
    let mut kinds: Vec<Kind> =
        setting.kinds(Mode::Ours).into_iter().filter(|kind| told.contains(&kind.name)).collect();
    let buckets = (setting.buckets() / BUCKETS_PART).max(1);
    kinds.push(Kind { name: "hash skip-list", kind: hash_skip_list(Mode::Ours, PREFIX, buckets) });
    let mut rows = Vec::new();
    let mut pairs = Vec::new();
    for (number, kind) in kinds.iter().enumerate() {
        let run = |flush| run(setting, &load, kind, flush, &dir.join(format!("{number}-{flush}")));
        let (new, merge) = (run(FlushMode::New)?, run(FlushMode::Merge)?);
        for (flush, work) in [(FlushMode::New, &new), (FlushMode::Merge, &merge)] {
            rows.push(vec![
                kind.name.to_owned(),
                flush.to_string(),
                work.flushes.to_string(),
                work.merged.to_string(),
                format!("{:.2}", work.write_amplification),
                format!("{:.2}", work.read_amplification),
                format!("{:.2}", work.level0_runs),
                format!("{:.2}", work.level0_tables),
                format!("{:.2}", work.blocks_per_lookup),
            ]);
        }
        pairs.push((new, merge));
    }
    report.table(
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
    claims(&pairs, report);
    Ok(())
}

/// What holds for all kinds: the least of their ratios.
fn claims(pairs: &[(Work, Work)], report: &mut Report) {
    let least = |of: fn(&Work, &Work) -> f64| {
        pairs.iter().map(|(new, merge)| of(new, merge)).fold(f64::INFINITY, f64::min)
    };
    let files = least(|new, merge| new.level0_tables / merge.level0_tables);
    let runs = least(|new, merge| new.level0_runs / merge.level0_runs);
    report.claim(Claim::new(
        "§3.5",
        "flushes that make new files leave more and smaller ones in level 0",
        Mode::Ours,
        (format!("{} the tables, {} the runs", times(files), times(runs)), files.min(runs) > 1.0),
        "what merges is cut at the size of tables, and there are as many",
    ));
    let writes = least(|new, merge| merge.write_amplification / new.write_amplification);
    let reads = least(|new, merge| merge.read_amplification / new.read_amplification);
    report.claim(Claim::new(
        "§3.5",
        "flushes that merge raise write and read amplification",
        Mode::Ours,
        (
            format!("{} written, {} read by flushes and compactions", times(writes), times(reads)),
            writes.min(reads) > 1.0,
        ),
        "",
    ));
    let lookups = least(|new, merge| new.blocks_per_lookup / merge.blocks_per_lookup);
    report.claim(Claim::new(
        "§3.5, ours",
        "and save lookups runs to look into",
        Mode::Ours,
        (format!("{} the blocks a lookup without", times(lookups)), lookups > 1.0),
        "",
    ));
}

fn run(setting: &Setting, load: &Load, kind: &Kind, flush: FlushMode, dir: &Path) -> Result<Work> {
    // No filters: what lookups save is runs, which filters hide.
    let mut design: Design =
        "1-leveling T=4 L0=4; trigger=level-saturation; block=4KiB; filter=0".parse()?;
    design.memtable = kind.kind;
    design.flush = flush;
    design.buffer_bytes = ((BUFFER_BYTES * setting.scale) as u64).max(64 << 10);
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
        // One of those that are there, wherever.
        let sought = looks.wrapping_mul(0x9e37_79b9) % number;
        db.get(&load.keys()[sought]).map(drop)
    })?;
    let stats = db.stats();
    db.close()?;
    let user_bytes = stats.user_bytes_written.max(1) as f64;
    let mean = |sum: usize| sum as f64 / f64::max(looks as f64, 1.0);
    Ok(Work {
        flushes: stats.flushes,
        merged: stats.flushes_merged,
        write_amplification: stats.write_amplification(),
        read_amplification: stats.compaction_bytes_read as f64 / user_bytes,
        level0_runs: mean(runs),
        level0_tables: mean(tables),
        blocks_per_lookup: stats.read_amplification(),
    })
}
