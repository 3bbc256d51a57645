//! Measures operations on a tree with several numbers of threads: Fig. 9 to 12.

use std::path::Path;

use anyhow::Result;

use super::database::{OperationMix, ThreadedRun, load, open, run};
use super::sizes::{FloDbSizes, KeyedMemtable, NamedMemtable, kinds};
use crate::results::Results;

/// A mix of half inserts and half deletes (§5.2).
const WRITES: OperationMix =
    OperationMix { puts: 50, deletes: 50, scans: 0, is_skewed: false, one_writer: false };

/// The key, the title and the mix of a figure.
type Figure = (&'static str, &'static str, OperationMix);

const FIGURES: [Figure; 4] = [
    ("writes", "Fig. 9: writes to an empty tree", WRITES),
    ("lookups", "Fig. 10: lookups", OperationMix { puts: 0, deletes: 0, ..WRITES }),
    ("half lookups", "Fig. 11: half lookups", OperationMix { puts: 25, deletes: 25, ..WRITES }),
    (
        "one writer",
        "Fig. 12: one writer, the others read",
        OperationMix { one_writer: true, ..WRITES },
    ),
];

/// Metrics of each figure.
const METRICS: [&str; 3] = ["tree_rate", "tree_background", "tree_in_membuffer"];

/// The metrics of all figures.
type AllFigures = [f64; FIGURES.len() * METRICS.len()];

pub(super) fn measure(sizes: &FloDbSizes, dir: &Path, results: &mut Results) -> Result<()> {
    let keyed = kinds();
    let kinds = keyed.map(|KeyedMemtable { memtable, .. }| memtable);
    let mut rows = Vec::new();
    let mut most = Vec::new();
    for threads in &sizes.threads {
        let rounds = sizes.rounds(&kinds, |kind| all(sizes, dir, kind, *threads))?;
        for (at, (_, title, _)) in FIGURES.iter().enumerate() {
            let cells = rounds.iter().map(|all| format!("{:.0}", all.best()[at * METRICS.len()]));
            rows.push(
                std::iter::once(format!("{title}, {threads} threads")).chain(cells).collect(),
            );
        }
        most = rounds;
    }
    let headers: Vec<&str> =
        std::iter::once("").chain(kinds.iter().map(|kind| kind.name)).collect();
    results.table("Fig. 9 to 12: thousand operations a second, on a tree", &headers, rows);
    for (KeyedMemtable { key, .. }, all) in keyed.iter().zip(&most) {
        for (number, (figure, ..)) in FIGURES.iter().enumerate() {
            for (at, metric) in METRICS.iter().enumerate() {
                all.record(results, metric, &[key, figure], number * METRICS.len() + at);
            }
        }
    }
    Ok(())
}

/// Measures all figures: writes on an empty tree, the others on a loaded one.
fn all(sizes: &FloDbSizes, dir: &Path, kind: &NamedMemtable, threads: u32) -> Result<AllFigures> {
    let dir = dir.join("flodb");
    let mut all = [0.0; FIGURES.len() * METRICS.len()];
    let mut record = |at: usize, run: ThreadedRun| {
        let found = [run.operations, run.background, run.in_membuffer];
        all[at * METRICS.len()..][..METRICS.len()].copy_from_slice(&found);
    };
    let db = open(&dir, kind.kind, sizes.buffer_bytes())?;
    record(0, run(sizes, &db, WRITES, threads, sizes.duration())?);
    db.close()?;
    std::fs::remove_dir_all(&dir)?;
    let db = open(&dir, kind.kind, sizes.buffer_bytes())?;
    load(&db, WRITES, sizes.keys())?;
    for (at, (_, _, mix)) in FIGURES.into_iter().enumerate().skip(1) {
        record(at, run(sizes, &db, mix, threads, sizes.duration())?);
    }
    db.close()?;
    std::fs::remove_dir_all(&dir)?;
    Ok(all)
}
