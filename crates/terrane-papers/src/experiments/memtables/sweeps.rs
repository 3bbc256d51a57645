//! The variations of the authors' later program: threads, sizes of the buffer and of entries, common
//! prefixes of keys, and selectivities of ranges.

use terrane_lab::memtable::{Load, Queries, mean};
use terrane_lab::output::human::nanos;
use terrane_policy::{MemtableKind, OrderedView, VectorQuery};

use super::sizes::{
    BufferMode, BufferSizes, ENTRY_BYTES, NamedMemtable, PREFIX, hash_skip_list, hash_vector, plain,
};
use crate::results::Results;

/// A buffer of 128 MB with entries of 128 bytes.
const LARGE_ENTRIES: f64 = 1_000_000.0;
const LARGE_ENTRY_BYTES: usize = 128;

const COMMON: [usize; 4] = [0, 4, 8, 32];
const SIZES: [usize; 4] = [32, 128, 1024, 4096];
const SELECTIVITIES: [f64; 7] = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7];

/// Long lists become skip-lists here, because keys with a common prefix share one list.
fn hash_linked_list(buckets: u32) -> MemtableKind {
    let view = OrderedView::Kept;
    MemtableKind::HashLinkedList { prefix: PREFIX, buckets, threshold: 256, view }
}

/// Returns all our kinds except the preallocated vector.
fn kinds(buckets: u32) -> Vec<NamedMemtable> {
    let vector = |query| MemtableKind::Vector { prealloc_bytes: 0, query };
    vec![
        NamedMemtable { name: "vector", kind: vector(VectorQuery::Resort) },
        NamedMemtable { name: "vector that scans", kind: vector(VectorQuery::Scan) },
        NamedMemtable { name: "hash vector", kind: hash_vector(buckets) },
        NamedMemtable { name: "B-link tree", kind: MemtableKind::BTree },
        NamedMemtable { name: "skip-list", kind: MemtableKind::SKIP_LIST },
        NamedMemtable {
            name: "hash skip-list",
            kind: hash_skip_list(BufferMode::Ours, PREFIX, buckets),
        },
        NamedMemtable { name: "hash linked-list", kind: hash_linked_list(buckets) },
    ]
}

pub(super) fn measure(sizes: &BufferSizes, threads: &[u32], results: &mut Results) {
    by_threads(sizes, threads, results);
    large(sizes, results);
    by_common_prefix(sizes, results);
    by_entry_size(sizes, results);
    by_selectivity(sizes, results);
}

/// Adds a table with a row for each kind and a column for each value.
fn table(
    results: &mut Results,
    title: String,
    columns: &[String],
    kinds: &[NamedMemtable],
    cells: &[Vec<String>],
) {
    let headers: Vec<&str> =
        std::iter::once("memtable").chain(columns.iter().map(String::as_str)).collect();
    let rows = kinds.iter().enumerate().map(|(row, kind)| {
        let cells = cells.iter().map(|column| column[row].clone());
        std::iter::once(kind.name.to_owned()).chain(cells).collect()
    });
    results.table(title, &headers, rows.collect());
}

fn by_threads(sizes: &BufferSizes, threads: &[u32], results: &mut Results) {
    let kinds = kinds(sizes.buckets());
    let entries = sizes.load.len() as f64;
    let cells: Vec<Vec<String>> = threads
        .iter()
        .map(|&threads| {
            let mut best = vec![f64::INFINITY; kinds.len()];
            for _ in 0..sizes.rounds {
                for (best, kind) in best.iter_mut().zip(&kinds) {
                    *best = best.min(sizes.load.parallel(kind.kind, threads));
                }
            }
            best.into_iter().map(|nanos| format!("{:.2}", entries / nanos * 1e3)).collect()
        })
        .collect();
    let columns: Vec<String> =
        threads.iter().map(|threads| format!("threads: {threads}")).collect();
    let title = "Million inserts a second by concurrent threads".to_owned();
    table(results, title, &columns, &kinds, &cells);
}

