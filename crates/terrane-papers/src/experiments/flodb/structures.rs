//! The cost of more memory in one level, and a hash table against a skip-list: Fig. 3, 4, 5, 7.

use std::convert::Infallible;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use terrane::memtable::{self, EntryKind, MAX_SEQ};
use terrane_lab::memtable::percentile;
use terrane_lab::output::human::nanos;
use terrane_policy::MemtableKind;

use super::alone;
use super::database::{OperationMix, load, open, run};
use super::sizes::{
    FloDbSizes, LIST, MEMORY_KEYS, NamedMemtable, VALUE_BYTES, hash_table, mib, spread,
};
use crate::experiments::memtables::{BufferMode, hash_linked_list};
use crate::results::Results;

/// The number of timed inserts and lookups in a nearly full memtable.
const TIMED: u64 = 2000;

pub(super) fn measure(sizes: &FloDbSizes, results: &mut Results) {
    by_memory(sizes, results);
    by_entries(sizes, results);
}

/// The times of operations, in nanoseconds.
struct OperationTimes {
    insert: f64,
    lookup: f64,
    /// The time per entry of a walk over all entries, as in a flush.
    walk: f64,
}

fn latency(sizes: &FloDbSizes, kind: MemtableKind, bytes: u64) -> OperationTimes {
    const VALUE: [u8; VALUE_BYTES] = [7; VALUE_BYTES];
    let memtable = memtable::new(kind, bytes, &sizes.pool);
    let entries = bytes / 300;
    let insert = |number: u64| {
        memtable.insert(&spread(number), number + 1, EntryKind::Value, &VALUE);
    };
    (0..entries).for_each(insert);
    let timed = |operation: &dyn Fn(u64)| {
        let nanos: Vec<u64> = (0..TIMED)
            .map(|number| {
                let start = Instant::now();
                operation(number);
                start.elapsed().as_nanos() as u64
            })
            .collect();
        percentile(&nanos, 0.5)
    };
    let lookup = timed(&|number| {
        let key = spread(number.wrapping_mul(7919) % entries);
        black_box(memtable.get(&key, MAX_SEQ));
    });
    let insert = timed(&|number| insert(entries + number));
    let start = Instant::now();
    let mut cursor = memtable.cursor();
    cursor.seek_first();
    while let Some(entry) = cursor.entry() {
        black_box(entry.value);
        cursor.next();
    }
    let walk = start.elapsed().as_nanos() as f64 / (entries + TIMED) as f64;
    OperationTimes { insert, lookup, walk }
}

/// Measures Fig. 3 and 4.
fn by_memory(sizes: &FloDbSizes, results: &mut Results) {
    for mode in BufferMode::ALL {
        let mut rows = Vec::new();
        for (size, bytes) in MEMORY_KEYS.into_iter().zip(sizes.memory_bytes()) {
            let buckets = u32::try_from(bytes / 300 / 8).unwrap_or(u32::MAX).max(1);
            let ordered = match mode {
                BufferMode::Published => (LIST, MemtableKind::SKIP_LIST),
                BufferMode::Ours => ("B-link tree", MemtableKind::BTree),
            };
            // A prefix of 8 bytes distinguishes all keys.
            let hashed = ("hash table", hash_linked_list(mode, 8, buckets));
            let kinds = [ordered, hashed].map(|(name, kind)| NamedMemtable { name, kind });
            let rounds = sizes.rounds(&kinds, |kind| {
                let OperationTimes { insert, lookup, walk } = latency(sizes, kind.kind, bytes);
                Ok::<_, Infallible>([-insert, -lookup, -walk])
            });
            let rounds = rounds.unwrap_or_default();
            for ((key, kind), rounds) in ["ordered", "hash table"].iter().zip(&kinds).zip(&rounds) {
                let times = |at| rounds.of(at).into_iter().map(|time| -time).collect::<Vec<_>>();
                let keys = [mode.name(), size, key];
                results.record_least("structure_insert", &keys, &times(0));
                results.record_least("structure_walk", &keys, &times(2));
                let [insert, lookup, walk] = rounds.best().map(|time| -time);
                let name = format!("{}, {} MiB", kind.name, mib(bytes));
                rows.push(vec![name, nanos(insert), nanos(lookup), nanos(walk)]);
            }
        }
        results.table(
            format!(
                "Fig. 3, 4: median latency of a memtable alone by the size of memory, {}",
                mode.name()
            ),
            &["memtable", "insert", "lookup", "walk over all, an entry"],
            rows,
        );
    }
}

/// The entries of Fig. 5 and 7 at scale 1; a billion, the paper's largest number, would take more
/// than a hundred gigabytes.
const ENTRIES: [(&str, u64); 3] = [("32K", 32 << 10), ("1M", 1_000_000), ("33M", 33_000_000)];

