//! Times operations on a single memtable.
//!
//! Keys follow the memory buffer paper: 32-bit numbers in decimal without leading zeros, each once,
//! in random order. A prefix of X characters therefore has about 10^X values.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use terrane::memtable::{self, EntryKind, MAX_SEQ, MemoryUse, Memtable, Pool};
use terrane_policy::MemtableKind;

/// The entries to insert.
pub struct Load {
    keys: Vec<Box<[u8]>>,
    /// Indexes into `keys`, in key order.
    order: Vec<u32>,
    entry_bytes: usize,
    seed: u64,
    pool: Arc<Pool>,
}

/// Queries interleaved with the inserts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Queries {
    /// Lookups of inserted keys.
    pub points: usize,
    /// Range scans.
    pub ranges: usize,
    /// The share of all keys that a range scan covers.
    pub selectivity: f64,
    /// The share of inserts that precede the first query.
    pub after: f64,
}

impl Queries {
    /// Returns `points` lookups, spread over all inserts.
    pub fn points(points: usize) -> Self {
        Self { points, ..Self::default() }
    }
}

/// The durations of operations in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Series {
    /// Inserts, in order.
    pub inserts: Vec<u64>,
    /// Lookups of one key, in order.
    pub points: Vec<u64>,
    /// Range scans, in order.
    pub ranges: Vec<u64>,
}

enum Step {
    Insert(usize),
    Point(usize),
    Range(usize, usize),
}

/// Permutes the 32-bit numbers (the finaliser of MurmurHash3).
fn mix(number: u32) -> u32 {
    let mut mixed = number;
    mixed = (mixed ^ (mixed >> 16)).wrapping_mul(0x85eb_ca6b);
    mixed = (mixed ^ (mixed >> 13)).wrapping_mul(0xc2b2_ae35);
    mixed ^ (mixed >> 16)
}

impl Load {
    /// Creates `count` entries of `entry_bytes` bytes each, key included.
    pub fn new(count: usize, entry_bytes: usize, seed: u64) -> Self {
        let first = (seed as u32).wrapping_mul(0x9e37_79b9);
        let key = |number| mix(first.wrapping_add(number)).to_string().into_bytes();
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let keys = (0..count).map(|number| key(number).into()).collect();
        Self::of(keys, entry_bytes, seed)
    }

