//! Measures the memory of many entries for values of X and H: Fig. 3.

use terrane_lab::memtable::Load;
use terrane_policy::MemtableKind;

use super::sizes::{
    BufferMode, BufferSizes, ENTRY_BYTES, PREFIX, hash_linked_list, hash_skip_list,
};
use crate::results::Results;

const PREFIXES: [u8; 5] = [2, 4, 6, 8, 10];
const BUCKETS: [u32; 6] = [1, 10, 100, 1000, 10_000, 100_000];

/// A function that returns a hashed memtable for a mode, a prefix and a number of buckets.
type Hashed = (&'static str, fn(BufferMode, u8, u32) -> MemtableKind);

const HASHED: [Hashed; 2] =
    [("hash skip-list", hash_skip_list), ("hash linked-list", hash_linked_list)];

const PLAIN: [(&str, MemtableKind); 3] = [
    ("vector", MemtableKind::VECTOR),
    ("skip-list", MemtableKind::SKIP_LIST),
    ("B-link tree", MemtableKind::BTree),
];

pub(super) fn measure(sizes: &BufferSizes, results: &mut Results) {
    let load = Load::new(sizes.entries_footprint(), ENTRY_BYTES, sizes.seed);
    let per_entry = |kind: MemtableKind| load.memory(kind).used_bytes() as f64 / load.len() as f64;
    for mode in BufferMode::ALL {
        let plain = PLAIN.map(|(name, kind)| (name, per_entry(kind)));
        for (name, bytes) in plain {
            results.record("footprint", &[mode.name(), name], bytes);
        }
        let by_prefix = HASHED.map(|(name, kind)| {
            (name, PREFIXES.map(|prefix| per_entry(kind(mode, prefix, sizes.buckets()))))
        });
        let by_buckets = HASHED.map(|(name, kind)| {
            (name, BUCKETS.map(|buckets| per_entry(kind(mode, PREFIX, buckets))))
        });
        let mode = mode.name();
        let title = format!("Fig. 3a: bytes per entry by X, H={}, {mode}", sizes.buckets());
        let keys = PREFIXES.map(|prefix| format!("X={prefix}"));
        record("footprint_by_prefix", mode, &keys, &by_prefix, results);
        table(title, &keys, &plain, &by_prefix, results);
        let title = format!("Fig. 3b: bytes per entry by H, X={PREFIX}, {mode}");
        let keys = BUCKETS.map(|buckets| format!("H={buckets}"));
        record("footprint_by_buckets", mode, &keys, &by_buckets, results);
        table(title, &keys, &plain, &by_buckets, results);
    }
}

fn record<const N: usize>(
    metric: &str,
    mode: &str,
    keys: &[String; N],
    hashed: &[(&str, [f64; N])],
    results: &mut Results,
) {
    for (name, values) in hashed {
        for (key, bytes) in keys.iter().zip(values) {
            results.record(metric, &[mode, name, key], *bytes);
        }
    }
}

fn table<const N: usize>(
    title: String,
    keys: &[String; N],
    plain: &[(&str, f64)],
    hashed: &[(&str, [f64; N])],
    results: &mut Results,
) {
    let constant = plain.iter().map(|(name, bytes)| (*name, [*bytes; N]));
    let rows = constant.chain(hashed.iter().copied()).map(|(name, values)| {
        let cells = values.map(|bytes| format!("{bytes:.1}"));
        std::iter::once(name.to_owned()).chain(cells).collect()
    });
    let headers: Vec<&str> =
        std::iter::once("memtable").chain(keys.iter().map(String::as_str)).collect();
    results.table(title, &headers, rows.collect());
}
