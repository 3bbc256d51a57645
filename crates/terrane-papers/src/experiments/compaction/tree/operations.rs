//! The writes of a load.

use rand_xoshiro::Xoshiro256PlusPlus;

use super::super::sizes::{CompactionSizes, KeySet, below};

/// The proportions of the writes of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Mix {
    pub(in super::super) operations: usize,
    /// The number of updates for each insert.
    pub(in super::super) updates: usize,
    /// Whether most updates hit a tenth of the key space.
    pub(in super::super) is_skewed: bool,
    /// Deletes per hundred operations.
    pub(in super::super) deletes_percent: usize,
}

/// A write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Operation {
    Put(u32),
    Delete(u32),
}

/// Draws the writes of a load.
pub(in super::super) struct Operations<'a> {
    keys: &'a KeySet,
    mix: Mix,
    inserts: usize,
    random: Xoshiro256PlusPlus,
    /// The number of keys inserted so far.
    pub(in super::super) inserted: usize,
    done: usize,
    /// The keys that exist.
    pub(in super::super) live: Vec<u32>,
}

impl<'a> Operations<'a> {
    pub(in super::super) fn new(sizes: &CompactionSizes, keys: &'a KeySet, mix: Mix) -> Self {
        let inserts = (mix.operations / (1 + mix.updates)).min(keys.inserted.len());
        let random = sizes.random(3);
        Self { keys, mix, inserts, random, inserted: 0, done: 0, live: Vec::new() }
    }

    /// Returns a key to update: a uniform choice, or mostly one of the first tenth of the key space.
    fn updated(&mut self) -> u32 {
        let is_hot = |key: &u32| *key < u32::MAX / 10;
        let Self { live, random, mix, .. } = self;
        if !mix.is_skewed || below(random, 10) == 0 {
            return live[below(random, live.len())];
        }
        let drawn = (0..100).map(|_| live[below(random, live.len())]).find(is_hot);
        drawn.unwrap_or(live[0])
    }
}

impl Iterator for Operations<'_> {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        if self.done == self.mix.operations {
            return None;
        }
        self.done += 1;
        let is_delete = below(&mut self.random, 100) < self.mix.deletes_percent;
        let is_insert = below(&mut self.random, 1 + self.mix.updates) == 0;
        if is_delete && self.live.len() > 1 {
            let at = below(&mut self.random, self.live.len());
            return Some(Operation::Delete(self.live.swap_remove(at)));
        }
        if (is_insert && self.inserted < self.inserts) || self.live.is_empty() {
            let key = self.keys.inserted[self.inserted];
            self.inserted += 1;
            self.live.push(key);
            return Some(Operation::Put(key));
        }
        Some(Operation::Put(self.updated()))
    }
}