    /// Creates entries with these keys, of `entry_bytes` bytes each, key included.
    pub fn of(keys: Vec<Box<[u8]>>, entry_bytes: usize, seed: u64) -> Self {
        let count = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        let mut order: Vec<u32> = (0..count).collect();
        order.sort_unstable_by_key(|&index| &keys[index as usize]);
        // The pool recycles memory between measurements, as between the memtables of a database.
        Self { keys, order, entry_bytes, seed, pool: Pool::new(1 << 30) }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns true if the load has zero entries.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the same entries with each key replaced by `change(key)`.
    pub fn map_keys(&self, change: impl Fn(&[u8]) -> Vec<u8>) -> Self {
        let keys = self.keys.iter().map(|key| change(key).into()).collect();
        Self::of(keys, self.entry_bytes, self.seed)
    }

    /// Returns the same entries in key order.
    pub fn sorted(&self) -> Self {
        let keys = self.order.iter().map(|&index| self.keys[index as usize].clone()).collect();
        Self::of(keys, self.entry_bytes, self.seed)
    }

    /// Returns the keys in insertion order.
    pub fn keys(&self) -> &[Box<[u8]>] {
        &self.keys
    }

    /// Inserts all entries, divided among several threads; returns the wall-clock nanoseconds.
    pub fn parallel(&self, kind: MemtableKind, threads: u32) -> f64 {
        let memtable = self.empty(kind);
        let value = vec![7; self.entry_bytes];
        let threads = threads as usize;
        let start = Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (memtable, value) = (&memtable, &value);
                scope.spawn(move || {
                    for number in (thread..self.len()).step_by(threads) {
                        self.do_step(memtable, &Step::Insert(number), value);
                    }
                });
            }
        });
        start.elapsed().as_nanos() as f64
    }

    /// Returns the script of inserts and queries, which is the same for every kind.
    fn steps(&self, queries: &Queries) -> impl Iterator<Item = Step> {
        let count = self.len();
        let queries = *queries;
        let total = queries.points + queries.ranges;
        let first = (queries.after * count as f64) as usize;
        let span = (queries.selectivity * count as f64) as usize;
        let mut random = self.seed as u32;
        let mut issued = 0;
        (0..count).flat_map(move |number| {
            let mut steps = vec![Step::Insert(number)];
            let due = total * (number + 1).saturating_sub(first) / (count - first).max(1);
            while issued < due {
                issued += 1;
                random = random.wrapping_add(0x9e37_79b9);
                let chosen = mix(random) as usize;
                let is_range =
                    issued * queries.ranges / total > (issued - 1) * queries.ranges / total;
                steps.push(if is_range {
                    let start = chosen % (count - span).max(1);
                    Step::Range(start, (start + span).min(count - 1))
                } else {
                    Step::Point(chosen % (number + 1))
                });
            }
            steps
        })
    }

    fn do_step(&self, memtable: &Arc<Memtable>, step: &Step, value: &[u8]) {
        match *step {
            Step::Insert(number) => {
                let key = &self.keys[number];
                let value = &value[..self.entry_bytes.saturating_sub(key.len())];
                memtable.insert(key, number as u64 + 1, EntryKind::Value, value);
            }
            Step::Point(number) => {
                black_box(memtable.get(&self.keys[number], MAX_SEQ));
            }
            Step::Range(start, end) => {
                let start = &self.keys[self.order[start] as usize];
                let end = &self.keys[self.order[end] as usize];
                let mut cursor = memtable.cursor();
                cursor.limit_to(Some(start), Some(end));
                cursor.seek(start, MAX_SEQ);
                while let Some(entry) = cursor.entry().filter(|entry| *entry.key < **end) {
                    black_box(entry.value);
                    cursor.next();
                }
            }
        }
    }

    /// Calls `put` with each key and value.
    pub fn each<E>(&self, mut put: impl FnMut(&[u8], &[u8]) -> Result<(), E>) -> Result<(), E> {
        let value = vec![7; self.entry_bytes];
        let values = |key: &[u8]| self.entry_bytes.saturating_sub(key.len());
        self.keys.iter().try_for_each(|key| put(key, &value[..values(key)]))
    }

    fn empty(&self, kind: MemtableKind) -> Arc<Memtable> {
        let buffer_bytes = self.len() * self.entry_bytes;
        memtable::new(kind, buffer_bytes as u64, &self.pool)
    }

    /// Returns the memory use of a memtable that holds every entry.
    pub fn memory(&self, kind: MemtableKind) -> MemoryUse {
        let memtable = self.empty(kind);
        let value = vec![7; self.entry_bytes];
        let insert = |number| self.do_step(&memtable, &Step::Insert(number), &value);
        let is_hashed =
            matches!(kind, MemtableKind::HashSkipList { .. } | MemtableKind::HashLinkedList { .. });
        if is_hashed {
            // Inserting in descending key order avoids list walks and uses the same memory.
            self.order.iter().rev().for_each(|&number| insert(number as usize));
        } else {
            (0..self.len()).for_each(insert);
        }
        memtable.memory()
    }

    /// Runs all operations and times each one.
    pub fn series(&self, kind: MemtableKind, queries: &Queries) -> Series {
        let memtable = self.empty(kind);
        let value = vec![7; self.entry_bytes];
        let mut series = Series::default();
        for step in self.steps(queries) {
            let start = Instant::now();
            self.do_step(&memtable, &step, &value);
            let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            match step {
                Step::Insert(_) => series.inserts.push(nanos),
                Step::Point(_) => series.points.push(nanos),
                Step::Range(..) => series.ranges.push(nanos),
            }
        }
        series
    }

    /// Runs all operations and returns their total time in nanoseconds.
    pub fn total(&self, kind: MemtableKind, queries: &Queries) -> f64 {
        let memtable = self.empty(kind);
        let value = vec![7; self.entry_bytes];
        let steps: Vec<Step> = self.steps(queries).collect();
        let start = Instant::now();
        steps.iter().for_each(|step| self.do_step(&memtable, step, &value));
        start.elapsed().as_nanos() as f64
    }

    /// Runs every kind `rounds` times in alternation and returns each operation at its fastest.
    pub fn best_series(
        &self,
        kinds: &[MemtableKind],
        queries: &Queries,
        rounds: usize,
    ) -> Vec<Series> {
        let all = self.rounds_of_series(kinds, queries, rounds);
        all.iter().map(|rounds| Series::fastest(rounds)).collect()
    }

    /// Runs every kind `rounds` times in alternation and returns the operations of each round, by
    /// kind.
    pub fn rounds_of_series(
        &self,
        kinds: &[MemtableKind],
        queries: &Queries,
        rounds: usize,
    ) -> Vec<Vec<Series>> {
        in_turns(kinds, rounds, |kind| self.series(kind, queries))
    }

    /// Runs every kind `rounds` times in alternation and returns the total time of each round, by
    /// kind.
    pub fn rounds_of_totals(
        &self,
        kinds: &[MemtableKind],
        queries: &Queries,
        rounds: usize,
    ) -> Vec<Vec<f64>> {
        in_turns(kinds, rounds, |kind| self.total(kind, queries))
    }

    /// Runs every kind `rounds` times in alternation and returns the least total time of each.
    pub fn best_totals(
        &self,
        kinds: &[MemtableKind],
        queries: &Queries,
        rounds: usize,
    ) -> Vec<f64> {
        let all = self.rounds_of_totals(kinds, queries, rounds);
        all.iter().map(|rounds| rounds.iter().copied().fold(f64::INFINITY, f64::min)).collect()
    }
}

