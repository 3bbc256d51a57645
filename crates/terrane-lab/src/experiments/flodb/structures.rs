//! The cost of more memory in one level, and a hash table against a skip-list: Fig. 3, 4, 5, 7.

use std::convert::Infallible;
use std::hint::black_box;
use std::time::Instant;

use terrane::memtable::{self, EntryKind, MAX_SEQ};
use terrane_policy::MemtableKind;

use super::alone;
use super::sizes::{
    FloDbSizes, KindRounds, LIST, MEMORY_KEYS, NamedMemtable, VALUE_BYTES, hash_table, mib, spread,
};
use crate::experiments::memtables::{BufferMode, hash_linked_list};
use crate::human::nanos;
use crate::memtable::percentile;
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
            format!("Fig. 3, 4: median latency by the size of memory, {}", mode.name()),
            &["memtable", "insert", "lookup", "walk over all, an entry"],
            rows,
        );
    }
}

/// Measures Fig. 5 and 7.
fn by_entries(sizes: &FloDbSizes, results: &mut Results) {
    let kinds = [
        NamedMemtable { name: "hash table", kind: hash_table() },
        NamedMemtable { name: LIST, kind: MemtableKind::SKIP_LIST },
        NamedMemtable { name: "B-link tree", kind: MemtableKind::BTree },
    ];
    let entries = [32_000, 1_000_000].map(|entries| sizes.scaled(entries));
    results.record("few_entries", &[], entries[0] as f64);
    let mut rows = Vec::new();
    let mut first: Option<Vec<KindRounds<1>>> = None;
    let mut last = Vec::new();
    for entries in entries {
        for threads in &sizes.threads {
            let rounds = sizes.rounds(&kinds, |kind| {
                Ok::<_, Infallible>([alone::mix(sizes, kind.kind, entries, *threads)])
            });
            last = rounds.unwrap_or_default();
            first.get_or_insert_with(|| last.clone());
            let cells = last.iter().map(|rounds| format!("{:.2}", rounds.best()[0]));
            let name = format!("{entries} entries, {threads} threads");
            rows.push(std::iter::once(name).chain(cells).collect());
        }
    }
    for (key, rates) in [("first", first.unwrap_or_default()), ("last", last)] {
        for (kind, rounds) in kinds.iter().zip(rates) {
            rounds.record(results, "structure_mops", &[key, kind.name], 0);
        }
    }
    results.table(
        "Fig. 5, 7: half updates, half lookups, million operations a second",
        &["", "hash table", LIST, "B-link tree"],
        rows,
    );
}
