//! Measures how results depend on the size of memory: a burst of writes (Fig. 15), skewed keys
//! (Fig. 16), the ablation (Fig. 17).

use std::convert::Infallible;
use std::path::Path;

use anyhow::Result;

use super::alone;
use super::database::{OperationMix, ThreadedRun, load, open, run};
use super::sizes::{FloDbSizes, KeyedMemtable, MEMORY_KEYS, NamedMemtable, ablations, kinds, mib};
use crate::experiments::memtables::BufferMode;
use crate::results::Results;

/// A mix of half puts and half deletes.
const BURST: OperationMix = OperationMix {
    puts: 50,
    deletes: 50,
    scans: 0,
    scan_keys: 0,
    is_skewed: false,
    one_writer: false,
};
/// Half lookups, most of which request hot keys.
const SKEWED: OperationMix = OperationMix { puts: 25, deletes: 25, is_skewed: true, ..BURST };

/// Metrics of a burst, and of skewed keys.
const BURST_METRICS: [&str; 5] =
    ["burst_rate", "burst_background", "burst_draining", "burst_stalled", "burst_in_membuffer"];
const SKEW_METRICS: [&str; 5] =
    ["skew_rate", "skew_background", "skew_draining", "skew_stalled", "skew_in_membuffer"];

/// Measures Fig. 15.
pub(super) fn burst(sizes: &FloDbSizes, dir: &Path, results: &mut Results) -> Result<()> {
    let threads = sizes.threads_max();
    let title =
        format!("Fig. 15: a burst of writes, thousand operations a second, {threads} threads");
    by_memory(sizes, dir, (BURST, BURST_METRICS), title, results)?;
    single_burst(sizes, dir, results)
}

/// Measures Fig. 16.
pub(super) fn skew(sizes: &FloDbSizes, dir: &Path, results: &mut Results) -> Result<()> {
    let title = format!(
        "Fig. 16: 98 % of operations on 2 % of keys, which are neighbours, half lookups, thousand \
         operations a second, {} threads",
        sizes.threads_max()
    );
    by_memory(sizes, dir, (SKEWED, SKEW_METRICS), title, results)
}

/// Measures Fig. 15 with one writer, which leaves a processor to the draining thread.
fn single_burst(sizes: &FloDbSizes, dir: &Path, results: &mut Results) -> Result<()> {
    let keyed = kinds();
    let kinds = keyed.map(|KeyedMemtable { memtable, .. }| memtable);
    let mut rows = Vec::new();
    for (size, bytes) in MEMORY_KEYS.into_iter().zip(sizes.memory_bytes()) {
        let rounds = sizes.rounds(&kinds, |kind| {
            let run = fresh(sizes, dir, kind, BURST, bytes, 1)?;
            anyhow::Ok([run.operations])
        })?;
        for (KeyedMemtable { key, .. }, rounds) in keyed.iter().zip(&rounds) {
            rounds.record(results, "burst_single", &[key, size], 0);
        }
        let cells = rounds.iter().map(|rounds| format!("{:.0}", rounds.best()[0]));
        rows.push(std::iter::once(mib(bytes) + " MiB").chain(cells).collect());
    }
    let title = "Fig. 15: a burst of writes, thousand operations a second, one thread";
    results.table(title, &headers(&kinds), rows);
    Ok(())
}

/// Runs a mix on a separate tree.
fn fresh(
    sizes: &FloDbSizes,
    dir: &Path,
    kind: &NamedMemtable,
    mix: OperationMix,
    bytes: u64,
    threads: u32,
) -> Result<ThreadedRun> {
    let dir = dir.join("flodb");
    let db = open(&dir, kind.kind, bytes)?;
    if mix.is_skewed {
        load(&db, mix, sizes.keys())?;
    }
    let run = run(sizes, &db, mix, threads, 2 * sizes.duration())?;
    db.close()?;
    std::fs::remove_dir_all(&dir)?;
    Ok(run)
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
        let rounds = sizes.rounds(&kinds, |kind| {
            let run = fresh(sizes, dir, kind, mix, bytes, sizes.threads_max())?;
            anyhow::Ok([
                run.operations,
                run.background,
                run.draining,
                run.stalled,
                run.in_membuffer,
            ])
        })?;
        for (KeyedMemtable { key, .. }, rounds) in keyed.iter().zip(&rounds) {
            for (at, metric) in metrics.iter().enumerate() {
                rounds.record(results, metric, &[key, size], at);
            }
        }
        let cells = rounds.iter().map(|rounds| format!("{:.0}", rounds.best()[0]));
        rows.push(std::iter::once(mib(bytes) + " MiB").chain(cells).collect());
    }
    results.table(title, &headers(&kinds), rows);
    Ok(())
}

/// Measures the ablation of Fig. 17.
pub(super) fn ablation(sizes: &FloDbSizes, results: &mut Results) {
    for mode in BufferMode::ALL {
        let kinds = ablations(mode);
        let mut rows = Vec::new();
        // The paper's factors are those of its single writer.
        let threads = sizes.threads_from_one();
        for (number, writers) in threads.iter().enumerate() {
            let is_last = number + 1 == threads.len();
            for (size, bytes) in MEMORY_KEYS.into_iter().zip(sizes.memory_bytes()) {
                let rounds = sizes
                    .rounds(&kinds, |kind| {
                        Ok::<_, Infallible>(alone::write(sizes, kind.kind, bytes, *writers))
                    })
                    .unwrap_or_default();
                for (kind, rounds) in kinds.iter().zip(&rounds) {
                    let keys = [mode.name(), kind.name, size];
                    if is_last {
                        rounds.record(results, "alone_mops", &keys, 0);
                        rounds.record(results, "alone_in_membuffer", &keys, 1);
                    }
                    if number == 0 {
                        rounds.record(results, "single_mops", &keys, 0);
                        rounds.record(results, "single_in_membuffer", &keys, 1);
                    }
                }
                let cells = rounds.iter().map(|rounds| {
                    let [mops, share] = rounds.best();
                    format!("{mops:.2}, {:.0} %", share * 100.0)
                });
                let name = format!("{} MiB, {writers} threads", mib(bytes));
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
