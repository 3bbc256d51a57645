//! The nine buffers of the authors' later program: Terrane's own, and plain versions of the others.

use std::time::Instant;

use terrane::memtable::{EntryKind, MAX_SEQ, Pool, new};
use terrane_lab::memtable::{Load, mean, percentile};
use terrane_lab::output::human::nanos;
use terrane_policy::{MemtableKind, VectorQuery};

use super::others::{PlainBuffer, PlainSkipList, SortedVector};
use super::sizes::{
    BufferMode, BufferSizes, ENTRY_BYTES, PREFIX, hash_linked_list, hash_skip_list, hash_vector,
};
use crate::results::Results;

/// The number of lookups, and of ranges, after all inserts.
const READS: usize = 500;
/// The number of entries that a range reads.
const STEPS: usize = 10;

/// Few entries, because every insert into a sorted array moves half of it.
const IN_ORDER: usize = 20_000;

/// Few entries, because an insert into one list walks half of it.
const IN_ONE_LIST: usize = 4000;

/// The costs of a buffer, in nanoseconds.
#[derive(Clone, Copy)]
struct BufferCosts {
    insert: f64,
    ascending: f64,
    lookup: f64,
    longest: f64,
    range: f64,
    /// The time of an insert and a lookup in alternation.
    in_turn: f64,
}

/// An operation and its cost.
type NamedCost = (&'static str, fn(&BufferCosts) -> f64);

impl BufferCosts {
    /// The operations whose times are recorded.
    const MEASURED: [NamedCost; 4] = [
        ("insert", |costs| costs.insert),
        ("ascending", |costs| costs.ascending),
        ("lookup", |costs| costs.lookup),
        ("range", |costs| costs.range),
    ];

    fn lower(self, other: Self) -> Self {
        Self {
            insert: self.insert.min(other.insert),
            ascending: self.ascending.min(other.ascending),
            lookup: self.lookup.min(other.lookup),
            longest: self.longest.min(other.longest),
            range: self.range.min(other.range),
            in_turn: self.in_turn.min(other.in_turn),
        }
    }

    fn cells(self) -> impl Iterator<Item = String> {
        let Self { insert, ascending, lookup, longest, range, in_turn } = self;
        [insert, ascending, in_turn, lookup, longest, range].into_iter().map(nanos)
    }
}

/// One of our memtables, with the interface of the other buffers.
struct OurMemtable {
    memtable: std::sync::Arc<terrane::memtable::Memtable>,
    seq: u64,
}

impl PlainBuffer for OurMemtable {
    fn insert(&mut self, key: &[u8], value: &[u8]) {
        self.seq += 1;
        self.memtable.insert(key, self.seq, EntryKind::Value, value);
    }

    fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.memtable.get(key, MAX_SEQ).map(|entry| entry.value)
    }

    fn scan(&self, from: &[u8], count: usize) {
        let mut cursor = self.memtable.cursor();
        cursor.seek(from, MAX_SEQ);
        for _ in 0..count {
            let Some(entry) = cursor.entry() else { break };
            std::hint::black_box(entry.value);
            cursor.next();
        }
    }
}

/// Creates an empty buffer.
type NewBuffer<'a> = Box<dyn Fn() -> Box<dyn PlainBuffer> + 'a>;

fn measure_one(make: &NewBuffer<'_>, load: &Load, sorted: &Load, count: usize) -> BufferCosts {
    let value = |key: &[u8]| vec![7; ENTRY_BYTES.saturating_sub(key.len())];
    let fill = |load: &Load| {
        let mut other = make();
        let values: Vec<_> = load.keys().iter().take(count).map(|key| value(key)).collect();
        let start = Instant::now();
        load.keys().iter().zip(&values).for_each(|(key, value)| other.insert(key, value));
        (start.elapsed().as_nanos() as f64 / values.len().max(1) as f64, other)
    };
    let (ascending, _) = fill(sorted);
    let (insert, mut other) = fill(load);
    let keys = load.keys();
    let some = |number: usize| &keys[number.wrapping_mul(7919) % count.min(keys.len()).max(1)];
    let each = |work: &mut dyn FnMut(usize)| {
        let times = (0..READS).map(|number| {
            let start = Instant::now();
            work(number);
            u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
        });
        times.collect::<Vec<u64>>()
    };
    let lookups = each(&mut |number| {
        std::hint::black_box(other.get(some(number)));
    });
    // The first range may sort all entries, which is not part of the cost of a range.
    other.scan(some(0), STEPS);
    let ranges = each(&mut |number| other.scan(some(number), STEPS));
    let mut further = |number: usize| {
        let key = [&some(number)[..], b"+"].concat();
        other.insert(&key, b"further");
        std::hint::black_box(other.get(some(number)));
    };
    let in_turn = each(&mut further);
    BufferCosts {
        insert,
        ascending,
        lookup: mean(&lookups),
        longest: percentile(&lookups, 1.0),
        range: mean(&ranges),
        in_turn: mean(&in_turn),
    }
}

