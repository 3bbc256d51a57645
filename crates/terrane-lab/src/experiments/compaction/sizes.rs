//! The paper's sizes (§5) scaled down, its strategies, and the keys.

use anyhow::Result;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use terrane::Design;
use terrane_workload::Distribution;
use terrane_workload::distribution::IndexChooser;

/// The paper has 10M entries of 128 bytes with keys of 4 bytes (§5), and a buffer of 8 MiB. A 64th
/// of both keeps the paper's number of levels.
const ENTRIES: f64 = 160_000.0;
const BUFFER_BYTES: f64 = (128 << 10) as f64;
pub(super) const VALUE_BYTES: usize = 124;

/// A table of the paper has 512 pages and ours has 32, because smaller pages would be mostly
/// header.
const PAGE_BYTES: u32 = 4 << 10;

/// All strategies except those for deletes, which behave as `lo+1` when nothing is deleted (§5).
pub(super) const WITHOUT_DELETES: [&str; 8] =
    ["full", "lo+1", "lo+2", "rr", "cold", "old", "tier", "1-lvl"];
/// One strategy of each kind, for experiments in which all strategies would take too long.
pub(super) const OF_EACH_KIND: [&str; 4] = ["full", "lo+1", "old", "tier"];

/// The sizes of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct CompactionSizes {
    pub(super) scale: f64,
    pub(super) rounds: usize,
    pub(super) seed: u64,
}

impl CompactionSizes {
    pub(super) fn entries(&self) -> usize {
        ((ENTRIES * self.scale) as usize).max(2000)
    }

    pub(super) fn lookups(&self) -> usize {
        self.entries() / 10
    }

    pub(super) fn buffer_bytes(&self) -> u64 {
        ((BUFFER_BYTES * self.scale) as u64).max(4 << 10)
    }

    /// Returns a strategy of the catalogue with the sizes of the run.
    pub(super) fn design(&self, name: &str) -> Result<Design> {
        let mut design: Design = name.parse()?;
        design.buffer_bytes = self.buffer_bytes();
        design.table_bytes = design.buffer_bytes;
        design.block_bytes = PAGE_BYTES;
        design.validate()?;
        Ok(design)
    }

    pub(super) fn random(&self, salt: u64) -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(self.seed ^ (salt << 32))
    }
}

/// Distinct keys, in the order of their insertion and in ascending order.
pub(super) struct KeySet {
    pub(super) inserted: Vec<u32>,
    pub(super) sorted: Vec<u32>,
}

impl KeySet {
    /// Draws `count` distinct keys of 32 bits from a distribution over all of them.
    pub(super) fn new(sizes: &CompactionSizes, distribution: Distribution, count: usize) -> Self {
        let mut random = sizes.random(1);
        // Ranks are not scattered over the key space: skewed keys are neighbours, as in the paper (O13).
        let zipf = match distribution {
            Distribution::Zipf { theta } => Some(terrane_workload::zipf::Zipf::new(1 << 32, theta)),
            _ => None,
        };
        let mut chooser = IndexChooser::new(distribution, 1 << 32, 0);
        let mut seen = std::collections::HashSet::with_capacity(count);
        let mut inserted = Vec::with_capacity(count);
        while inserted.len() < count {
            let draw = match &zipf {
                Some(zipf) => zipf.draw(&mut random),
                None => chooser.choose(&mut random),
            };
            let key = u32::try_from(draw).unwrap_or(u32::MAX);
            if seen.insert(key) {
                inserted.push(key);
            }
        }
        let mut sorted = inserted.clone();
        sorted.sort_unstable();
        Self { inserted, sorted }
    }

    /// Returns a key outside the set.
    pub(super) fn missing(&self, random: &mut Xoshiro256PlusPlus) -> u32 {
        loop {
            let key = (random.next_u64() >> 32) as u32;
            if self.sorted.binary_search(&key).is_err() {
                return key;
            }
        }
    }
}

/// Returns a random number below `count`.
pub(super) fn below(random: &mut Xoshiro256PlusPlus, count: usize) -> usize {
    ((u128::from(random.next_u64()) * count as u128) >> 64) as usize
}
