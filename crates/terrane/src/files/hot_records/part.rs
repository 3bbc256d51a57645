//! The records of some of the keys.

use std::fmt;

use super::index::{Index, Position};
use super::recent::Recent;
use super::record::{HotRecord, RecordKey};
use super::ring::{self, Record, Ring, SEGMENT_BYTES};
use crate::base::types::{EntryKind, SeqNo};
use crate::files::buffer::{BlockMut, BufferPool};
use crate::files::value::Value;

/// The capacity for which one key is remembered.
const BYTES_PER_KEY: usize = 160;

/// The size of a small record: the index has an entry for this much of the most that segments may take. If
/// records are smaller, the index loses some.
const BYTES_PER_RECORD: usize = 112;

/// The maximum number of records that leave the oldest segment when one arrives.
const PASSED_MAX: usize = 16;

/// What a part may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The number of segments.
    pub(super) segments: usize,
    /// The part's share of the capacity of the pool, in bytes.
    pub(super) capacity: usize,
}

/// Memory that a part needs.
#[derive(Debug, Clone, Copy)]
pub(super) enum Missing {
    Recent,
    Index,
    Segment,
}

impl Missing {
    /// Allocates the memory, which waits for readers and clears pages.
    pub(super) fn allocate(self, pool: &BufferPool, limits: Limits) -> BlockMut {
        match self {
            Self::Recent => Recent::allocate(pool, limits.capacity / BYTES_PER_KEY),
            Self::Index => Index::allocate(pool, limits.capacity / 4 * 3 / BYTES_PER_RECORD),
            Self::Segment => pool.allocate(SEGMENT_BYTES),
        }
    }
}

/// Records, and recent keys.
#[derive(Default)]
pub(super) struct Part {
    recent: Option<Recent>,
    index: Option<Index>,
    ring: Ring,
    /// An empty segment that will be needed soon.
    spare: Option<BlockMut>,
    /// The share of the capacity for which `recent` and `index` were created.
    capacity: usize,
}

impl Part {
    /// The bytes of segments.
    pub(super) fn ring_bytes(&self) -> usize {
        self.ring.len() * SEGMENT_BYTES
    }

    /// The bytes of all blocks.
    pub(super) fn bytes(&self) -> usize {
        self.ring_bytes()
            + self.spare.as_ref().map_or(0, |spare| spare.len())
            + self.recent.as_ref().map_or(0, Recent::bytes)
            + self.index.as_ref().map_or(0, Index::bytes)
    }

    fn position(&self, at: RecordKey<'_>) -> Option<Position> {
        let mut candidates = self.index.as_ref()?.candidates(at.hash);
        candidates
            .find(|position| self.ring.record(*position).is_some_and(|it| it.at.key == at.key))
    }

    /// Returns a record; and if this is its first use, how many bytes of records may still arrive before it
    /// leaves.
    pub(super) fn get(
        &mut self,
        at: RecordKey<'_>,
        limits: Limits,
    ) -> Option<(HotRecord, Option<usize>)> {
        let position = self.position(at)?;
        let record = self.ring.record(position).filter(|record| record.is_of(at.table))?;
        let Record { seq, kind, is_used, value, .. } = record;
        let found = HotRecord { seq, kind, value: Value::from(value) };
        if is_used {
            return Some((found, None));
        }
        self.ring.set_used(position);
        let room = limits.segments.saturating_sub(self.ring.len()) * SEGMENT_BYTES;
        Some((found, Some(self.ring.bytes_before(position) + room)))
    }

    /// Returns the memory that the part needs before it may keep a record of `bytes` bytes.
    pub(super) fn missing(&self, bytes: usize, limits: Limits) -> Option<Missing> {
        let has_room = || self.ring.has_room(bytes) || self.spare.is_some();
        if self.recent.is_none() {
            Some(Missing::Recent)
        } else if self.index.is_none() {
            Some(Missing::Index)
        } else {
            (self.ring.len() < limits.segments && !has_room()).then_some(Missing::Segment)
        }
    }

    /// Takes the memory, unless another thread was faster.
    pub(super) fn supply(&mut self, missing: Missing, block: BlockMut, limits: Limits) {
        match missing {
            Missing::Recent if self.recent.is_none() => {
                (self.recent, self.capacity) = (Some(Recent::new(block)), limits.capacity);
            }
            Missing::Index if self.index.is_none() => self.index = Some(Index::new(block)),
            Missing::Segment if self.spare.is_none() => self.spare = Some(block),
            _ => {}
        }
    }

    /// Notes that a block was read for a version, the newest of its key in a table. Keeps it if that has happened
    /// before, or if the ring may still grow.
    pub(super) fn note_read(
        &mut self,
        at: RecordKey<'_>,
        version: (SeqNo, EntryKind, &[u8]),
        limits: Limits,
    ) {
        let was_read = self.recent.as_mut().is_some_and(|recent| recent.note(at.hash));
        if was_read || self.ring.len() < limits.segments {
            self.insert(at, version, limits);
        }
    }

