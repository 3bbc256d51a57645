//! Sizes, keys, and the memtables.

use std::sync::Arc;
use std::time::Duration;

use terrane::memtable::Pool;
use terrane_policy::MemtableKind;
use terrane_policy::flodb::{DrainInsert, FloDb, LowerLevel, ScanMode};

use crate::claims::setting::Mode;

/// Bytes of a value (§5.1).
pub(super) const VALUE_BYTES: usize = 256;

/// Sizes of memory. The paper has 128 MiB to 192 GiB.
const MEMORY_BYTES: [f64; 3] = [(16 << 20) as f64, (64 << 20) as f64, (256 << 20) as f64];

/// Keys of a tree, of which every second one is there. The paper has 300 GB.
const KEYS: f64 = 1_000_000.0;

/// The buffer of a tree whose memory is not what is varied: a sixteenth of its keys.
const BUFFER_BYTES: f64 = (16 << 20) as f64;

/// How long a figure takes.
const MILLIS: f64 = 500.0;

/// What a user chooses.
#[derive(Debug, Clone)]
pub(in crate::claims) struct Sizes {
    pub(in crate::claims) scale: f64,
    pub(in crate::claims) rounds: usize,
    pub(in crate::claims) seed: u64,
    pub(in crate::claims) threads: Vec<u32>,
}

/// The sizes of a run.
pub(super) struct Setting {
    pub(super) sizes: Sizes,
    pub(super) pool: Arc<Pool>,
}

/// A memtable with a short name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) kind: MemtableKind,
}

impl Setting {
    pub(super) fn new(sizes: Sizes) -> Self {
        // Memory is kept between measurements, as it is between the memtables of a database.
        Self { sizes, pool: Pool::new(2 << 30) }
    }

    pub(super) fn scaled(&self, count: u64) -> u64 {
        ((count as f64 * self.sizes.scale) as u64).max(1000)
    }

    pub(super) fn memory_bytes(&self) -> [u64; 3] {
        MEMORY_BYTES.map(|bytes| ((bytes * self.sizes.scale) as u64).max(1 << 20))
    }

    pub(super) fn keys(&self) -> u64 {
        self.scaled(KEYS as u64)
    }

    pub(super) fn buffer_bytes(&self) -> u64 {
        ((BUFFER_BYTES * self.sizes.scale) as u64).max(1 << 20)
    }

    pub(super) fn duration(&self) -> Duration {
        Duration::from_secs_f64((MILLIS * self.sizes.scale.clamp(0.1, 20.0)) / 1e3)
    }

    /// The most threads.
    pub(super) fn threads_max(&self) -> u32 {
        self.sizes.threads.iter().copied().max().unwrap_or(1)
    }

    /// The largest figure of several rounds, in which the kinds take turns.
    pub(super) fn best<const N: usize, E>(
        &self,
        kinds: &[Kind],
        mut measure: impl FnMut(&Kind) -> Result<[f64; N], E>,
    ) -> Result<Vec<[f64; N]>, E> {
        let mut best = vec![[f64::NEG_INFINITY; N]; kinds.len()];
        for _ in 0..self.sizes.rounds.max(1) {
            for (best, kind) in best.iter_mut().zip(kinds) {
                let measured = measure(kind)?;
                if measured.first() > best.first() {
                    *best = measured;
                }
            }
        }
        Ok(best)
    }
}

/// The names that claims are about.
pub(super) const LIST: &str = "skip-list";
pub(super) const PUBLISHED: &str = "two levels, published";
pub(super) const OURS: &str = "two levels, ours";

/// The two levels of a mode.
pub(super) fn two_levels(mode: Mode) -> FloDb {
    let lower = match mode {
        Mode::Published => LowerLevel::SkipList,
        Mode::Ours => LowerLevel::BTree,
    };
    FloDb { lower, ..FloDb::DEFAULT }
}

pub(super) fn name(mode: Mode) -> &'static str {
    match mode {
        Mode::Published => PUBLISHED,
        Mode::Ours => OURS,
    }
}

/// One level of each kind, and two.
pub(super) fn kinds() -> Vec<Kind> {
    let two = |mode| Kind { name: name(mode), kind: MemtableKind::FloDb(two_levels(mode)) };
    vec![
        Kind { name: LIST, kind: MemtableKind::SKIP_LIST },
        Kind { name: "B-link tree", kind: MemtableKind::BTree },
        two(Mode::Published),
        two(Mode::Ours),
    ]
}

/// The ablations of a mode (§5.5): one level, single inserts, multi-insert.
pub(super) fn ablations(mode: Mode) -> [Kind; 3] {
    let levels = two_levels(mode);
    let kind = |name, flodb| Kind { name, kind: MemtableKind::FloDb(flodb) };
    [
        kind("no Membuffer", FloDb { membuffer_percent: 0, ..levels }),
        kind("single inserts", FloDb { insert: DrainInsert::Single, ..levels }),
        kind("multi-insert", levels),
    ]
}

/// A hash table alone, as large as its memory.
pub(super) fn hash_table() -> MemtableKind {
    let alone = FloDb { membuffer_percent: 90, partition_bits: 0, ..FloDb::DEFAULT };
    MemtableKind::FloDb(alone)
}

/// The paper's scans, beside ours.
pub(super) fn scanning(mode: Mode, scan: ScanMode) -> MemtableKind {
    MemtableKind::FloDb(FloDb { scan, ..two_levels(mode) })
}

/// The figure of a kind.
pub(super) fn of<const N: usize>(kinds: &[Kind], figures: &[[f64; N]], name: &str) -> [f64; N] {
    let at = kinds.iter().position(|kind| kind.name == name);
    at.and_then(|at| figures.get(at)).copied().unwrap_or([f64::NAN; N])
}

/// Processors that threads may be on.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

pub(super) fn mib(bytes: u64) -> String {
    (bytes >> 20).to_string()
}

/// The bytes of a key: the most significant first, spread over all.
pub(super) fn spread(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// Numbers that look random (Steele et al., `SplitMix64`).
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xd134_2543_de82_ef95))
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }
}
