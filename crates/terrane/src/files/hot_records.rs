//! Hot records: entries of tables that stay in memory without their block.
//!
//! Where popular keys are spread over the data, a block in the cache takes 4 KiB to serve one of its 35
//! records. A record alone takes a hundred bytes or two, so the same memory answers far more lookups
//! (Tiered-Indexing, Zhou et al., VLDB Journal 2025; HotRAP, Qiu et al., USENIX ATC 2025).
//!
//! 1. A record is the newest version of a key in one table. Tables do not change, so a record is never wrong,
//!    and nothing invalidates it. Only a reader that sees the whole table creates or uses it. A compaction
//!    labels the records of its inputs, as it writes their keys, with the table that it writes.
//! 2. Only a point lookup whose block is not in memory consults the records. Lookups of data that fits into the
//!    cache do not even check whether there are any.
//! 3. While the records may take more memory than they do, every lookup that reads a block keeps its record.
//!    Later a record is kept when a block is read for the second time on behalf of its key, as far back as
//!    [`recent`] remembers. Records leave in the order of their arrival, unless they were used meanwhile.
//! 4. Records are kept only while reads wait for a device: the system's cache returns a block in little more
//!    time than it takes to keep a record.
//! 5. Records and blocks share the capacity of the pool. As in ARC (Megiddo and Modha, FAST 2003), each side
//!    gains where it proves that a little more memory would have helped: a block is read soon after it was
//!    evicted, or a record is used for the first time shortly before it would leave. Under uniform lookups
//!    the records keep only their least share, and none if no read waits for long.
//! 6. The memory comes from the pool as pinned blocks, so that its capacity covers everything.
//!
//! | module | one line |
//! |---|---|
//! | `carried` | the versions that a compaction writes, for the records of their keys |
//! | `part` | the records of some of the keys, under one lock |
//! | `index` | finds the position of a record |
//! | `recent` | the keys whose lookups have read a block lately |
//! | `record` | a record, and what it is found by |
//! | `ring` | records in the order of their arrival |
//! | `share` | how records and blocks share the capacity of the pool |

mod carried;
mod index;
mod part;
mod recent;
mod record;
mod ring;
mod share;
#[cfg(all(test, not(miri)))]
mod tests;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::base::types::{EntryKind, SeqNo};
use crate::files::buffer::BufferPool;
pub(crate) use carried::Carried;
use part::Part;
pub(crate) use record::{HotRecord, RecordKey};
use ring::RECORD_BYTES_MAX;
use share::Share;

/// A record must be at most this part of its block, or else the block serves as well.
const BLOCK_PART: usize = 2;

/// The records that tables keep in memory.
#[derive(Debug)]
pub(crate) struct HotRecords {
    parts: Box<[Mutex<Part>]>,
    share: Share,
    /// The bytes of blocks that the parts take.
    bytes: AtomicUsize,
    /// The part that is shortened next.
    next: AtomicUsize,
    /// Held while the capacity changes, so that the records and the pool agree on it.
    resizing: Mutex<()>,
}

impl HotRecords {
    /// Creates an empty set of records for a pool of this capacity.
    pub(crate) fn new(capacity: u64) -> Self {
        let share = Share::new(usize::try_from(capacity).unwrap_or(usize::MAX));
        Self {
            parts: (0..share.parts()).map(|_| Mutex::default()).collect(),
            share,
            bytes: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            resizing: Mutex::default(),
        }
    }

    fn lock(part: &Mutex<Part>) -> MutexGuard<'_, Part> {
        part.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the part of a hash.
    fn part_of(&self, hash: u64) -> usize {
        // The other bits of the hash choose places within the part.
        (hash >> 8) as usize % self.parts.len()
    }

