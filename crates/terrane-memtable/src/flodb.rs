//! FloDB's memtable (Balmau et al., EuroSys 2017): a Membuffer in front of a skip-list.
//!
//! A write goes to the Membuffer, a hash table, and from there to the lower level later; if it
//! finds no place it goes to the lower level at once. A read looks into the Membuffer, then into
//! the lower level: the first version found is the newest. What is in the way of the papers' simple
//! scheme is that our writes have their sequence number before they are inserted, are inserted in
//! any order, and are visible later; and that snapshots are exact. So:
//!
//! - a bucket knows how new the keys are that it sent to the lower level, and lets no older ones in
//!   ([`bucket`]);
//! - versions of a key stay linked to the newest one for as long as someone may ask for them. An
//!   update is in place where no one does: the memory of a version that is hidden from all readers
//!   is used for the next one ([`membuffer`]). A reader that is not registered anywhere and comes
//!   too late for its version is told so, and looks again with a newer sequence number;
//! - keys are parted by where those of the memtable before lay. One that has none before it takes
//!   writes in the lower level only, until there are enough to learn that from ([`FloDb::learn`]);
//! - the lower level is what cursors walk. Before a cursor enters a range of keys the partition of
//!   the Membuffer for it is drained ([`position`], [`drain`]): what is written later is newer than
//!   what a scan looks for. So scans neither block writers nor restart, and small ones drain
//!   little.
//!
//! The paper's scans drain everything, restart when they meet something newer, and block writers
//! after some restarts; its updates swap the value of an entry in the lower level.

mod bucket;
mod drain;
mod hash;
mod lower;
mod membuffer;
mod partition;
mod position;
mod span;

use std::sync::{Arc, OnceLock};

pub use drain::DrainInsert;
use drain::DrainScope;
use lower::Lower;
pub use lower::LowerLevel;
use membuffer::{LookupMiss, Membuffer};
pub(crate) use position::FloDbPosition;
pub(crate) use span::KeySpan;

use crate::entry::{Entry, SeqNo};
use crate::pool::Pool;
use crate::skiplist::{NodeRef, Overwritten, Pin};
use crate::sync::{AtomicUsize, Ordering};

/// The settings of a FloDB memtable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloDbConfig {
    /// Cache lines of the Membuffer, each with room for six keys; 0 for no Membuffer.
    pub buckets: usize,
    /// The Membuffer has two to the power of this many partitions; at most 16.
    pub partition_bits: u8,
    /// What the Membuffer is drained into.
    pub lower: LowerLevel,
    /// How versions are moved there.
    pub insert: DrainInsert,
    /// Whether versions that no one asks for are forgotten.
    pub update: Update,
}

/// So many keys tell where others lie: all but one of a thousand lie between them.
const SAMPLE_KEYS_MIN: usize = if cfg!(miri) { 20 } else { 1000 };

/// What becomes of a version that no one asks for any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// Its memory is used for the next one of its key.
    InPlace,
    /// It stays.
    Versions,
}

/// What has become of a write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InsertOutcome {
    /// It completed in the Membuffer.
    pub is_in_membuffer: bool,
    /// Versions that it made superfluous, and that are no more.
    pub reclaimed: usize,
    /// The Membuffer had better be drained.
    pub wants_drain: bool,
}

/// A Membuffer and the lower level.
pub(crate) struct FloDb {
    lower: Lower,
    /// Set at once, or by [`FloDb::learn`], or never.
    membuffer: OnceLock<Membuffer>,
    buckets: usize,
    partitions: usize,
    insert: DrainInsert,
    update: Update,
    /// Versions, and their bytes of keys and values, that there was no Membuffer to count for.
    entries: AtomicUsize,
    data_bytes: AtomicUsize,
    drained: AtomicUsize,
}

impl FloDb {
    /// Without a span there is no Membuffer until it has learned one.
    pub(crate) fn new(config: FloDbConfig, span: Option<KeySpan>, pool: Arc<Pool>) -> Self {
        let partitions = 1 << config.partition_bits.min(16);
        let membuffer = OnceLock::new();
        if let Some(span) = span.filter(|_| config.buckets > 0) {
            membuffer.get_or_init(|| Membuffer::new(config.buckets, partitions, span));
        }
        Self {
            lower: Lower::new(config.lower, pool),
            membuffer,
            buckets: config.buckets,
            partitions,
            insert: config.insert,
            update: config.update,
            entries: AtomicUsize::new(0),
            data_bytes: AtomicUsize::new(0),
            drained: AtomicUsize::new(0),
        }
    }

    /// Whether there are enough keys to tell where the next ones will lie.
    pub(crate) fn wants_membuffer(&self) -> bool {
        self.buckets > 0
            && self.membuffer.get().is_none()
            && self.entries.load(Ordering::Relaxed) >= SAMPLE_KEYS_MIN
    }

    /// Begins to use the Membuffer; see [`crate::Memtable::learn`]. Answers the bytes of its table.
    pub(crate) fn enable_membuffer(&self) -> usize {
        if !self.wants_membuffer() {
            return 0;
        }
        let span = self.span();
        self.membuffer.get_or_init(|| Membuffer::new(self.buckets, self.partitions, span)).bytes()
    }

    /// Asks for what adding a version of this key begins with.
    #[inline]
    pub(crate) fn prefetch(&self, key: &[u8]) {
        if let Some(membuffer) = self.membuffer.get() {
            membuffer.prefetch(key);
        }
    }

