//! Measures operations on a tree with several numbers of threads: Fig. 9 to 12.

use std::path::Path;

use anyhow::Result;

use super::database::{OperationMix, ThreadedRun, load, load_in_order, open, run};
use super::sizes::{FloDbSizes, KeyedMemtable, NamedMemtable, kinds, record_next};
use crate::results::Results;

/// A mix of half inserts and half deletes (§5.2).
const WRITES: OperationMix = OperationMix {
    puts: 50,
    deletes: 50,
    scans: 0,
    scan_keys: 0,
    is_skewed: false,
    one_writer: false,
};

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
const METRICS: [&str; 9] = [
    "tree_rate",
    "tree_background",
    "tree_in_membuffer",
    "tree_stalled",
    "tree_persisted",
    "tree_write_p50",
    "tree_write_p99",
    "tree_get_p50",
    "tree_get_p99",
];

/// The metrics of one figure, and of all figures.
type OneFigure = [f64; METRICS.len()];
type AllFigures = [f64; FIGURES.len() * METRICS.len()];

pub(super) fn measure(sizes: &FloDbSizes, dir: &Path, results: &mut Results) -> Result<()> {
    let keyed = kinds();
    let kinds = keyed.map(|KeyedMemtable { memtable, .. }| memtable);
    let mut rows = Vec::new();
    let mut latencies = Vec::new();
    let all_threads = sizes.threads_from_one();
    for (number, threads) in all_threads.iter().enumerate() {
        let is_last = number + 1 == all_threads.len();
        let rounds = sizes.rounds(&kinds, |kind| all(sizes, dir, kind, *threads))?;
        for (at, (figure, title, _)) in FIGURES.iter().enumerate() {
            let cells = rounds.iter().map(|all| format!("{:.0}", all.best()[at * METRICS.len()]));
            let name = format!("{title}, {threads} threads");
            rows.push(std::iter::once(name.clone()).chain(cells).collect());
            let of = |at_metric: usize| at * METRICS.len() + at_metric;
            let shown =
                rounds.iter().map(|all| latency_cell(&all.best()[of(0)..of(METRICS.len())]));
            latencies.push(std::iter::once(name).chain(shown).collect());
            let named: Vec<_> = keyed.iter().map(|keyed| keyed.key).zip(&rounds).collect();
            if number == 0 {
                record_next(results, "single_next", &named, (figure, of(0)));
            }
            if is_last {
                record_next(results, "tree_next", &named, (figure, of(0)));
            }
            for (KeyedMemtable { key, .. }, all) in keyed.iter().zip(&rounds) {
                if number == 0 {
                    all.record(results, "single_rate", &[key, figure], of(0));
                }
                for (at, metric) in METRICS.iter().enumerate().filter(|_| is_last) {
                    all.record(results, metric, &[key, figure], of(at));
                }
            }
        }
    }
    let headers: Vec<&str> =
        std::iter::once("").chain(kinds.iter().map(|kind| kind.name)).collect();
    results.table("Fig. 9 to 12: thousand operations a second, on a tree", &headers, rows);
    let title = "Fig. 9 to 12: latencies in microseconds: writes P50 / P99, lookups P50 / P99";
    results.table(title, &headers, latencies);
    Ok(())
}

/// Returns the latencies of one figure as text; `-` for a kind without operations.
fn latency_cell(one: &[f64]) -> String {
    let number = |micros: f64| if micros.is_finite() { format!("{micros:.1}") } else { "-".into() };
    let [write_p50, write_p99, get_p50, get_p99] = [5, 6, 7, 8].map(|at| number(one[at]));
    format!("{write_p50} / {write_p99}, {get_p50} / {get_p99}")
}

/// Measures all figures: writes on an empty tree, lookups on a tree loaded in key order (§5.2), the
/// others on a tree loaded in random order.
fn all(sizes: &FloDbSizes, dir: &Path, kind: &NamedMemtable, threads: u32) -> Result<AllFigures> {
    let dir = dir.join("flodb");
    let mut all = [0.0; FIGURES.len() * METRICS.len()];
    for (values, (figure, _, mix)) in all.chunks_mut(METRICS.len()).zip(FIGURES) {
        let db = open(&dir, kind.kind, sizes.buffer_bytes())?;
        match figure {
            "writes" => {}
            "lookups" => load_in_order(&db, sizes.keys())?,
            _ => load(&db, mix, sizes.keys())?,
        }
        let time = if figure == "writes" { sizes.steady_duration() } else { sizes.duration() };
        let run = run(sizes, &db, mix, threads, time)?;
        values.copy_from_slice(&metrics(&run));
        db.close()?;
        std::fs::remove_dir_all(&dir)?;
    }
    Ok(all)
}

/// Returns the values of [`METRICS`].
fn metrics(run: &ThreadedRun) -> OneFigure {
    [
        run.operations,
        run.background,
        run.in_membuffer,
        run.stalled,
        run.persisted,
        run.write_p50,
        run.write_p99,
        run.get_p50,
        run.get_p99,
    ]
}
