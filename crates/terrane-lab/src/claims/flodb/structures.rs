//! What memory costs one level, and a hash table against a skip-list: Fig. 3, 4, 5, 7.

use std::convert::Infallible;
use std::hint::black_box;
use std::time::Instant;

use terrane::memtable::{self, EntryKind, MAX_SEQ};
use terrane_policy::MemtableKind;

use super::setting::{Kind, LIST, Setting, VALUE_BYTES, hash_table, mib, of, spread};
use super::{Report, alone};
use crate::claims::report::{Claim, nanos, times};
use crate::claims::setting::{Mode, hash_linked_list};
use crate::memtable::percentile;

/// Of a memtable that is nearly full, so many inserts and lookups are timed.
const TIMED: u64 = 2000;

pub(super) fn measure(setting: &Setting, report: &mut Report) {
    by_memory(setting, report);
    by_entries(setting, report);
}

/// Nanoseconds.
struct Latency {
    insert: f64,
    lookup: f64,
    /// An entry of a walk over all, as a flush does.
    walk: f64,
}

fn latency(setting: &Setting, kind: MemtableKind, bytes: u64) -> Latency {
    const VALUE: [u8; VALUE_BYTES] = [7; VALUE_BYTES];
    let memtable = memtable::new(kind, bytes, &setting.pool);
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
    Latency { insert, lookup, walk }
}

/// Fig. 3 and 4.
fn by_memory(setting: &Setting, report: &mut Report) {
    for mode in Mode::ALL {
        let mut rows = Vec::new();
        let mut all = Vec::new();
        for bytes in setting.memory_bytes() {
            let buckets = u32::try_from(bytes / 300 / 8).unwrap_or(u32::MAX).max(1);
            let other = match mode {
                Mode::Published => (LIST, MemtableKind::SKIP_LIST),
                Mode::Ours => ("B-link tree", MemtableKind::BTree),
            };
            // The first bytes tell all keys apart.
            let hashed = ("hash table", hash_linked_list(mode, 8, buckets));
            let kinds = [other, hashed].map(|(name, kind)| Kind { name, kind });
            let best = setting.best(&kinds, |kind| {
                let Latency { insert, lookup, walk } = latency(setting, kind.kind, bytes);
                Ok::<_, Infallible>([-insert, -lookup, -walk])
            });
            let best = best.unwrap_or_default();
            let figures: Vec<[f64; 3]> =
                best.iter().map(|figures| figures.map(|figure| -figure)).collect();
            for (kind, [insert, lookup, walk]) in kinds.iter().zip(&figures) {
                rows.push(vec![
                    format!("{}, {} MiB", kind.name, mib(bytes)),
                    nanos(*insert),
                    nanos(*lookup),
                    nanos(*walk),
                ]);
            }
            all.push(figures);
        }
        report.table(
            format!("Fig. 3, 4: median latency by the size of memory, {}", mode.name()),
            &["memtable", "insert", "lookup", "walk over all, an entry"],
            rows,
        );
        let [smallest, .., largest] = &all[..] else { continue };
        let growth = largest[0][0] / smallest[0][0];
        report.claim(Claim::new(
            "Fig. 3",
            "writing to one ordered level takes the longer the larger memory is",
            mode,
            (format!("{} from the smallest to the largest", times(growth)), growth > 1.1),
            "a search visits few nodes",
        ));
        let flush = largest[1][2] / largest[0][2];
        report.claim(Claim::new(
            "Fig. 4",
            "a hash table inserts faster, but takes ten times as long to be flushed in order",
            mode,
            (
                format!("inserts {}, walk {}", times(largest[0][0] / largest[1][0]), times(flush)),
                flush >= 10.0,
            ),
            format!(
                "an entry takes {} to be sorted and walked over, and {} where it is in order",
                nanos(largest[1][2]),
                nanos(largest[0][2])
            ),
        ));
    }
}

/// Fig. 5 and 7.
fn by_entries(setting: &Setting, report: &mut Report) {
    let kinds = [
        Kind { name: "hash table", kind: hash_table() },
        Kind { name: LIST, kind: MemtableKind::SKIP_LIST },
        Kind { name: "B-link tree", kind: MemtableKind::BTree },
    ];
    let sizes = [32_000, 1_000_000].map(|entries| setting.scaled(entries));
    let mut rows = Vec::new();
    let mut last = Vec::new();
    let mut first: Option<Vec<[f64; 1]>> = None;
    for entries in sizes {
        for threads in &setting.sizes.threads {
            let best = setting.best(&kinds, |kind| {
                Ok::<_, Infallible>([alone::mix(setting, kind.kind, entries, *threads)])
            });
            last = best.unwrap_or_default();
            first.get_or_insert_with(|| last.clone());
            rows.push(
                std::iter::once(format!("{entries} entries, {threads} threads"))
                    .chain(last.iter().map(|[mops]| format!("{mops:.2}")))
                    .collect(),
            );
        }
    }
    report.table(
        "Fig. 5, 7: half updates, half lookups, million operations a second",
        &["", "hash table", LIST, "B-link tree"],
        rows,
    );
    let ratio = of(&kinds, &last, "hash table")[0] / of(&kinds, &last, LIST)[0];
    let first = first.unwrap_or_default();
    let near = |name| of(&kinds, &first, "hash table")[0] / of(&kinds, &first, name)[0];
    report.claim(Claim::new(
        "Fig. 5, 7",
        "a hash table is one to two orders of magnitude faster than a skip-list",
        Mode::Published,
        (times(ratio), ratio >= 10.0),
        format!(
            "ours takes any keys, behind pointers, so that an operation misses the cache; where {} \
             entries leave it little to miss, it is {}",
            sizes[0],
            times(near(LIST))
        ),
    ));
    let tree = of(&kinds, &last, "hash table")[0] / of(&kinds, &last, "B-link tree")[0];
    report.claim(Claim::new(
        "Fig. 5, 7",
        "the same, against the lower level",
        Mode::Ours,
        (times(tree), tree >= 10.0),
        format!(
            "with {} entries, which leave either little to miss, it is {}",
            sizes[0],
            times(near("B-link tree"))
        ),
    ));
}
