//! A memtable of any kind, with the range tombstones and counts that all kinds share.

use std::sync::Arc;

use crate::cursor::Cursor;
use crate::entry::{Entry, EntryKind, MAX_KEY_LEN, MAX_SEQ, MAX_VALUE_LEN, SeqNo};
use crate::entry_counts::EntryCounts;
use crate::key_span::KeySpan;
use crate::kinds::{AnyStructure, Config};
use crate::memory::MemoryUse;
use crate::pinned::PinnedValue;
use crate::pool::Pool;
use crate::range_tombstones::RangeTombstones;
use crate::readers::{ReaderView, Readers};
use crate::structure::{Found, FrontLevel, Hold, InsertOutcome, Overwritten};

/// The result of a lookup.
#[derive(Debug, Clone)]
pub enum Lookup {
    /// The newest version at or below the requested sequence number.
    Found(SeqNo, EntryKind, PinnedValue),
    /// The memtable has no such version.
    Absent,
    /// The version may have been reclaimed, because a newer one replaced it; look it up again with
    /// a newer sequence number. Only [`Memtable::update`] reclaims versions.
    Overwritten,
}

/// The keys that a new memtable expects; its front level is partitioned accordingly.
#[derive(Debug, Clone, Copy)]
pub enum ExpectedKeys<'m> {
    /// Any keys.
    Any,
    /// Unknown keys: a front level stays unused until [`FrontLevel::enable`] learns their
    /// distribution.
    Unknown,
    /// Keys like those of the memtable that the new one replaces.
    Like(&'m Memtable),
}

/// A write buffer. All methods may be called from any thread at any time.
#[derive(Debug)]
pub struct Memtable {
    pub(crate) structure: AnyStructure,
    range_tombstones: RangeTombstones,
    counts: EntryCounts,
    /// Bytes of the empty memtable that do not count against its size.
    empty_bytes: usize,
}

impl Memtable {
    /// Creates an empty memtable that expects any keys. Its memory comes from `pool` and returns
    /// there.
    pub fn new(config: Config, pool: &Arc<Pool>) -> Arc<Self> {
        Self::with_keys(config, pool, ExpectedKeys::Any)
    }

    /// Like [`Memtable::new`], but the caller states which keys to expect.
    pub fn with_keys(config: Config, pool: &Arc<Pool>, keys: ExpectedKeys<'_>) -> Arc<Self> {
        let span = || match keys {
            ExpectedKeys::Any => Some(KeySpan::all()),
            ExpectedKeys::Unknown => None,
            ExpectedKeys::Like(before) => before.structure.key_span(),
        };
        let mut memtable = Self {
            structure: config.build(Arc::clone(pool), span),
            range_tombstones: RangeTombstones::new(),
            counts: EntryCounts::default(),
            empty_bytes: 0,
        };
        memtable.empty_bytes = memtable.memory().used_bytes() - memtable.structure.charged_bytes();
        Arc::new(memtable)
    }

    /// Inserts a version of `key`, written at `seq`. No two versions of a key may have the same
    /// sequence number.
    ///
    /// # Panics
    /// When the key, the value or the sequence number is larger than the limits of this crate.
    pub fn insert(&self, key: &[u8], seq: SeqNo, kind: EntryKind, value: &[u8]) {
        self.update(key, seq, kind, value, || 0);
    }

    /// As [`Memtable::insert`], but a memtable that updates in place may reclaim versions that no
    /// reader needs. Lookups at a sequence number that is not held may then find
    /// [`Lookup::Overwritten`].
    ///
    /// # Panics
    /// When the key, the value or the sequence number is larger than the limits of this crate.
    #[allow(clippy::needless_pass_by_value, reason = "closures are passed")]
    #[inline]
    pub fn update(
        &self,
        key: &[u8],
        seq: SeqNo,
        kind: EntryKind,
        value: &[u8],
        readers: impl Readers,
    ) -> InsertOutcome {
        let entry = Entry { key, seq, kind, value };
        assert_in_limits(&entry);
        self.structure.insert(&entry, &ReaderView::new(&readers), &self.counts)
    }

    /// Reclaims versions of `key` that no reader needs. Call it once the version `seq` is visible, if
    /// its insert set [`InsertOutcome::needs_reclaim`].
    #[allow(clippy::needless_pass_by_value, reason = "closures are passed")]
    #[inline]
    pub fn reclaim_hidden(&self, key: &[u8], seq: SeqNo, readers: impl Readers) {
        self.structure.reclaim_hidden(key, seq, &ReaderView::new(&readers));
    }

    /// Returns whether [`Memtable::insert_all`] is cheaper than one insert after the other.
    pub fn takes_groups(&self) -> bool {
        self.structure.inserts_groups()
    }

