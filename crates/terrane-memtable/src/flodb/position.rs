//! A position in a FloDB memtable: an entry of the lower level, and the partitions drained for it.
//!
//! A cursor walks the lower level. It may move within the partitions that were drained since it was
//! last sought. At the end of those it drains the next partition and searches again, because the
//! drain may have inserted a nearer entry.
//!
//! Invariants:
//! 1. The position is on an entry of a drained partition, or on no entry.
//! 2. The entry is in the lower level of the memtable, and pinned if that level may free it.

use super::drain::DrainScope;
use super::lower::{Lower, LowerPosition};
use super::{FloDb, Membuffer};
use crate::entry::{Entry, SeqNo};
use crate::skiplist::Pin;
use crate::structure::{ReadBounds, StructurePosition};

/// A position in a FloDB memtable.
#[derive(Debug, Clone, Default)]
pub(crate) struct FloDbPosition {
    place: LowerPosition,
    /// The drained partitions: from the first number up to, but excluding, the second.
    drained: (u32, u32),
    /// Whether the cursor skips the front level, and drains nothing.
    is_drained_only: bool,
}

impl FloDbPosition {
    /// Resets the drained partitions for a new seek, because they may have received entries since.
    fn anew(&self) -> Self {
        let drained = if self.is_drained_only { self.drained } else { (0, 0) };
        Self { place: LowerPosition::default(), drained, is_drained_only: self.is_drained_only }
    }

    fn at_first(&self, memtable: &FloDb) -> Self {
        self.anew().forward(memtable, 0, LowerPosition::first)
    }

    fn at_last(&self, memtable: &FloDb) -> Self {
        let last = memtable.membuffer.get().map_or(1, |front| front.partitions.len()) - 1;
        self.anew().backward(memtable, last, LowerPosition::last)
    }

    fn at_or_after(&self, memtable: &FloDb, key: &[u8], seq: SeqNo) -> Self {
        let partition = memtable.partition_of(key);
        self.anew()
            .forward(memtable, partition, |lower| LowerPosition::at_or_after(lower, key, seq))
    }

    fn at_before(&self, memtable: &FloDb, key: &[u8], seq: SeqNo) -> Self {
        let partition = memtable.partition_of(key);
        self.anew().backward(memtable, partition, |lower| LowerPosition::before(lower, key, seq))
    }

    /// # Safety
    /// `memtable` is the memtable that the position was created with.
    #[inline]
    unsafe fn after(&self, memtable: &FloDb) -> Self {
        // SAFETY: the caller passes the memtable of the position.
        let Some(entry) = (unsafe { self.entry(memtable) }) else { return self.elsewhere() };
        let partition = self.partition_at(memtable, entry.key, self.drained.1.wrapping_sub(1));
        // SAFETY: the caller passes the memtable of the position, and `forward` its lower level.
        self.elsewhere().forward(memtable, partition, |lower| unsafe { self.place.after(lower) })
    }

    /// # Safety
    /// `memtable` is the memtable that the position was created with.
    unsafe fn at_previous(&self, memtable: &FloDb) -> Self {
        // SAFETY: the caller passes the memtable of the position.
        let Some(entry) = (unsafe { self.entry(memtable) }) else { return self.elsewhere() };
        let partition = self.partition_at(memtable, entry.key, self.drained.0);
        // SAFETY: the caller passes the memtable of the position, and `backward` its lower level.
        self.elsewhere()
            .backward(memtable, partition, |lower| unsafe { self.place.before_this(lower) })
    }

    /// Returns a position on no entry, with the same drained partitions.
    fn elsewhere(&self) -> Self {
        let Self { drained, is_drained_only, .. } = *self;
        Self { place: LowerPosition::default(), drained, is_drained_only }
    }

    /// Returns the partition of `key`, which must be drained. `only` is that partition if just one
    /// is drained.
    #[inline]
    fn partition_at(&self, memtable: &FloDb, key: &[u8], only: u32) -> usize {
        if self.drained.1 - self.drained.0 == 1 {
            return only as usize;
        }
        memtable.partition_of(key)
    }

    /// Moves to the entry that `look` finds at or after the start of a partition.
    #[inline]
    fn forward(
        mut self,
        memtable: &FloDb,
        partition: usize,
        look: impl Fn(&Lower) -> LowerPosition,
    ) -> Self {
        let lower = &memtable.lower;
        let Some(membuffer) = memtable.membuffer.get() else {
            return Self { place: look(lower), ..self };
        };
        self.drain_to(memtable, membuffer, partition);
        loop {
            let place = look(lower);
            if self.drained == (0, membuffer.partitions.len() as u32) {
                return Self { place, ..self };
            }
            // SAFETY: `look` searched this level.
            let there = unsafe { place.entry(lower) };
            let last = match there {
                Some(entry) => membuffer.partition_of(entry.key),
                None => membuffer.partitions.len() - 1,
            };
            if last < self.drained.1 as usize {
                return Self { place, ..self };
            }
            // Not all partitions up to the found entry are drained; one may have a nearer entry.
            self.extend_forward(memtable, membuffer, last);
        }
    }