/// A structure of this many entries takes less than a gigabyte.
const ENTRIES_MAX: u64 = 5_000_000;

/// Measures Fig. 5 and 7.
fn by_entries(sizes: &FloDbSizes, results: &mut Results) {
    let kinds = [
        NamedMemtable { name: "hash table", kind: hash_table() },
        NamedMemtable { name: LIST, kind: MemtableKind::SKIP_LIST },
        NamedMemtable { name: "B-link tree", kind: MemtableKind::BTree },
    ];
    let threads = sizes.threads_from_one();
    let mut rows = Vec::new();
    for (key, entries) in ENTRIES {
        let entries = ((entries as f64 * sizes.share()) as u64).clamp(1000, ENTRIES_MAX);
        results.record("structure_entries", &[key], entries as f64);
        // By kind: the rounds, each by the number of threads.
        let mut all = kinds.map(|_| Vec::new());
        for _ in 0..sizes.rounds.max(1) {
            for (rounds, kind) in all.iter_mut().zip(&kinds) {
                rounds.push(alone::mix(sizes, kind.kind, entries, &threads));
            }
        }
        for (at, threads) in threads.iter().enumerate() {
            let mut row = vec![format!("{entries} entries, {threads} threads")];
            for (kind, rounds) in kinds.iter().zip(&all) {
                let rounds: Vec<f64> = rounds.iter().map(|rates| rates[at]).collect();
                let most = rounds.iter().copied().fold(f64::NAN, f64::max);
                let keys = [key, &threads.to_string(), kind.name];
                results.record_rounds("structure_mops", &keys, most, &rounds);
                if *threads == sizes.threads_max() {
                    results.record_rounds("structure_most", &[key, kind.name], most, &rounds);
                }
                row.push(format!("{most:.2}"));
            }
            rows.push(row);
        }
    }
    results.table(
        "Fig. 5, 7: half updates, half lookups, million operations a second",
        &["", "hash table", LIST, "B-link tree"],
        rows,
    );
}

/// The readers next to the writer of Fig. 3 and 4.
const READERS: u32 = 8;

/// Measures Fig. 3 and 4 end to end: latencies on a database that a writer fills while others read.
pub(super) fn read_while_writing(
    sizes: &FloDbSizes,
    dir: &Path,
    results: &mut Results,
) -> Result<()> {
    const METRICS: [&str; 4] =
        ["reader_write_p50", "reader_write_p99", "reader_get_p50", "reader_get_p99"];
    let dir = dir.join("flodb");
    let mix = OperationMix { puts: 100, one_writer: true, ..OperationMix::default() };
    let mut rows = Vec::new();
    for (size, bytes) in MEMORY_KEYS.into_iter().zip(sizes.memory_bytes()) {
        let buckets = u32::try_from(bytes / 300 / 8).unwrap_or(u32::MAX).max(1);
        let hashed = hash_linked_list(BufferMode::Published, 8, buckets);
        let kinds = [(LIST, MemtableKind::SKIP_LIST), ("hash table", hashed)];
        let kinds = kinds.map(|(name, kind)| NamedMemtable { name, kind });
        let rounds = sizes.rounds(&kinds, |kind| {
            let db = open(&dir, kind.kind, bytes)?;
            load(&db, mix, sizes.keys())?;
            let run = run(sizes, &db, mix, READERS + 1, 4 * sizes.duration())?;
            db.close()?;
            std::fs::remove_dir_all(&dir)?;
            anyhow::Ok([run.write_p50, run.write_p99, run.get_p50, run.get_p99, run.stalled])
        })?;
        for (kind, rounds) in kinds.iter().zip(&rounds) {
            for (at, metric) in METRICS.iter().enumerate() {
                results.record_least(metric, &[kind.name, size], &rounds.of(at));
            }
            let median = |at| rounds.of(at).into_iter().fold(f64::INFINITY, f64::min);
            let stalled = rounds.of(METRICS.len()).into_iter().fold(0.0, f64::max);
            // The share is of the time of all threads, although only the writer stalls.
            let stalled = stalled * f64::from(READERS + 1);
            results.record("reader_stalled", &[kind.name, size], stalled);
            let cells = (0..METRICS.len()).map(|at| format!("{:.1}", median(at)));
            let name = format!("{}, {} MiB", kind.name, mib(bytes));
            rows.push(
                std::iter::once(name).chain(cells).chain([format!("{stalled:.0} %")]).collect(),
            );
        }
    }
    results.table(
        "Fig. 3, 4: a writer and eight readers on a database, latencies in microseconds",
        &["memtable", "write P50", "P99", "lookup P50", "P99", "writer stalled"],
        rows,
    );
    Ok(())
}
