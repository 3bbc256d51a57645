//! Flushes, compactions and bytes of a whole tree: Fig. 6.

use std::path::Path;

use anyhow::Result;
use terrane::{Design, Durability, Options};

use super::report::{Claim, Report, times};
use super::setting::{ENTRY_BYTES, Mode, Setting};
use crate::memtable::Load;

/// §3.1: a buffer of 16 MB, pages of 4 KB, size ratio 4, one thread to compact and one to flush, no
/// log.
const BUFFER_BYTES: f64 = (16 << 20) as f64;

/// What a tree did.
struct Work {
    flushes: u64,
    compactions: u64,
    bytes_written: u64,
    bytes_read: u64,
}

pub(super) fn measure(setting: &Setting, dir: &Path, report: &mut Report) -> Result<()> {
    let count = usize::try_from(setting.entries_flushed()).unwrap_or(usize::MAX);
    let load = Load::new(count, ENTRY_BYTES, setting.seed);
    for mode in Mode::ALL {
        let kinds: Vec<_> = setting
            .kinds(mode)
            .into_iter()
            .filter(|kind| kind.name != "vector, preallocated")
            .collect();
        let mut works = Vec::new();
        for (number, kind) in kinds.iter().enumerate() {
            let dir = dir.join(format!("{}-{number}", mode.name()));
            works.push(run(setting, &load, kind.kind, &dir)?);
        }
        let user_bytes = (count * ENTRY_BYTES) as f64;
        let rows = kinds.iter().zip(&works).map(|(kind, work)| {
            vec![
                kind.name.to_owned(),
                work.flushes.to_string(),
                work.compactions.to_string(),
                format!("{:.2}", work.bytes_written as f64 / user_bytes),
                format!("{:.2}", work.bytes_read as f64 / user_bytes),
            ]
        });
        report.table(
            format!("Fig. 6: {count} unique inserts into a tree, {}", mode.name()),
            &["memtable", "flushes", "compactions", "write amplification", "read by compactions"],
            rows.collect(),
        );
        let find = |name| kinds.iter().position(|kind| kind.name == name).map(|at| &works[at]);
        let (Some(vector), Some(skip_list), Some(hashed)) =
            (find("vector"), find("skip-list"), find("hash skip-list"))
        else {
            continue;
        };
        let ratio = |over: u64, under: u64| over as f64 / under.max(1) as f64;
        let flushes = ratio(hashed.flushes, skip_list.flushes);
        let bytes = ratio(hashed.bytes_written, skip_list.bytes_written);
        report.claim(Claim::new(
            "Fig. 6b",
            "a hash skip-list makes 50 % more flushes",
            mode,
            (format!("{} the skip-list", times(flushes)), flushes >= 1.5),
            "",
        ));
        report.claim(Claim::new(
            "Fig. 6a",
            "and writes 70 % more bytes",
            mode,
            (format!("{} the skip-list", times(bytes)), bytes >= 1.7),
            format!(
                "{} compactions against {}, for {} flushes against {}: one takes as many runs as have \
                 come, so that bytes do not follow flushes",
                hashed.compactions, skip_list.compactions, hashed.flushes, skip_list.flushes
            ),
        ));
        let is_fewest = works.iter().all(|work| vector.flushes <= work.flushes);
        let fewest =
            works.iter().map(|work| work.flushes).filter(|&flushes| flushes > vector.flushes).min();
        report.claim(Claim::new(
            "Fig. 6b",
            "a vector makes the fewest flushes",
            mode,
            (
                format!("{}, the next {}", vector.flushes, fewest.unwrap_or(vector.flushes)),
                is_fewest,
            ),
            "",
        ));
    }
    Ok(())
}

fn run(
    setting: &Setting,
    load: &Load,
    memtable: terrane_policy::MemtableKind,
    dir: &Path,
) -> Result<Work> {
    let mut design: Design = "leveling T=4; block=4KiB".parse()?;
    design.memtable = memtable;
    design.buffer_bytes = ((BUFFER_BYTES * setting.scale) as u64).max(64 << 10);
    design.table_bytes = design.buffer_bytes;
    design.validate()?;
    let options = Options::new().design(design).durability(Durability::None).compaction_threads(1);
    let db = options.open(dir)?;
    load.each(|key, value| db.put(key, value))?;
    db.flush()?;
    db.wait_for_compactions()?;
    let stats = db.stats();
    db.close()?;
    Ok(Work {
        flushes: stats.flushes,
        compactions: stats.compactions + stats.trivial_moves,
        bytes_written: stats.flush_bytes_written + stats.compaction_bytes_written,
        bytes_read: stats.compaction_bytes_read,
    })
}
