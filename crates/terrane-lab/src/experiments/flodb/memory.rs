//! Measures how results depend on the size of memory: a burst of writes (Fig. 15), skewed keys
//! (Fig. 16), the ablation (Fig. 17).

use std::convert::Infallible;
use std::path::Path;

use anyhow::Result;

use super::alone;
use super::database::{OperationMix, load, open, run};
use super::sizes::{FloDbSizes, KeyedMemtable, MEMORY_KEYS, NamedMemtable, ablations, kinds, mib};
use crate::experiments::memtables::BufferMode;
use crate::results::Results;

/// A mix of half puts and half deletes.
const BURST: OperationMix =
    OperationMix { puts: 50, deletes: 50, scans: 0, is_skewed: false, one_writer: false };
/// Half lookups, most of which request hot keys.
const SKEWED: OperationMix = OperationMix { puts: 25, deletes: 25, is_skewed: true, ..BURST };

/// Metrics of a burst, and of skewed keys.
const BURST_METRICS: [&str; 5] =
    ["burst_rate", "burst_background", "burst_draining", "burst_stalled", "burst_in_membuffer"];
const SKEW_METRICS: [&str; 5] =
    ["skew_rate", "skew_background", "skew_draining", "skew_stalled", "skew_in_membuffer"];

pub(super) fn measure(sizes: &FloDbSizes, dir: &Path, results: &mut Results) -> Result<()> {
    let threads = sizes.threads_max();
    let title =
        format!("Fig. 15: a burst of writes, thousand operations a second, {threads} threads");
    by_memory(sizes, dir, (BURST, BURST_METRICS), title, results)?;
    let title = format!(
        "Fig. 16: 98 % of operations on 2 % of keys, which are neighbours, half lookups, thousand \
         operations a second, {threads} threads"
    );
    by_memory(sizes, dir, (SKEWED, SKEW_METRICS), title, results)?;
    ablation(sizes, results);
    Ok(())
}

fn headers(kinds: &[NamedMemtable]) -> Vec<&'static str> {
    std::iter::once("memory").chain(kinds.iter().map(|kind| kind.name)).collect()
}

/// Fig. 15 and 16: runs a mix on trees with memtables of each size.
fn by_memory(
    sizes: &FloDbSizes,
    dir: &Path,
    (mix, metrics): (OperationMix, [&str; 5]),
    title: String,
    results: &mut Results,
) -> Result<()> {
    let keyed = kinds();
    let kinds = keyed.map(|KeyedMemtable { memtable, .. }| memtable);
    let mut rows = Vec::new();
    for (size, bytes) in MEMORY_KEYS.into_iter().zip(sizes.memory_bytes()) {
        let best = sizes.best(&kinds, |kind| {
            let dir = dir.join("flodb");
            let db = open(&dir, kind.kind, bytes)?;
            if mix.is_skewed {
                load(&db, mix, sizes.keys())?;
            }
            let run = run(sizes, &db, mix, sizes.threads_max(), 2 * sizes.duration())?;
            db.close()?;
            std::fs::remove_dir_all(&dir)?;
            anyhow::Ok([
                run.operations,
                run.background,
                run.draining,
                run.stalled,
                run.in_membuffer,
            ])
        })?;
        for (KeyedMemtable { key, .. }, values) in keyed.iter().zip(&best) {
            for (metric, value) in metrics.iter().zip(values) {
                results.record(metric, &[key, size], *value);
            }
        }
        let cells = best.iter().map(|[operations, ..]| format!("{operations:.0}"));
        rows.push(std::iter::once(mib(bytes) + " MiB").chain(cells).collect());
    }
    results.table(title, &headers(&kinds), rows);
    Ok(())
}

/// Measures the ablation of Fig. 17.
fn ablation(sizes: &FloDbSizes, results: &mut Results) {
    for mode in BufferMode::ALL {
        let kinds = ablations(mode);
        let mut rows = Vec::new();
        for (number, threads) in sizes.threads.iter().enumerate() {
            let is_last = number + 1 == sizes.threads.len();
            for (size, bytes) in MEMORY_KEYS.into_iter().zip(sizes.memory_bytes()) {
                let best = sizes
                    .best(&kinds, |kind| {
                        Ok::<_, Infallible>(alone::write(sizes, kind.kind, bytes, *threads))
                    })
                    .unwrap_or_default();
                for (kind, [mops, share]) in kinds.iter().zip(&best) {
                    let keys = [mode.name(), kind.name, size];
                    if is_last {
                        results.record("alone_mops", &keys, *mops);
                        results.record("alone_in_membuffer", &keys, *share);
                    }
                    if number == 0 && !is_last {
                        results.record("fewest_in_membuffer", &keys, *share);
                    }
                }
                let cells =
                    best.iter().map(|[mops, share]| format!("{mops:.2}, {:.0} %", share * 100.0));
                let name = format!("{} MiB, {threads} threads", mib(bytes));
                rows.push(std::iter::once(name).chain(cells).collect());
            }
        }
        results.table(
            format!(
                "Fig. 17: memory alone, new keys only, million writes a second and those that \
                 completed in the Membuffer, {}",
                mode.name()
            ),
            &headers(&kinds),
            rows,
        );
    }
}