const HEADERS: [&str; 9] = [
    "theirs",
    "ours",
    "entries",
    "insert",
    "in order",
    "insert and lookup",
    "lookup",
    "longest",
    "range",
];

pub(super) fn measure(sizes: &BufferSizes, results: &mut Results) {
    let load = &sizes.load;
    let sorted = load.sorted();
    let pool = Pool::new(1 << 28);
    let buffer_bytes = (load.len() * ENTRY_BYTES) as u64;
    let ours = |kind: MemtableKind| -> NewBuffer<'_> {
        let pool = &pool;
        Box::new(move || Box::new(OurMemtable { memtable: new(kind, buffer_bytes, pool), seq: 0 }))
    };
    let vector = |query| MemtableKind::Vector { prealloc_bytes: 0, query };
    let buckets = sizes.buckets();
    let hash_vector = hash_vector(buckets);
    let all = load.len();
    let (few, some) = (IN_ONE_LIST.min(all), IN_ORDER.min(all));
    let (skip, linked) = (
        hash_skip_list(BufferMode::Ours, PREFIX, buckets),
        hash_linked_list(BufferMode::Ours, PREFIX, buckets),
    );
    // The key of the measurements; the name in their program; ours; entries.
    let rows: [(&str, &str, &str, usize, NewBuffer<'_>); 13] = [
        ("InSkip-L", "InSkip-L", "`skiplist`", all, ours(MemtableKind::SKIP_LIST)),
        ("V-Qsort", "V-Qsort", "`vector`", all, ours(vector(VectorQuery::Resort))),
        ("Hash-SL", "Hash-SL", "`hash-skiplist`", all, ours(skip)),
        ("Hash-LL", "Hash-LL", "`hash-linkedlist`", all, ours(linked)),
        ("V-Qscan", "V-Qscan", "`vector(query=scan)`", all, ours(vector(VectorQuery::Scan))),
        ("Hash-V", "Hash-V", "`hash-vector`", all, ours(hash_vector)),
        ("btree", "", "`btree`", all, ours(MemtableKind::BTree)),
        ("V-Sorted", "V-Sorted", "left out", some, Box::new(|| Box::<SortedVector>::default())),
        ("btree, as many", "", "`btree`", some, ours(MemtableKind::BTree)),
        ("hash-vector, as many", "", "`hash-vector`", some, ours(hash_vector)),
        ("Skip-L", "Skip-L", "left out", all, Box::new(|| Box::<PlainSkipList>::default())),
        (
            "Link-L",
            "Link-L",
            "`hash-linkedlist` of one bucket",
            few,
            ours(hash_linked_list(BufferMode::Ours, 0, 1)),
        ),
        ("btree, few", "", "`btree`", few, ours(MemtableKind::BTree)),
    ];
    let mut all: Vec<Vec<BufferCosts>> = vec![Vec::new(); rows.len()];
    for _ in 0..sizes.rounds.max(1) {
        for (rounds, (.., count, make)) in all.iter_mut().zip(&rows) {
            rounds.push(measure_one(make, load, &sorted, *count));
        }
    }
    for ((key, ..), rounds) in rows.iter().zip(&all) {
        for (operation, of) in BufferCosts::MEASURED {
            let times: Vec<f64> = rounds.iter().map(of).collect();
            results.record_least("nine", &[operation, key], &times);
        }
    }
    let best = all.into_iter().map(|rounds| rounds.into_iter().reduce(BufferCosts::lower));
    let cells = rows.iter().zip(best).map(|((_, theirs, ours, count, _), row)| {
        let names = [(*theirs).to_owned(), (*ours).to_owned(), count.to_string()];
        names.into_iter().chain(row.into_iter().flat_map(BufferCosts::cells)).collect()
    });
    results.table(
        "The nine buffers of the later program: inserts, then lookups and ranges of ten entries",
        &HEADERS,
        cells.collect(),
    );
}
