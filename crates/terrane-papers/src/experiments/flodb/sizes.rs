//! Sizes, keys, and the memtables.

use std::sync::Arc;
use std::time::Duration;

use terrane::memtable::Pool;
use terrane_policy::MemtableKind;
use terrane_policy::flodb::{DrainInsert, FloDb, LowerLevel, ScanMode};
use terrane_policy::random::SplitMix64;

use crate::experiments::memtables::BufferMode;
pub(super) use crate::experiments::memtables::NamedMemtable;
use crate::results::Results;

/// Bytes of a value (§5.1).
pub(super) const VALUE_BYTES: usize = 256;

/// Sizes of memory: one, four and sixteen times the smallest; the paper uses 128 MiB to 192 GiB.
const MEMORY_BYTES: [f64; 3] = [(16 << 20) as f64, (64 << 20) as f64, (256 << 20) as f64];

/// The key space of a tree; every second key exists. The paper has 300 GB.
const KEYS: f64 = 1_000_000.0;

/// The buffer of a tree whose memory does not vary: a sixteenth of its keys.
const BUFFER_BYTES: f64 = (16 << 20) as f64;

/// The duration of a measurement.
const MILLIS: f64 = 500.0;

/// The duration of the writes of Fig. 9: memtables are flushed many times, so that flushes bound the rate.
const STEADY_MILLIS: f64 = 10_000.0;

/// The duration of a burst of Fig. 15 at the paper's size of memory.
const BURST_SECONDS: f64 = 10.0;

/// The share of the paper's sizes that the constants above represent: 16 MiB of its 128.
pub(super) const DEFAULT_SCALE: f64 = 0.125;

/// The sizes of a run.
pub(super) struct FloDbSizes {
    /// The factor on the constants above.
    pub(super) scale: f64,
    pub(super) rounds: usize,
    pub(super) seed: u64,
    pub(super) threads: Vec<u32>,
    pub(super) pool: Arc<Pool>,
}

impl FloDbSizes {
    /// Creates the sizes at a share of the paper's.
    pub(super) fn new(share: f64, rounds: usize, seed: u64, threads: Vec<u32>) -> Self {
        let scale = share / DEFAULT_SCALE;
        // The pool keeps memory between measurements, as between the memtables of a database.
        Self { scale, rounds, seed, threads, pool: Pool::new(2 << 30) }
    }

    /// Returns the sizes as a share of the paper's.
    pub(super) fn share(&self) -> f64 {
        self.scale * DEFAULT_SCALE
    }

    pub(super) fn scaled(&self, count: u64) -> u64 {
        ((count as f64 * self.scale) as u64).max(1000)
    }

    pub(super) fn memory_bytes(&self) -> [u64; 3] {
        MEMORY_BYTES.map(|bytes| ((bytes * self.scale) as u64).max(1 << 20))
    }

    pub(super) fn keys(&self) -> u64 {
        self.scaled(KEYS as u64)
    }

    pub(super) fn buffer_bytes(&self) -> u64 {
        ((BUFFER_BYTES * self.scale) as u64).max(1 << 20)
    }

    pub(super) fn duration(&self) -> Duration {
        Duration::from_secs_f64((MILLIS * self.scale.clamp(0.1, 20.0)) / 1e3)
    }

    /// Returns the duration of steady writes.
    pub(super) fn steady_duration(&self) -> Duration {
        Duration::from_secs_f64((STEADY_MILLIS * self.scale.clamp(0.01, 2.0)) / 1e3)
    }

    /// Returns the duration of a burst, which writes the same share of the memory as the paper's.
    pub(super) fn burst_duration(&self) -> Duration {
        Duration::from_secs_f64((BURST_SECONDS * self.share()).clamp(0.01, BURST_SECONDS))
    }

    /// Returns the maximum number of threads.
    pub(super) fn threads_max(&self) -> u32 {
        self.threads.iter().copied().max().unwrap_or(1)
    }

    /// Returns the numbers of threads, starting at one, which leaves a processor to the drain.
    pub(super) fn threads_from_one(&self) -> Vec<u32> {
        let more = self.threads.iter().filter(|threads| **threads != 1);
        std::iter::once(1).chain(more.copied()).collect()
    }

    /// Returns the measurements of several rounds, in which the kinds take turns.
    pub(super) fn rounds<const N: usize, E>(
        &self,
        kinds: &[NamedMemtable],
        mut measure: impl FnMut(&NamedMemtable) -> Result<[f64; N], E>,
    ) -> Result<Vec<KindRounds<N>>, E> {
        let mut all: Vec<_> = kinds.iter().map(|_| KindRounds { rounds: Vec::new() }).collect();
        for _ in 0..self.rounds.max(1) {
            for (one, kind) in all.iter_mut().zip(kinds) {
                one.rounds.push(measure(kind)?);
            }
        }
        Ok(all)
    }
}

/// The measurements of a memtable in each round.
#[derive(Debug, Clone)]
pub(super) struct KindRounds<const N: usize> {
    rounds: Vec<[f64; N]>,
}

