//! Flushes, compactions and bytes of a whole tree: Fig. 6.

use std::path::Path;

use anyhow::Result;
use terrane::{Background, Design, Durability, Options};
use terrane_lab::memtable::Load;

use super::sizes::{BufferMode, BufferSizes, ENTRY_BYTES};
use crate::results::Results;

/// §3.1: a buffer of 16 MB, pages of 4 KB, size ratio 4, no log.
const BUFFER_BYTES: f64 = (16 << 20) as f64;

/// The number of inserts after which the writer runs the jobs that are due: fewer than the buffer holds,
/// so that each flush is compacted before the next, as if a background thread kept up.
const JOBS_EVERY: usize = 128;

/// Flushes and compactions of a tree.
struct TreeCounts {
    flushes: u64,
    compactions: u64,
    bytes_written: u64,
    bytes_read: u64,
}

pub(super) fn measure(sizes: &BufferSizes, dir: &Path, results: &mut Results) -> Result<()> {
    let count = usize::try_from(sizes.entries_flushed()).unwrap_or(usize::MAX);
    let load = Load::new(count, ENTRY_BYTES, sizes.seed);
    let user_bytes = (count * ENTRY_BYTES) as f64;
    for mode in BufferMode::ALL {
        let mut rows = Vec::new();
        let kinds = sizes.kinds(mode);
        let kinds = kinds.iter().filter(|kind| kind.name != "vector, preallocated");
        for (number, kind) in kinds.enumerate() {
            let dir = dir.join(format!("{}-{number}", mode.name()));
            let counts = run(sizes, &load, kind.kind, &dir)?;
            let keys = [mode.name(), kind.name];
            results.record("tree_flushes", &keys, counts.flushes as f64);
            results.record("tree_compactions", &keys, counts.compactions as f64);
            results.record("tree_written", &keys, counts.bytes_written as f64);
            rows.push(vec![
                kind.name.to_owned(),
                counts.flushes.to_string(),
                counts.compactions.to_string(),
                format!("{:.2}", counts.bytes_written as f64 / user_bytes),
                format!("{:.2}", counts.bytes_read as f64 / user_bytes),
            ]);
        }
        results.table(
            format!("Fig. 6: {count} unique inserts into a tree, {}", mode.name()),
            &["memtable", "flushes", "compactions", "write amplification", "read by compactions"],
            rows,
        );
    }
    Ok(())
}

fn run(
    sizes: &BufferSizes,
    load: &Load,
    memtable: terrane_policy::MemtableKind,
    dir: &Path,
) -> Result<TreeCounts> {
    let mut design: Design = "leveling T=4; block=4KiB".parse()?;
    design.memtable = memtable;
    design.buffer_bytes = ((BUFFER_BYTES * sizes.scale) as u64).max(64 << 10);
    design.table_bytes = design.buffer_bytes;
    design.validate()?;
    // The writer flushes and compacts, so that the number of runs in a compaction, and thus its bytes, do
    // not depend on when a thread ran.
    let options = Options::new().design(design).durability(Durability::None);
    let db = options.background(Background::Inline).open(dir)?;
    let mut number = 0_usize;
    load.each(|key, value| {
        db.put(key, value)?;
        number += 1;
        while number.is_multiple_of(JOBS_EVERY) && db.run_background_job()? {}
        Ok::<_, terrane::Error>(())
    })?;
    db.flush()?;
    db.wait_for_compactions()?;
    let stats = db.stats();
    db.close()?;
    Ok(TreeCounts {
        flushes: stats.flushes,
        compactions: stats.compactions + stats.trivial_moves,
        bytes_written: stats.flush_bytes_written + stats.compaction_bytes_written,
        bytes_read: stats.compaction_bytes_read,
    })
}