fn large(sizes: &BufferSizes, results: &mut Results) {
    let count = (LARGE_ENTRIES * sizes.scale) as usize;
    let load = Load::new(count, LARGE_ENTRY_BYTES, sizes.seed);
    let kinds = kinds(u32::try_from(count).unwrap_or(u32::MAX).max(1));
    let queries = |points, ranges| Queries { points, ranges, selectivity: 1e-5, after: 0.99 };
    let inserts = load.best_totals(&plain(&kinds), &Queries::default(), 1);
    let reads = load.best_series(&plain(&kinds), &queries(200, 0), 1);
    let ranges = load.best_series(&plain(&kinds), &queries(0, 100), 1);
    let cells = [
        inserts.iter().map(|total| nanos(total / load.len() as f64)).collect(),
        reads.iter().map(|series| nanos(mean(&series.points))).collect(),
        ranges.iter().map(|series| nanos(mean(&series.ranges))).collect(),
        kinds
            .iter()
            .map(|kind| format!("{:.0}", load.memory(kind.kind).used_bytes() as f64 / 1e6))
            .collect(),
    ];
    let columns = ["insert", "lookup", "range of ten", "MB"].map(str::to_owned);
    let title = format!(
        "A buffer of {:.0} MB: {count} entries of {LARGE_ENTRY_BYTES} bytes",
        count as f64 * LARGE_ENTRY_BYTES as f64 / 1e6
    );
    table(results, title, &columns, &kinds, &cells);
}

fn by_common_prefix(sizes: &BufferSizes, results: &mut Results) {
    let kinds = kinds(sizes.buckets());
    let queries = Queries { points: sizes.lookups(), after: 0.75, ..Queries::default() };
    let cells: Vec<Vec<String>> = COMMON
        .iter()
        .map(|&len| {
            let load = sizes.load.map_keys(|key| [&vec![b'k'; len][..], key].concat());
            let inserts = load.best_totals(&plain(&kinds), &Queries::default(), 1);
            let reads = load.best_series(&plain(&kinds), &queries, 1);
            let cells = inserts.iter().zip(&reads).map(|(total, series)| {
                let each = total / load.len() as f64;
                format!("{} / {}", nanos(each), nanos(mean(&series.points)))
            });
            cells.collect()
        })
        .collect();
    let columns = COMMON.map(|len| format!("{len} bytes"));
    let title =
        format!("Insert / lookup by the common prefix of all keys (hashed ones with X={PREFIX})");
    table(results, title, &columns, &kinds, &cells);
}

fn by_entry_size(sizes: &BufferSizes, results: &mut Results) {
    let kinds = kinds(sizes.buckets());
    // The same number of bytes for each size, unless that takes too many entries.
    let bytes = sizes.load.len() * ENTRY_BYTES;
    let cells: Vec<Vec<String>> = SIZES
        .iter()
        .map(|&size| {
            let count = (bytes / size).clamp(10, sizes.load.len());
            let load = Load::new(count, size, sizes.seed);
            let inserts = load.best_totals(&plain(&kinds), &Queries::default(), sizes.rounds);
            let cells = inserts.iter().zip(&kinds).map(|(total, kind)| {
                let used = load.memory(kind.kind).used_bytes() as f64 / load.len() as f64;
                format!(
                    "{} / {:.0} %",
                    nanos(total / load.len() as f64),
                    used / size as f64 * 100.0
                )
            });
            cells.collect()
        })
        .collect();
    let columns = SIZES.map(|size| format!("{size} bytes"));
    let title = "Insert / memory for 100 % of data, by bytes of an entry".to_owned();
    table(results, title, &columns, &kinds, &cells);
}

fn by_selectivity(sizes: &BufferSizes, results: &mut Results) {
    let kinds = kinds(sizes.buckets());
    let cells: Vec<Vec<String>> = SELECTIVITIES
        .iter()
        .map(|&selectivity| {
            let queries = Queries { ranges: 30, selectivity, after: 0.75, points: 0 };
            let series = sizes.load.best_series(&plain(&kinds), &queries, 1);
            series.iter().map(|series| nanos(mean(&series.ranges))).collect()
        })
        .collect();
    let columns = SELECTIVITIES.map(|selectivity| format!("{selectivity:.0e}"));
    let title = "Ranges between inserts, by selectivity".to_owned();
    table(results, title, &columns, &kinds, &cells);
}