    /// Moves to the entry that `look` finds at or before the end of a partition.
    #[inline]
    fn backward(
        mut self,
        memtable: &FloDb,
        partition: usize,
        look: impl Fn(&Lower) -> LowerPosition,
    ) -> Self {
        let lower = &memtable.lower;
        let Some(membuffer) = memtable.membuffer.get() else {
            return Self { place: look(lower), ..self };
        };
        self.drain_to(memtable, membuffer, partition);
        loop {
            let place = look(lower);
            // SAFETY: `look` searched this level.
            let there = unsafe { place.entry(lower) };
            let first = there.map_or(0, |entry| membuffer.partition_of(entry.key));
            if first >= self.drained.0 as usize {
                return Self { place, ..self };
            }
            self.extend_backward(memtable, membuffer, first);
        }
    }

    /// Makes `partition` one of the drained ones.
    #[inline]
    fn drain_to(&mut self, memtable: &FloDb, membuffer: &Membuffer, partition: usize) {
        let (first, end) = (self.drained.0 as usize, self.drained.1 as usize);
        if (first..end).contains(&partition) {
            return;
        }
        // Partition numbers fit in 32 bits, because there are at most 65536.
        if first == end || partition + 1 < first || partition > end {
            self.drained = (partition as u32, partition as u32);
        }
        if partition < self.drained.0 as usize {
            self.extend_backward(memtable, membuffer, partition);
        } else {
            self.extend_forward(memtable, membuffer, partition);
        }
    }

    /// Drains partitions up to `last`, but stops after the first that had versions, because one of
    /// these versions may be nearer.
    fn extend_forward(&mut self, memtable: &FloDb, membuffer: &Membuffer, last: usize) {
        let mut moved = 0;
        while moved == 0 && self.drained.1 as usize <= last {
            moved = memtable.drain_partition(membuffer, self.drained.1 as usize, DrainScope::All);
            self.drained.1 += 1;
        }
    }

    /// Like [`Self::extend_forward`], but drains partitions down to `first`.
    fn extend_backward(&mut self, memtable: &FloDb, membuffer: &Membuffer, first: usize) {
        let mut moved = 0;
        while moved == 0 && self.drained.0 as usize > first {
            self.drained.0 -= 1;
            moved = memtable.drain_partition(membuffer, self.drained.0 as usize, DrainScope::All);
        }
    }
}

impl StructurePosition<FloDb> for FloDbPosition {
    #[inline]
    unsafe fn entry<'a>(&'a self, memtable: &'a FloDb) -> Option<Entry<'a>> {
        // SAFETY: the caller passes the memtable of the position, which owns its lower level.
        unsafe { self.place.entry(&memtable.lower) }
    }

    fn pin(&self) -> Pin {
        self.place.pin()
    }

    fn seek_first(&mut self, memtable: &FloDb) {
        *self = self.at_first(memtable);
    }

    fn seek_last(&mut self, memtable: &FloDb) {
        *self = self.at_last(memtable);
    }

    fn seek(&mut self, memtable: &FloDb, key: &[u8], seq: SeqNo, _bounds: &ReadBounds) {
        *self = self.at_or_after(memtable, key, seq);
    }

    fn seek_before(&mut self, memtable: &FloDb, key: &[u8], seq: SeqNo, _bounds: &ReadBounds) {
        *self = self.at_before(memtable, key, seq);
    }

    #[inline]
    unsafe fn next(&mut self, memtable: &FloDb, _bounds: &ReadBounds) {
        // SAFETY: the caller passes the memtable of the position.
        *self = unsafe { self.after(memtable) };
    }

    unsafe fn previous(&mut self, memtable: &FloDb, _bounds: &ReadBounds) {
        // SAFETY: the caller passes the memtable of the position.
        *self = unsafe { self.at_previous(memtable) };
    }

    fn skip_front_level(&mut self, memtable: &FloDb) {
        let partitions = memtable.membuffer.get().map_or(0, |front| front.partitions.len());
        // Partition numbers fit in 32 bits, because there are at most 65536.
        *self = Self { drained: (0, partitions as u32), is_drained_only: true, ..Self::default() };
    }
}

impl FloDb {
    #[inline]
    fn partition_of(&self, key: &[u8]) -> usize {
        self.membuffer.get().map_or(0, |membuffer| membuffer.partition_of(key))
    }
}