    /// Inserts the newest version of a key in a table, in place of that of another table.
    fn insert(
        &mut self,
        at: RecordKey<'_>,
        (seq, kind, value): (SeqNo, EntryKind, &[u8]),
        limits: Limits,
    ) {
        if let Some(old) = self.position(at) {
            if let Some(record) = self.ring.record(old) {
                if record.is_of(at.table) {
                    return;
                }
                // A compaction that carries the version over may not have ended yet.
                let next = record.next;
                if (record.seq, record.kind, record.value) == (seq, kind, value)
                    && self.ring.set_tables(old, at.table, next).is_some()
                {
                    return;
                }
            }
            self.forget(old);
        }
        self.make_room(ring::record_bytes(at.key.len(), value.len()), limits);
        let record = Record { at, next: at.table, seq, kind, is_used: false, value };
        let position = self.ring.append(record);
        if let Some((position, index)) = position.zip(self.index.as_mut()) {
            index.add(at.hash, position);
        }
    }

    /// Prefetches the place of a key in the index.
    pub(super) fn prefetch_index(&self, hash: u64) {
        if let Some(index) = &self.index {
            index.prefetch(hash);
        }
    }

    /// Prefetches the records that may be of a key.
    pub(super) fn prefetch_records(&self, hash: u64) {
        if let Some(index) = &self.index {
            index.candidates(hash).for_each(|position| self.ring.prefetch(position));
        }
    }

    /// Notes that a compaction of the tables `from`, in ascending order, writes a version as the newest one of its
    /// key in a table.
    pub(super) fn carry(
        &mut self,
        from: &[u64],
        at: RecordKey<'_>,
        version: (SeqNo, EntryKind, &[u8]),
    ) -> Option<()> {
        let position = self.position(at)?;
        let record = self.ring.record(position)?;
        let mut tables = [record.next, record.at.table].into_iter();
        let source = tables.find(|table| from.binary_search(table).is_ok())?;
        let is_same = (record.seq, record.kind, record.value) == version;
        let carried = if is_same {
            // Until the compaction ends, lookups find the version in the source.
            self.ring.set_tables(position, source, at.table)
        } else if version.0 <= record.seq {
            // The job has changed the version, for example moved its value. Until it ends, the record is useful.
            return Some(());
        } else {
            // Most lookups find the newer version, in another source, before they come to that of the record.
            let (seq, kind, value) = version;
            let record = Record { at, next: at.table, seq, kind, is_used: record.is_used, value };
            self.ring.replace(position, record)
        };
        if carried.is_none() {
            self.forget(position);
        }
        carried
    }

    /// Makes room for a record in the newest segment, if there is memory.
    fn make_room(&mut self, bytes: usize, limits: Limits) {
        let is_full = self.ring.len() >= limits.segments;
        if is_full {
            // The oldest segment becomes empty while the newest one fills.
            for _ in 0..PASSED_MAX {
                let (passed, filled) = self.ring.passed_and_filled();
                if passed >= filled + bytes || !self.pass_oldest(true) {
                    break;
                }
            }
        }
        if !self.ring.has_room(bytes) {
            if is_full {
                self.spare = self.remove_oldest();
            }
            if let Some(segment) = self.spare.take() {
                self.ring.add_segment(segment);
            }
        }
    }

    /// Lets the oldest record leave; if it was used and `keeps_used`, moves it to the end instead. Returns
    /// false if the oldest segment has no more records.
    fn pass_oldest(&mut self, keeps_used: bool) -> bool {
        let Some(position) = self.ring.pass_oldest() else { return false };
        let record = self.ring.record(position);
        let is_kept = keeps_used && record.as_ref().is_some_and(|record| record.is_used);
        let Some((hash, index)) = record.map(|it| it.at.hash).zip(self.index.as_mut()) else {
            return true;
        };
        // A record that the index has lost leaves.
        if index.remove(hash, position)
            && is_kept
            && let Some(moved) = self.ring.move_to_end(position)
        {
            index.add(hash, moved);
        }
        true
    }

    fn forget(&mut self, position: Position) {
        let hash = self.ring.record(position).map(|record| record.at.hash);
        if let Some((hash, index)) = hash.zip(self.index.as_mut()) {
            index.remove(hash, position);
        }
    }

    fn remove_oldest(&mut self) -> Option<BlockMut> {
        while self.pass_oldest(false) {}
        self.ring.remove_oldest()
    }

    /// Returns false if what finds the records is far too large or too small for the limits.
    pub(super) fn suits(&self, limits: Limits) -> bool {
        self.capacity == 0 || (self.capacity / 2..=self.capacity * 4).contains(&limits.capacity)
    }

    /// Releases a segment if there are more than the limit and the one that a record's arrival empties.
    pub(super) fn shorten(&mut self, limits: Limits) {
        if self.ring.len() > limits.segments + 1 {
            drop(self.remove_oldest());
        }
    }

    /// Releases all segments beyond the limit.
    pub(super) fn release(&mut self, limits: Limits) {
        self.spare = None;
        while self.ring.len() > limits.segments {
            drop(self.remove_oldest());
        }
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Part({} segments)", self.ring.len())
    }
}
