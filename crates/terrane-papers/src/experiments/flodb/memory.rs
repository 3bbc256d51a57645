//! Measures how results depend on the size of memory: a burst of writes (Fig. 15), skewed keys
//! (Fig. 16), the ablation (Fig. 17).

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use terrane::IoBudget;

use super::alone;
use super::database::{OperationMix, ThreadedRun, load, open, run};
use super::sizes::{
    FloDbSizes, KeyedMemtable, MEMORY_KEYS, NamedMemtable, ablations, kinds, mib, record_next,
};
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

/// The bandwidth of flushes and merges where the paper's runs are bound by their disk, in bytes a second.
/// Our flushes drop the versions that newer ones hide, so that an ordinary disk does not bound skewed writes.
const DISK_BOUND: u64 = 2_000_000;

/// A workload on trees with memtables of each size, and its metrics.
#[derive(Debug, Clone, Copy)]
struct Workload {
    mix: OperationMix,
    metrics: [&'static str; 5],
    /// The metric of the next best system.
    next: &'static str,
    budget: IoBudget,
    time: Duration,
}

/// Measures Fig. 15.
pub(super) fn burst(sizes: &FloDbSizes, dir: &Path, results: &mut Results) -> Result<()> {
    let workload = Workload {
        mix: BURST,
        metrics: [
            "burst_rate",
            "burst_background",
            "burst_draining",
            "burst_stalled",
            "burst_in_membuffer",
        ],
        next: "burst_next",
        budget: IoBudget::Unlimited,
        time: sizes.burst_duration(),
    };
    let threads = sizes.threads_max();
    let title =
        format!("Fig. 15: a burst of writes, thousand operations a second, {threads} threads");
    by_memory(sizes, dir, &workload, title, results)?;
    single_burst(sizes, dir, &workload, results)
}

/// Measures Fig. 16: with the disk of this machine, and with one that bounds the writes.
pub(super) fn skew(sizes: &FloDbSizes, dir: &Path, results: &mut Results) -> Result<()> {
    let unbound = Workload {
        mix: SKEWED,
        metrics: [
            "skew_rate",
            "skew_background",
            "skew_draining",
            "skew_stalled",
            "skew_in_membuffer",
        ],
        next: "skew_next",
        budget: IoBudget::Unlimited,
        time: 2 * sizes.duration(),
    };
    let bound = Workload {
        metrics: [
            "bound_rate",
            "bound_background",
            "bound_draining",
            "bound_stalled",
            "bound_in_membuffer",
        ],
        next: "bound_next",
        budget: IoBudget::Total(DISK_BOUND),
        // Several memtables fill meanwhile, although each waits for the one before.
        time: sizes.steady_duration() / 2,
        ..unbound
    };
    let of_keys = "98 % of operations on 2 % of keys, which are neighbours, half lookups";
    let threads = sizes.threads_max();
    for (workload, disk) in [(&unbound, ""), (&bound, ", flushes and merges at 2 MB/s")] {
        let title =
            format!("Fig. 16: {of_keys}{disk}, thousand operations a second, {threads} threads");
        by_memory(sizes, dir, workload, title, results)?;
    }
    Ok(())
}

/// Measures Fig. 15 with one writer, which leaves a processor to the draining thread.
fn single_burst(
    sizes: &FloDbSizes,
    dir: &Path,
    workload: &Workload,
    results: &mut Results,
) -> Result<()> {
    let keyed = kinds();
    let kinds = keyed.map(|KeyedMemtable { memtable, .. }| memtable);
    let mut rows = Vec::new();
    for (size, bytes) in MEMORY_KEYS.into_iter().zip(sizes.memory_bytes()) {
        let rounds = sizes.rounds(&kinds, |kind| {
            let run = fresh(sizes, dir, kind, workload, (bytes, 1))?;
            anyhow::Ok([run.operations])
        })?;
        let named: Vec<_> = keyed.iter().map(|keyed| keyed.key).zip(&rounds).collect();
        record_next(results, "burst_single_next", &named, (size, 0));
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

/// Runs a workload on a separate tree.
fn fresh(
    sizes: &FloDbSizes,
    dir: &Path,
    kind: &NamedMemtable,
    workload: &Workload,
    (bytes, threads): (u64, u32),
) -> Result<ThreadedRun> {
    let dir = dir.join("flodb");
    let db = open(&dir, kind.kind, bytes)?;
    if workload.mix.is_skewed {
        load(&db, workload.mix, sizes.keys())?;
    }
    db.set_io_budget(workload.budget)?;
    let run = run(sizes, &db, workload.mix, threads, workload.time)?;
    db.set_io_budget(IoBudget::Unlimited)?;
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
    workload: &Workload,
    title: String,
    results: &mut Results,
) -> Result<()> {
    let keyed = kinds();
    let kinds = keyed.map(|KeyedMemtable { memtable, .. }| memtable);
    let mut rows = Vec::new();
    for (size, bytes) in MEMORY_KEYS.into_iter().zip(sizes.memory_bytes()) {
        let rounds = sizes.rounds(&kinds, |kind| {
            let run = fresh(sizes, dir, kind, workload, (bytes, sizes.threads_max()))?;
            anyhow::Ok([
                run.operations,
                run.background,
                run.draining,
                run.stalled,
                run.in_membuffer,
            ])
        })?;
        let named: Vec<_> = keyed.iter().map(|keyed| keyed.key).zip(&rounds).collect();
        record_next(results, workload.next, &named, (size, 0));
        for (KeyedMemtable { key, .. }, rounds) in keyed.iter().zip(&rounds) {
            for (at, metric) in workload.metrics.iter().enumerate() {
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
