//! Scans among writes: Fig. 13, 14, and how often the paper's scans restart.

use std::path::Path;

use anyhow::Result;
use terrane_policy::MemtableKind;
use terrane_policy::flodb::ScanMode;

use super::database::{OperationMix, SCAN_KEYS, load, open, run};
use super::sizes::{
    FloDbSizes, LIST, MEMORY_KEYS, NamedMemtable, TREE, mib, record_next, scanning,
};
use crate::experiments::memtables::BufferMode;
use crate::results::Results;

/// The number of scans in 100 operations; the first number is the paper's usual mix.
const SHARES: [u64; 3] = [5, 20, 50];

/// Metrics of each share; the table shows the first four.
const METRICS: [&str; 6] = [
    "scan_keys",
    "scan_operations",
    "scan_restarts",
    "scan_fallbacks",
    "scan_shared",
    "scan_in_membuffer",
];
const SHOWN: usize = 4;

/// Widths of scans in keys (§5.2).
const WIDTHS: [u64; 4] = [10, 100, 1000, 10_000];

/// The metrics of all shares.
type AllShares = [f64; SHARES.len() * METRICS.len()];

pub(super) fn measure(sizes: &FloDbSizes, dir: &Path, results: &mut Results) -> Result<()> {
    let (published, ours) = (BufferMode::Published, BufferMode::Ours);
    let kinds = [
        (LIST, "plain", LIST, MemtableKind::SKIP_LIST),
        (TREE, "plain", TREE, MemtableKind::BTree),
        (
            published.name(),
            "restart",
            "restarting, published",
            scanning(published, ScanMode::Restart),
        ),
        (ours.name(), "restart", "restarting, ours", scanning(ours, ScanMode::Restart)),
        (
            published.name(),
            "version",
            "versioned, published",
            scanning(published, ScanMode::Versioned),
        ),
        (ours.name(), "version", "versioned, ours", scanning(ours, ScanMode::Versioned)),
    ];
    let named = kinds.map(|(_, _, name, kind)| NamedMemtable { name, kind });
    let threads = sizes.threads_max();
    let rounds = sizes.rounds(&named, |kind| all(sizes, dir, kind.kind, threads))?;
    let named: Vec<_> = kinds.iter().map(|(key, ..)| *key).zip(&rounds).collect();
    for (number, share) in SHARES.iter().enumerate() {
        record_next(results, "scan_next", &named, (&share.to_string(), number * METRICS.len()));
    }
    let mut rows = Vec::new();
    for ((key, scan, name, _), all) in kinds.iter().zip(&rounds) {
        let best = all.best();
        for ((number, share), values) in SHARES.iter().enumerate().zip(best.chunks(METRICS.len())) {
            for (at, metric) in METRICS.iter().enumerate() {
                let keys = [*key, scan, &share.to_string()];
                all.record(results, metric, &keys, number * METRICS.len() + at);
            }
            let cells = values[..SHOWN].iter().map(|value| format!("{value:.0}"));
            let name = format!("{name}, {share} % scans");
            rows.push(std::iter::once(name).chain(cells).collect());
        }
    }
    results.table(
        format!("Fig. 13, 14: scans of 100 keys among writes, {threads} threads"),
        &[
            "",
            "thousand keys a second",
            "thousand operations a second",
            "restarts of 1000 scans",
            "fallbacks of 1000 scans",
        ],
        rows,
    );
    Ok(())
}

fn all(sizes: &FloDbSizes, dir: &Path, kind: MemtableKind, threads: u32) -> Result<AllShares> {
    let dir = dir.join("flodb");
    let db = open(&dir, kind, sizes.buffer_bytes())?;
    load(&db, OperationMix::default(), sizes.keys())?;
    let mut all = [0.0; SHARES.len() * METRICS.len()];
    for (values, scans) in all.chunks_mut(METRICS.len()).zip(SHARES) {
        let (puts, deletes) = ((100 - scans) / 2, (100 - scans) - (100 - scans) / 2);
        let scan_keys = SCAN_KEYS;
        let mix = OperationMix { puts, deletes, scans, scan_keys, ..OperationMix::default() };
        let run = run(sizes, &db, mix, threads, sizes.duration())?;
        values.copy_from_slice(&[
            run.keys,
            run.operations,
            run.restarts,
            run.fallbacks,
            run.shared,
            run.in_membuffer,
        ]);
    }
    db.close()?;
    std::fs::remove_dir_all(&dir)?;
    Ok(all)
}

/// Measures how often the paper's scans restart and fall back, by width, memory and threads (§5.2).
pub(super) fn fallbacks(sizes: &FloDbSizes, dir: &Path, results: &mut Results) -> Result<()> {
    let dir = dir.join("flodb");
    let kind = scanning(BufferMode::Published, ScanMode::Restart);
    let mut rows = Vec::new();
    for (size, bytes) in MEMORY_KEYS.into_iter().zip(sizes.memory_bytes()) {
        let db = open(&dir, kind, bytes)?;
        load(&db, OperationMix::default(), sizes.keys())?;
        for scan_keys in WIDTHS {
            for threads in sizes.threads_from_one() {
                let writes = OperationMix { puts: 48, deletes: 47, ..OperationMix::default() };
                let mix = OperationMix { scans: SHARES[0], scan_keys, ..writes };
                let run = run(sizes, &db, mix, threads, sizes.duration() / 2)?;
                let keys = [&*scan_keys.to_string(), size, &threads.to_string()];
                results.record("fallback_restarts", &keys, run.restarts);
                results.record("fallbacks", &keys, run.fallbacks);
                rows.push(vec![
                    format!("{scan_keys} keys, {} MiB, {threads} threads", mib(bytes)),
                    format!("{:.0}", run.operations),
                    format!("{:.1}", run.restarts),
                    format!("{:.1}", run.fallbacks),
                ]);
            }
        }
        db.close()?;
        std::fs::remove_dir_all(&dir)?;
    }
    results.table(
        "§5.2: restarts and fallbacks of the paper's scans, by width, memory and threads",
        &["", "thousand operations a second", "restarts of 1000 scans", "fallbacks of 1000 scans"],
        rows,
    );
    Ok(())
}
