//! Whether the log changes what is said of memtables (§3.1: "enabling the WAL would not change the
//! trends"): a tree with each kind, with and without the log.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use terrane::policy::MemtableKind;
use terrane::{Design, Durability, Options};

use super::report::{Claim, Report, nanos};
use super::setting::{ENTRY_BYTES, Kind, Mode, Setting};
use crate::commands::bench::memtable::measure::Load;

/// Two kinds are told apart if one takes this share more than the other.
const APART: f64 = 1.25;

pub(super) fn measure(setting: &Setting, dir: &Path, report: &mut Report) -> Result<()> {
    let load = Load::new(setting.load.len(), ENTRY_BYTES, setting.seed);
    for mode in Mode::ALL {
        let kinds = setting.kinds(mode);
        let mut best = vec![[f64::INFINITY; 2]; kinds.len()];
        let mut work = vec![[(0, 0.0); 2]; kinds.len()];
        for _ in 0..setting.rounds.min(2) {
            for (number, kind) in kinds.iter().enumerate() {
                for (log, durability) in
                    [Durability::None, Durability::Process].into_iter().enumerate()
                {
                    let dir = dir.join(format!("log-{}-{number}-{log}", mode.name()));
                    let (each, done) = run(setting, &load, kind.kind, durability, &dir)?;
                    best[number][log] = best[number][log].min(each);
                    work[number][log] = done;
                    std::fs::remove_dir_all(&dir)?;
                }
            }
        }
        show(&kinds, &best, &work, mode, report);
    }
    Ok(())
}

fn show(
    kinds: &[Kind],
    best: &[[f64; 2]],
    work: &[[(u64, f64); 2]],
    mode: Mode,
    report: &mut Report,
) {
    let rows = kinds.iter().zip(best.iter().zip(work)).map(|(kind, (each, work))| {
        let [without, with] = [0, 1].map(|log| {
            let (flushes, written) = work[log];
            [nanos(each[log]), flushes.to_string(), format!("{written:.2}")]
        });
        std::iter::once(kind.name.to_owned()).chain(without).chain(with).collect()
    });
    report.table(
        format!("§3.1: inserts into a tree without and with the log, {}", mode.name()),
        &["memtable", "per insert", "flushes", "write amp.", "with log", "flushes", "write amp."],
        rows.collect(),
    );
    let mut compared = 0;
    let mut turned = Vec::new();
    for (at, one) in best.iter().enumerate() {
        for (other_at, other) in best.iter().enumerate() {
            // Of a pair, the one that is clearly faster without the log.
            if one[0] * APART < other[0] {
                compared += 1;
                if one[1] > other[1] {
                    turned.push(format!("{} and {}", kinds[at].name, kinds[other_at].name));
                }
            }
        }
    }
    let same_flushes = work.iter().all(|[without, with]| without.0 == with.0);
    let flushes = if same_flushes { "as many flushes" } else { "other numbers of flushes" };
    report.claim(Claim::new(
        "§3.1",
        "enabling the log does not change the trends",
        mode,
        (
            format!(
                "of {compared} pairs of kinds that differ by a quarter {} turn round; {flushes}",
                if turned.is_empty() { "none".to_owned() } else { turned.join(", ") }
            ),
            turned.is_empty() && same_flushes,
        ),
        "they are so close with the log, which costs more than most inserts, that noise orders them",
    ));
}

/// Nanoseconds of an insert; flushes, and bytes that they and compactions wrote for each of the user.
fn run(
    setting: &Setting,
    load: &Load,
    memtable: MemtableKind,
    durability: Durability,
    dir: &Path,
) -> Result<(f64, (u64, f64))> {
    let mut design: Design = "leveling T=4; block=4KiB".parse()?;
    design.memtable = memtable;
    // Full a few times: what is flushed is the same with and without the log.
    design.buffer_bytes = ((2 << 20) as f64 * setting.scale) as u64;
    design.buffer_bytes = design.buffer_bytes.max(64 << 10);
    design.table_bytes = design.buffer_bytes;
    if let MemtableKind::Vector { prealloc_bytes, .. } = &mut design.memtable {
        *prealloc_bytes = (*prealloc_bytes).min(design.buffer_bytes);
    }
    design.validate()?;
    let options = Options::new().design(design).durability(durability).compaction_threads(1);
    let db = options.open(dir)?;
    let start = Instant::now();
    load.each(|key, value| db.put(key, value))?;
    let each = start.elapsed().as_nanos() as f64 / load.len() as f64;
    db.flush()?;
    db.wait_for_compactions()?;
    let stats = db.stats();
    db.close()?;
    let written = stats.flush_bytes_written + stats.compaction_bytes_written;
    Ok((each, (stats.flushes, written as f64 / (load.len() * ENTRY_BYTES) as f64)))
}