    fn part(&self, hash: u64) -> MutexGuard<'_, Part> {
        Self::lock(&self.parts[self.part_of(hash)])
    }

    /// The bytes of the pool that the records take.
    pub(crate) fn bytes(&self) -> usize {
        // Relaxed, here and below: the numbers guard no other memory.
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns true if the pool has records, or is in a state in which it may keep some.
    #[inline]
    pub(crate) fn are_active(&self, pool: &BufferPool) -> bool {
        pool.has_evicted() && self.share.may_keep() || self.bytes() > 0
    }

    /// Returns the record of a key in a table. The caller sees all versions in the table.
    pub(crate) fn get(&self, at: RecordKey<'_>) -> Option<HotRecord> {
        if self.bytes() == 0 {
            return None;
        }
        let limits = self.share.limits();
        let mut part = self.part(at.hash);
        let (record, left) = part.get(at, limits)?;
        let ring = part.ring_bytes();
        drop(part);
        if let Some(left) = left {
            self.share.note_use(left, ring);
        }
        Some(record)
    }

    /// Notes that a lookup has read a block of `block_bytes` bytes for this version, the newest in the
    /// table, and keeps it if it is worth the memory. `is_slow` says whether reads wait for a device.
    pub(crate) fn note_read(
        &self,
        (pool, is_slow): (&BufferPool, bool),
        at: RecordKey<'_>,
        version: (SeqNo, EntryKind, &[u8]),
        block_bytes: usize,
    ) {
        self.yield_to_blocks(pool);
        if self.share.note_speed(is_slow) && self.bytes() > 0 {
            self.clear();
        }
        let bytes = ring::record_bytes(at.key.len(), version.2.len());
        let is_small = bytes * BLOCK_PART <= block_bytes && bytes <= RECORD_BYTES_MAX;
        if !is_slow || !is_small || !self.share.may_keep() || !pool.has_evicted() {
            return;
        }
        let limits = self.share.limits();
        let mut part = self.part(at.hash);
        while let Some(missing) = part.missing(bytes, limits) {
            // Others use the part while the memory is prepared.
            drop(part);
            let block = missing.allocate(pool, limits);
            part = self.part(at.hash);
            self.change(&mut part, |part| part.supply(missing, block, limits));
        }
        if self.share.may_keep() {
            self.change(&mut part, |part| part.note_read(at, version, limits));
        } else {
            // The capacity has changed meanwhile.
            self.change(&mut part, |part| *part = Part::default());
        }
    }

    /// Returns true if lookups use the records so much that a compaction should carry them over to its tables.
    pub(crate) fn are_carried(&self) -> bool {
        self.bytes() > 0 && self.share.has_grown()
    }

    /// Changes a part, and counts its memory.
    fn change(&self, part: &mut Part, change: impl FnOnce(&mut Part)) {
        let before = part.bytes();
        change(part);
        self.bytes.fetch_add(part.bytes().wrapping_sub(before), Ordering::Relaxed);
    }

    /// Gives memory back if blocks were read again that were evicted too early.
    pub(crate) fn yield_to_blocks(&self, pool: &BufferPool) {
        let read_again = if self.bytes() > 0 { pool.take_read_again() } else { 0 };
        if read_again > 0 {
            self.share.shrink(read_again);
            let next = self.next.fetch_add(1, Ordering::Relaxed) % self.parts.len();
            let limits = self.share.limits();
            self.change(&mut Self::lock(&self.parts[next]), |part| part.shorten(limits));
        }
    }

    fn clear(&self) {
        self.share.reset();
        for part in &self.parts {
            self.change(&mut Self::lock(part), |part| *part = Part::default());
        }
    }

    /// Sets the capacity of the pool, which the records share.
    pub(crate) fn set_capacity(&self, pool: &BufferPool, capacity: u64) {
        let _resizing = self.resizing.lock().unwrap_or_else(PoisonError::into_inner);
        self.share.set_capacity(usize::try_from(capacity).unwrap_or(usize::MAX));
        if self.bytes() > 0 {
            let (limits, may_keep) = (self.share.limits(), self.share.may_keep());
            for part in &self.parts {
                self.change(&mut Self::lock(part), |part| match may_keep && part.suits(limits) {
                    true => part.release(limits),
                    false => *part = Part::default(),
                });
            }
        }
        // What the records release need not be evicted.
        pool.set_capacity(capacity);
    }
}
