//! The index of a part: buckets of eight entries, in a block of the pool.
//!
//! ```text
//! entry:  tag: 8 bits | position of the record, plus one: 24 bits       0: none
//! ```
//!
//! The caller compares the key of a record that it finds. A full bucket loses one of its entries, whose record
//! is then never found again.

use std::ops::Range;

use terrane_memtable::prefetch_line;

use crate::files::buffer::{BlockMut, BufferPool};

const ENTRY_BYTES: usize = 4;
const BUCKET: usize = 8;
const TAG_SHIFT: u32 = 24;
const POSITION_MASK: u32 = (1 << TAG_SHIFT) - 1;

/// The number of positions that an entry can express.
pub(super) const POSITIONS: usize = POSITION_MASK as usize;

/// The position of a record in the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position(pub(super) u32);

/// Positions by hash.
pub(super) struct Index {
    entries: BlockMut,
    /// The entry of a full bucket that is replaced next.
    victim: usize,
}

impl Index {
    /// Allocates an empty index for about `count` records.
    pub(super) fn allocate(pool: &BufferPool, count: usize) -> BlockMut {
        let count = count.next_multiple_of(BUCKET).max(BUCKET);
        let mut entries = pool.allocate(count * ENTRY_BYTES);
        entries.fill(0);
        entries
    }

    pub(super) fn new(entries: BlockMut) -> Self {
        Self { entries, victim: 0 }
    }

    pub(super) fn bytes(&self) -> usize {
        self.entries.len()
    }

    /// The entries of the bucket of a hash.
    fn bucket(&self, hash: u64) -> Range<usize> {
        let buckets = self.entries.len() / (ENTRY_BYTES * BUCKET);
        let number = ((u128::from(hash) * buckets as u128) >> 64) as usize;
        number * BUCKET..(number + 1) * BUCKET
    }

    fn entry(&self, at: usize) -> u32 {
        let (entries, _) = self.entries.as_chunks::<ENTRY_BYTES>();
        entries.get(at).map_or(0, |entry| u32::from_le_bytes(*entry))
    }

    fn set(&mut self, at: usize, entry: u32) {
        let (entries, _) = self.entries.as_chunks_mut::<ENTRY_BYTES>();
        if let Some(place) = entries.get_mut(at) {
            *place = entry.to_le_bytes();
        }
    }

    fn encode(hash: u64, position: Position) -> u32 {
        u32::from(hash as u8) << TAG_SHIFT | (position.0 + 1)
    }

    /// Returns the positions that may belong to a hash.
    pub(super) fn candidates(&self, hash: u64) -> impl Iterator<Item = Position> {
        let entries = self.bucket(hash).map(|at| self.entry(at));
        let matching = entries.filter(move |entry| (entry >> TAG_SHIFT) as u8 == hash as u8);
        matching.filter_map(|entry| (entry & POSITION_MASK).checked_sub(1)).map(Position)
    }

    /// Prefetches the bucket of a hash.
    pub(super) fn prefetch(&self, hash: u64) {
        if let Some(bucket) = self.entries.get(self.bucket(hash).start * ENTRY_BYTES..) {
            prefetch_line(bucket.as_ptr());
        }
    }

    /// Removes a position. Returns false if the index does not contain it.
    pub(super) fn remove(&mut self, hash: u64, position: Position) -> bool {
        let entry = Self::encode(hash, position);
        let found = self.bucket(hash).find(|at| self.entry(*at) == entry);
        found.inspect(|at| self.set(*at, 0)).is_some()
    }

    /// Adds a position.
    pub(super) fn add(&mut self, hash: u64, position: Position) {
        let bucket = self.bucket(hash);
        let free = bucket.clone().find(|at| self.entry(*at) == 0);
        let at = free.unwrap_or_else(|| {
            self.victim = (self.victim + 1) % BUCKET;
            bucket.start + self.victim
        });
        self.set(at, Self::encode(hash, position));
    }
}