    /// Inserts several versions. Kinds that [take groups](Memtable::takes_groups) search for
    /// several keys in parallel.
    ///
    /// # Panics
    /// As [`Memtable::insert`].
    pub fn insert_all(&self, entries: &[Entry<'_>]) {
        entries.iter().for_each(assert_in_limits);
        self.structure.insert_all(entries, &self.counts);
    }

    /// Returns the front level, if the kind has one. Such a memtable reclaims versions.
    #[inline]
    pub fn front_level(&self) -> Option<&dyn FrontLevel> {
        self.structure.front_level()
    }

    /// Deletes all versions of all keys in `[start, end)` that are older than `seq`; without an
    /// end, of all keys from `start` on. The tombstone belongs to a batch whose first sequence
    /// number is `first`, and which readers see as a whole; see [`RangeTombstones::insert`].
    ///
    /// # Panics
    /// When a key or the sequence number is larger than the limits of this crate.
    pub fn insert_range_tombstone(
        &self,
        start: &[u8],
        end: Option<&[u8]>,
        seq: SeqNo,
        first: SeqNo,
    ) {
        // An end may be the successor of a key of maximum length.
        let end_len = end.map_or(0, <[u8]>::len);
        assert!(start.len() <= MAX_KEY_LEN + 1 && end_len <= MAX_KEY_LEN + 1 && seq <= MAX_SEQ);
        self.range_tombstones.insert(start, end, seq, first);
    }

    /// Returns the newest version of `key` at or below `seq`, point tombstones included. Ignores
    /// range tombstones and versions that were reclaimed.
    #[inline]
    pub fn get(&self, key: &[u8], seq: SeqNo) -> Option<Entry<'_>> {
        self.structure.get(key, seq)
    }

    /// Returns the deleted ranges.
    pub fn range_tombstones(&self) -> &RangeTombstones {
        &self.range_tombstones
    }

    /// Creates a cursor on no entry.
    pub fn cursor(self: &Arc<Self>) -> Cursor {
        Cursor::new(Arc::clone(self))
    }

    /// Like [`Memtable::get`], but returns a value that keeps the memtable alive.
    pub fn get_pinned(
        self: &Arc<Self>,
        key: &[u8],
        seq: SeqNo,
    ) -> Option<(SeqNo, EntryKind, PinnedValue)> {
        match self.look_up_held(key, seq) {
            Lookup::Found(seq, kind, value) => Some((seq, kind, value)),
            Lookup::Absent | Lookup::Overwritten => None,
        }
    }

    /// As [`Memtable::get_pinned`], but distinguishes a version that may have been reclaimed from
    /// one that never existed.
    #[inline]
    pub fn look_up(self: &Arc<Self>, key: &[u8], seq: SeqNo) -> Lookup {
        self.look_up_as(key, seq, Hold::NotHeld)
    }

    /// As [`Memtable::look_up`], for a reader that holds `seq`, whose version is never reclaimed.
    #[inline]
    pub fn look_up_held(self: &Arc<Self>, key: &[u8], seq: SeqNo) -> Lookup {
        self.look_up_as(key, seq, Hold::Held)
    }

    /// Looks up several keys at a sequence number that the caller holds, as [`Memtable::look_up_held`] does for
    /// one, and calls `answer` with the index of each key and its answer. The default kind searches for several
    /// keys in parallel.
    pub fn look_up_all_held(
        self: &Arc<Self>,
        keys: &[&[u8]],
        seq: SeqNo,
        mut answer: impl FnMut(usize, Lookup),
    ) {
        self.structure.get_all(keys, seq, &mut |at, found| {
            answer(at, self.answer(found));
        });
    }

    #[inline]
    fn look_up_as(self: &Arc<Self>, key: &[u8], seq: SeqNo, hold: Hold) -> Lookup {
        self.answer(self.structure.look_up(key, seq, hold))
    }

    /// Converts the structure's answer to a lookup.
    #[inline]
    fn answer(self: &Arc<Self>, found: Found<'_>) -> Lookup {
        match found {
            Ok(None) => Lookup::Absent,
            Err(Overwritten) => Lookup::Overwritten,
            Ok(Some((entry, pin))) => {
                // SAFETY: the entry lies in the arena of this memtable, and the structure returned
                // the pin that keeps it, or `Pin::NONE` if it is never refilled.
                let value = unsafe { PinnedValue::with_pin(self, entry.value, pin) };
                Lookup::Found(entry.seq, entry.kind, value)
            }
        }
    }

    /// Returns the number of entries, without range tombstones and reclaimed versions.
    pub fn len(&self) -> usize {
        self.structure.counts(&self.counts).0
    }

    /// Returns whether the memtable has neither entries nor range tombstones.
    pub fn is_empty(&self) -> bool {
        self.structure.is_empty(&self.counts) && self.range_tombstones.is_empty()
    }

    /// Sorts entries that are not in order yet, which the first range read would otherwise do. Call
    /// this method once no more entries are inserted.
    pub fn freeze(&self) {
        self.structure.freeze();
    }

    /// Returns the bytes that count against the size of the memtable: those in use beyond an empty
    /// memtable, plus a table of buckets. Returns 0 for an empty memtable, so that it takes at
    /// least one entry however low its limit is.
    pub fn filled_bytes(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        let exempt = self.empty_bytes + self.structure.exempt_bytes();
        self.memory().used_bytes().saturating_sub(exempt)
    }

    /// Returns the memory that the memtable takes, by use.
    pub fn memory(&self) -> MemoryUse {
        let (used, allocated) = self.structure.usage();
        let (_, data_bytes) = self.structure.counts(&self.counts);
        let tombstones = self.range_tombstones.bytes();
        MemoryUse {
            data_bytes,
            metadata_bytes: used.saturating_sub(data_bytes) + tombstones + size_of::<Self>(),
            unused_bytes: allocated.saturating_sub(used),
        }
    }
}

#[inline]
fn assert_in_limits(entry: &Entry<'_>) {
    let Entry { key, seq, value, .. } = *entry;
    assert!(key.len() <= MAX_KEY_LEN && value.len() <= MAX_VALUE_LEN && seq <= MAX_SEQ);
}
