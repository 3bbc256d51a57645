//! The interface of a memtable's structure, which a new kind implements.
//!
//! A kind is a [`Settings`] type, which has examples and builds a [`Structure`], and the
//! structure's [`StructurePosition`]. `kinds` registers the settings of all kinds. All structures
//! follow the same rules, which the conformance tests check: entries are visited in key order, new
//! before old within a key; a read finds every version that was inserted before it began; entries
//! are neither changed nor removed, except that a structure with a [`FrontLevel`] reclaims
//! versions.

use std::sync::Arc;

use crate::entry::{Entry, SeqNo};
use crate::key_span::KeySpan;
use crate::pool::Pool;
use crate::readers::{ReaderView, Readers};
use crate::scan_pause::FrontPause;
use crate::skiplist::versions::Pin;

/// The outcome of an insert.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InsertOutcome {
    /// The version is in a front level.
    pub is_in_membuffer: bool,
    /// The number of older versions that were reclaimed.
    pub reclaimed: u32,
    /// Once the version is visible, [`crate::Memtable::reclaim_hidden`] may reclaim an older one.
    pub needs_reclaim: bool,
    /// The front level should be drained.
    pub needs_drain: bool,
}

/// Whether a reader holds the sequence number at which it reads, so that no version that it needs is
/// reclaimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    Held,
    NotHeld,
}

/// The requested version may have been reclaimed, because a newer one replaced it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overwritten;

/// The settings of a kind of memtable.
pub(crate) trait Settings: Copy + 'static {
    type Structure: Structure;

    /// Named settings from which tests and benchmarks draw: at least one, and one for each path
    /// that the settings select in the structure.
    const EXAMPLES: &'static [(&'static str, Self)];

    /// The settings with the fewest parts, for models that visit all interleavings.
    const SMALLEST: Self;

    /// Returns the usual settings for a memtable of this many entries.
    fn usual(entries: usize) -> Self;

    /// Creates an empty structure whose memory comes from `pool`. A structure that divides its keys
    /// calls `span` for the span of the keys it may expect, which is `None` if it is to be learned.
    fn build(self, pool: Arc<Pool>, span: impl FnOnce() -> Option<KeySpan>) -> Self::Structure;
}

/// The answer of a structure to a lookup; see [`Structure::look_up`].
pub(crate) type Found<'a> = Result<Option<(Entry<'a>, Pin)>, Overwritten>;

/// A concurrent structure that holds the entries of a memtable.
pub(crate) trait Structure: Send + Sync {
    type Position: StructurePosition<Self>;

    /// Whether the structure answers [`Structure::counts`]; otherwise the memtable counts.
    const COUNTS_ENTRIES: bool = false;

    /// Whether [`Structure::insert_all`] is cheaper than one insert after the other.
    const INSERTS_GROUPS: bool = false;

    /// Inserts a version. No two versions of a key may have the same sequence number. `view` is as
    /// in [`crate::Memtable::update`].
    fn insert(&self, entry: &Entry<'_>, view: &ReaderView<'_>) -> InsertOutcome;

    /// Reclaims versions of `key` that are older than its version `seq` and that no reader needs.
    fn reclaim_hidden(&self, _key: &[u8], _seq: SeqNo, _view: &ReaderView<'_>) {}

    /// Inserts several versions.
    fn insert_all(&self, entries: &[Entry<'_>]) {
        for entry in entries {
            self.insert(entry, &ReaderView::new(&|| 0));
        }
    }

    /// Returns the newest version of `key` at or below `seq`, in a node that is never refilled.
    fn get(&self, key: &[u8], seq: SeqNo) -> Option<Entry<'_>>;

    /// As [`Structure::get`], but the entry may be refilled once the pin is dropped. Returns an
    /// error if the requested version may have been reclaimed and is not held.
    #[inline]
    fn look_up(&self, key: &[u8], seq: SeqNo, _hold: Hold) -> Found<'_> {
        Ok(self.get(key, seq).map(|entry| (entry, Pin::NONE)))
    }

    /// As [`Structure::look_up`] for several keys at a sequence number that is held. Calls `found` with the
    /// index of each key.
    fn get_all<'a>(&'a self, keys: &[&[u8]], seq: SeqNo, found: &mut dyn FnMut(usize, Found<'a>)) {
        for (at, key) in keys.iter().enumerate() {
            found(at, self.look_up(key, seq, Hold::Held));
        }
    }

    /// Returns the number of entries and their bytes of keys and values, if the structure counts
    /// them.
    fn counts(&self) -> (usize, usize) {
        (0, 0)
    }

    /// Returns the bytes in use and the bytes allocated.
    fn usage(&self) -> (usize, usize);

    /// Returns the bytes in use by an empty structure that count against the size of the memtable.
    fn charged_bytes(&self) -> usize {
        0
    }

    /// Returns the bytes that came into use after the creation and do not count against the size of
    /// the memtable.
    fn exempt_bytes(&self) -> usize {
        0
    }

    /// Sorts the entries that are not sorted yet, because no more are inserted.
    fn freeze(&self) {}

    /// Returns the span of the keys, by which the next memtable divides its keys.
    fn key_span(&self) -> Option<KeySpan> {
        None
    }

    /// Returns the front level, if the structure has one.
    #[inline]
    fn front_level(&self) -> Option<&dyn FrontLevel> {
        None
    }
}

/// A position in a structure, on an entry or on no entry. The default is on no entry.
///
/// A position does not borrow its structure. The methods that take the structure require the
/// structure in which the position was last sought, which keeps its entry alive.
pub(crate) trait StructurePosition<S: ?Sized>: Default + Send + Sync {
    /// Whether the position uses the bounds it is passed.
    const USES_BOUNDS: bool = false;