/// Measures every kind `rounds` times, at least once, in alternation.
fn in_turns<T>(
    kinds: &[MemtableKind],
    rounds: usize,
    mut measure: impl FnMut(MemtableKind) -> T,
) -> Vec<Vec<T>> {
    let mut all: Vec<Vec<T>> = kinds.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds.max(1) {
        for (rounds, kind) in all.iter_mut().zip(kinds) {
            rounds.push(measure(*kind));
        }
    }
    all
}

impl Series {
    /// Returns each operation at the fastest of the rounds, to exclude interference from other
    /// processes. Its maximum is not a P100: take the P100 of one round.
    #[must_use]
    pub fn fastest(rounds: &[Self]) -> Self {
        let mut fastest = Self::default();
        rounds.iter().for_each(|round| fastest.lower_to(round));
        fastest
    }

    fn lower_to(&mut self, other: &Self) {
        let lower = |mine: &mut Vec<u64>, others: &[u64]| {
            if mine.is_empty() {
                others.clone_into(mine);
            } else {
                mine.iter_mut().zip(others).for_each(|(mine, other)| *mine = (*mine).min(*other));
            }
        };
        lower(&mut self.inserts, &other.inserts);
        lower(&mut self.points, &other.points);
        lower(&mut self.ranges, &other.ranges);
    }
}

/// Returns the mean; 0 for an empty slice.
pub fn mean(nanos: &[u64]) -> f64 {
    nanos.iter().map(|&nanos| nanos as f64).sum::<f64>() / nanos.len().max(1) as f64
}

/// Returns the time that the given share of `nanos` does not exceed.
pub fn percentile(nanos: &[u64], share: f64) -> f64 {
    let mut sorted = nanos.to_vec();
    sorted.sort_unstable();
    let at = ((sorted.len() as f64 * share).ceil() as usize).clamp(1, sorted.len().max(1));
    sorted.get(at - 1).map_or(0.0, |&nanos| nanos as f64)
}