    /// Asks for what it goes on with, once that has come.
    #[inline]
    pub(crate) fn prefetch_version(&self, key: &[u8]) {
        if let Some(membuffer) = self.membuffer.get() {
            membuffer.prefetch_version(key);
        }
    }

    /// Adds a version; see [`Membuffer::add`].
    #[inline]
    pub(crate) fn insert(
        &self,
        version: &Entry<'_>,
        horizon: impl FnOnce() -> SeqNo,
    ) -> InsertOutcome {
        let Some(membuffer) = self.membuffer.get() else {
            self.lower.insert(version);
            self.entries.fetch_add(1, Ordering::Relaxed);
            self.data_bytes.fetch_add(version.data_bytes(), Ordering::Relaxed);
            return InsertOutcome::default();
        };
        let added = match self.update {
            Update::InPlace => membuffer.add(&self.lower, version, horizon),
            Update::Versions => membuffer.add(&self.lower, version, || 0),
        };
        if !added.is_stored {
            self.lower.insert(version);
        }
        InsertOutcome {
            is_in_membuffer: added.is_stored,
            reclaimed: added.reclaimed,
            wants_drain: added.wants_drain,
        }
    }

    /// The newest version of `key` that is not newer than `seq`, and what keeps it as it is.
    #[inline]
    pub(crate) fn get(
        &self,
        key: &[u8],
        seq: SeqNo,
    ) -> Result<Option<(NodeRef<'_>, Pin)>, Overwritten> {
        if let Some(membuffer) = self.membuffer.get() {
            match membuffer.get(&self.lower, key, seq) {
                Ok(Some(found)) => return Ok(Some((found.node, found.pin))),
                Ok(None) => {}
                Err(LookupMiss::Overwritten) => return Err(Overwritten),
                Err(LookupMiss::DrainFirst) => self.drain_for(membuffer, key),
            }
        }
        let found = self.lower.get(key, seq)?;
        Ok(found.map(|node| (node, Pin::NONE)))
    }

    /// Drains what is where `key` is, so that a search finds what many steps would have to.
    #[cold]
    fn drain_for(&self, membuffer: &Membuffer, key: &[u8]) {
        self.drain(membuffer, membuffer.partition_of(key), DrainScope::All);
    }

    /// As [`FloDb::get`], for as long as the memtable lives.
    pub(crate) fn get_permanent(&self, key: &[u8], seq: SeqNo) -> Option<Entry<'_>> {
        let (node, _pin) = self.get(key, seq).ok().flatten()?;
        // SAFETY: nodes of this level have versions.
        unsafe { node.versions() }.retain();
        Some(node.entry())
    }

    /// Drains what is full, leaving out what is hot unless that does not suffice. Answers how many
    /// versions were moved.
    pub(crate) fn drain_some(&self) -> usize {
        let Some(membuffer) = self.membuffer.get() else { return 0 };
        let mut drained = 0;
        for (number, partition) in membuffer.partitions.iter().enumerate() {
            // Once at it, also what is soon due.
            if partition.dirty() * 4 > partition.slots() {
                drained += self.drain(membuffer, number, DrainScope::Cold);
                if partition.dirty() * 4 > partition.slots() * 3 {
                    drained += self.drain(membuffer, number, DrainScope::All);
                }
            }
        }
        drained
    }

    pub(crate) fn wants_drain(&self) -> bool {
        let membuffer = self.membuffer.get();
        membuffer
            .is_some_and(|front| front.partitions.iter().any(partition::Partition::wants_drain))
    }

    /// Drains everything.
    pub(crate) fn drain_all(&self) {
        if let Some(membuffer) = self.membuffer.get() {
            for number in 0..membuffer.partitions.len() {
                self.drain(membuffer, number, DrainScope::All);
            }
        }
    }

    fn drain(&self, membuffer: &Membuffer, partition: usize, scope: DrainScope) -> usize {
        let drained = membuffer.drain(&self.lower, partition, scope, self.insert);
        if drained > 0 {
            self.drained.fetch_add(drained, Ordering::Relaxed);
        }
        drained
    }

    /// Where the keys lie that it holds, for the memtable after it.
    pub(crate) fn span(&self) -> KeySpan {
        match (self.lower.first_key(), self.lower.last_key()) {
            (Some(first), Some(last)) if first < last => KeySpan::between(first, last),
            _ => self.membuffer.get().map_or_else(KeySpan::all, |front| front.span().clone()),
        }
    }

    /// Versions that were added and not forgotten, and their bytes of keys and values.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let (entries, bytes) = self.membuffer.get().map_or((0, 0), Membuffer::counts);
        (
            entries + self.entries.load(Ordering::Relaxed),
            bytes + self.data_bytes.load(Ordering::Relaxed),
        )
    }

    /// Versions that were moved to the lower level.
    pub(crate) fn drained(&self) -> usize {
        self.drained.load(Ordering::Relaxed)
    }

    /// Bytes in use, and bytes taken from the allocator.
    pub(crate) fn usage(&self) -> (usize, usize) {
        let (used, allocated) = self.lower.usage();
        let Some(membuffer) = self.membuffer.get() else { return (used, allocated) };
        let free: usize = membuffer.partitions.iter().map(partition::Partition::free_bytes).sum();
        let table = membuffer.bytes();
        ((used + table).saturating_sub(free), allocated + table)
    }
}