    /// Returns the entry at the position.
    ///
    /// # Safety
    /// All calls on this position have passed this very structure.
    unsafe fn entry<'a>(&'a self, structure: &'a S) -> Option<Entry<'a>>;

    /// Returns a pin that keeps the entry from being refilled once the position moves on.
    fn pin(&self) -> Pin {
        Pin::NONE
    }

    /// Moves to the first entry.
    fn seek_first(&mut self, structure: &S);

    /// Moves to the last entry.
    fn seek_last(&mut self, structure: &S);

    /// Moves to the first entry at or after `(key, seq)`.
    fn seek(&mut self, structure: &S, key: &[u8], seq: SeqNo, bounds: &ReadBounds);

    /// Moves to the last entry before `(key, seq)`.
    fn seek_before(&mut self, structure: &S, key: &[u8], seq: SeqNo, bounds: &ReadBounds);

    /// Moves to the next entry, or off the end after the last entry.
    ///
    /// # Safety
    /// All calls on this position have passed this very structure.
    unsafe fn next(&mut self, structure: &S, bounds: &ReadBounds);

    /// Moves to the previous entry, or off the end before the first entry.
    ///
    /// # Safety
    /// All calls on this position have passed this very structure.
    unsafe fn previous(&mut self, structure: &S, bounds: &ReadBounds);

    /// Walks only entries behind the front level from now on, and drains nothing.
    fn skip_front_level(&mut self, _structure: &S) {}
}

/// The range of keys within which a reader promises to stay; without bounds, all keys.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReadBounds {
    /// No key before this is read.
    pub(crate) first: Option<Box<[u8]>>,
    /// No key at or after this is read.
    pub(crate) end: Option<Box<[u8]>>,
}

/// A front level: a small structure that takes writes before the structure that cursors walk, and
/// is drained into it. FloDB's is the Membuffer.
///
/// A memtable with a front level reclaims versions that its readers do not need. A reader that
/// reads several times at one sequence number must therefore hold that number; see
/// [`crate::Readers`].
pub trait FrontLevel {
    /// Returns whether [`FrontLevel::enable`] would put an unused front level to use.
    fn needs_enabling(&self) -> bool;

    /// Returns whether the front level was prepared.
    fn is_prepared(&self) -> bool;

    /// Requests that [`FrontLevel::drain`] prepares the front level.
    fn request(&self);

    /// Learns the key distribution and creates the front level if it was waiting for that, which takes milliseconds for
    /// a large one.
    fn prepare(&self);

    /// Enables the front level if it was waiting for keys, and prepares it first unless that was done. Must not
    /// run concurrently with inserts, and every later insert must have a larger sequence number
    /// than any entry present. Concurrent reads below that number are fine.
    fn enable(&self);

    /// Prefetches the memory that [`crate::Memtable::update`] of this key starts with.
    fn prefetch(&self, key: &[u8]);

    /// Prefetches the memory that [`crate::Memtable::update`] reads next, once the memory
    /// that [`FrontLevel::prefetch`] requests has arrived.
    fn prefetch_version(&self, key: &[u8]);

    /// Drains the partitions that are filling up, for background threads. Returns the number of
    /// versions it moved.
    fn drain(&self) -> usize;

    /// Drains everything. Cursors need not wait for that; they drain the ranges they enter.
    fn drain_all(&self);

    /// Pauses [`FrontLevel::drain`], and inserts that find no room in the front level, until the
    /// result is dropped. Such inserts help with [`FrontLevel::drain_up_to`] meanwhile. Waits for
    /// another pause to end.
    fn pause(&self) -> FrontPause<'_>;

    /// Drains every version at or below `seq`, and none above it.
    fn drain_up_to(&self, seq: SeqNo);

    /// Returns whether [`FrontLevel::drain`] would free space.
    fn needs_drain(&self) -> bool;

    /// Begins a pass over the front level that reclaims versions, for an almost full memtable with `left` free bytes:
    /// unless one is under way, or too few versions were overwritten since the last one. From the first pass on,
    /// each write reclaims the versions that it hides. Returns the same as [`FrontLevel::reclaiming_steps`].
    fn begin_reclaiming(&self, left: usize) -> usize;

    /// Returns about the number of steps that the pass under way still takes; 0 if none is.
    fn reclaiming_steps(&self) -> usize;

    /// Takes a step of the pass under way, unless writers are paused. Several threads may take steps at the same
    /// time. Returns the number of versions that it drained.
    fn reclaim_step(&self, readers: &dyn Readers) -> usize;

    /// Returns the number of versions that were drained so far.
    fn drained(&self) -> usize;

    /// Returns the number of versions that were overwritten in the structure behind the front level,
    /// or reclaimed by a drain, since the last call.
    fn take_overwritten(&self) -> usize;
}