impl<const N: usize> KindRounds<N> {
    /// Returns the round with the greatest first measurement.
    pub(super) fn best(&self) -> [f64; N] {
        let best = self.rounds.iter().max_by(|one, other| one[0].total_cmp(&other[0]));
        best.copied().unwrap_or([f64::NAN; N])
    }

    /// Returns one measurement of every round.
    pub(super) fn of(&self, at: usize) -> Vec<f64> {
        self.rounds.iter().map(|round| round[at]).collect()
    }

    /// Records one measurement: of the best round, and of all.
    pub(super) fn record(&self, results: &mut Results, metric: &str, keys: &[&str], at: usize) {
        results.record_rounds(metric, keys, self.best()[at], &self.of(at));
    }
}

/// The names of the memtables of one level, which represent other systems.
pub(super) const LIST: &str = "skip-list";
pub(super) const TREE: &str = "B-link tree";

/// The other systems of a mode: those of the paper have skip-lists. Ours competes with the best that we have.
fn others_of(mode: BufferMode) -> &'static [&'static str] {
    match mode {
        BufferMode::Published => &[LIST],
        BufferMode::Ours => &[LIST, TREE],
    }
}

/// Records the rate of the next best system of each mode: in each round that of the fastest.
pub(super) fn record_next<const N: usize>(
    results: &mut Results,
    metric: &str,
    rounds: &[(&str, &KindRounds<N>)],
    (key, at): (&str, usize),
) {
    for mode in BufferMode::ALL {
        let others = rounds.iter().filter(|(name, _)| others_of(mode).contains(name));
        let fastest = others.map(|(_, rounds)| rounds.of(at)).reduce(|one, other| {
            one.into_iter().zip(other).map(|(one, other)| one.max(other)).collect()
        });
        let fastest = fastest.unwrap_or_default();
        let best = fastest.iter().copied().fold(f64::NAN, f64::max);
        results.record_rounds(metric, &[mode.name(), key], best, &fastest);
    }
}

/// Returns the memtable with the two levels of a mode.
pub(super) fn two_levels(mode: BufferMode) -> FloDb {
    let lower = match mode {
        BufferMode::Published => LowerLevel::SkipList,
        BufferMode::Ours => LowerLevel::BTree,
    };
    FloDb { lower, ..FloDb::DEFAULT }
}

/// A memtable of one level or of two, with the key of its measurements.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyedMemtable {
    pub(super) key: &'static str,
    pub(super) memtable: NamedMemtable,
}

/// Returns the memtables of one level and the memtables of two levels; the latter have the mode as
/// their key.
pub(super) fn kinds() -> [KeyedMemtable; 4] {
    let keyed = |key, name, kind| KeyedMemtable { key, memtable: NamedMemtable { name, kind } };
    let two = |mode: BufferMode| MemtableKind::FloDb(two_levels(mode));
    let (published, ours) = (BufferMode::Published, BufferMode::Ours);
    [
        keyed(LIST, LIST, MemtableKind::SKIP_LIST),
        keyed(TREE, TREE, MemtableKind::BTree),
        keyed(published.name(), "two levels, published", two(published)),
        keyed(ours.name(), "two levels, ours", two(ours)),
    ]
}

/// Returns the ablations of a mode (§5.5): one level, single inserts, multi-insert.
pub(super) fn ablations(mode: BufferMode) -> [NamedMemtable; 3] {
    let levels = two_levels(mode);
    let kind = |name, flodb| NamedMemtable { name, kind: MemtableKind::FloDb(flodb) };
    [
        kind("no Membuffer", FloDb { membuffer_percent: 0, ..levels }),
        kind("single inserts", FloDb { insert: DrainInsert::Single, ..levels }),
        kind("multi-insert", levels),
    ]
}

/// Returns a hash table alone, as large as its memory.
pub(super) fn hash_table() -> MemtableKind {
    let alone = FloDb { membuffer_percent: 90, partition_bits: 0, ..FloDb::DEFAULT };
    MemtableKind::FloDb(alone)
}

/// Returns a memtable of two levels with the paper's scans or with ours.
pub(super) fn scanning(mode: BufferMode, scan: ScanMode) -> MemtableKind {
    MemtableKind::FloDb(FloDb { scan, ..two_levels(mode) })
}

/// Returns the number of processors on which threads can run.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

pub(super) fn mib(bytes: u64) -> String {
    (bytes >> 20).to_string()
}

/// The measurement keys of the sizes of memory.
pub(super) const MEMORY_KEYS: [&str; 3] = ["small", "medium", "large"];

/// Returns the bytes of a key, the most significant first; keys are spread over the whole key
/// space.
pub(super) fn spread(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// Returns the random numbers of a thread. Consecutive seeds give unrelated streams.
pub(super) fn random_numbers(seed: u64) -> SplitMix64 {
    SplitMix64::new(seed.wrapping_mul(0xd134_2543_de82_ef95))
}
