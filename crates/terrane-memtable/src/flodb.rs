//! FloDB's memtable (Balmau et al., EuroSys 2017): a Membuffer in front of an ordered lower level.
//!
//! A write goes to the Membuffer, a hash table, and later from there to the lower level; if no slot
//! is free, it goes to the lower level at once. A read looks into the Membuffer, then into the
//! lower level; the first version it finds is the newest. The paper's simple scheme does not
//! suffice here, because our writes get their sequence number before they are inserted, are
//! inserted in any order and become visible later, and because snapshots are exact. So:
//!
//! - a bucket records the largest sequence number that it has seen, and starts no chain with an
//!   older version ([`bucket`]);
//! - versions of a key stay linked to the newest one while a reader may need them. If none does,
//!   the update is in place: the hidden version is reclaimed, and its memory holds a later one
//!   ([`membuffer`], [`free_nodes`]). That happens once the newer version is visible: at the next write
//!   of the key, or once the memtable is almost full ([`reclaiming`],
//!   [`crate::Memtable::reclaim_hidden`]). A reader that does not hold its sequence number gets an error
//!   if its version was reclaimed, and retries with a newer one;
//! - the B-link tree overwrites in place as well: a version that is drained or inserted there
//!   replaces the version that it hides (`btree::in_place`). The skip-list keeps all its versions;
//! - the span of the keys in the previous memtable determines the partitions. If there is no
//!   previous memtable, writes go only to the lower level, until the memtable has enough keys to
//!   learn the span from ([`FrontLevel::enable`]);
//! - cursors walk the lower level. Before a cursor enters a range of keys, it drains the
//!   Membuffer's partition of that range ([`position`], [`drain`]); versions written later are
//!   newer than the ones the scan looks for. So scans neither block writers nor restart, and short
//!   ones drain little.
//!
//! The paper's scans drain everything while they pause the writers of the lower level, restart when
//! they meet a newer version, and block writers after some restarts; [`FrontLevel::pause`] and
//! [`FrontLevel::drain_up_to`] serve such scans. The paper makes the Membuffer immutable and installs
//! another one; here a sequence number separates the drained versions from later ones.

mod bucket;
mod drain;
mod free_nodes;
mod front;
mod hash;
mod lower;
mod membuffer;
mod partition;
mod phase;
mod position;
mod reclaiming;

use std::sync::{Arc, OnceLock};

pub use drain::DrainInsert;
use drain::DrainScope;
use lower::Lower;
pub use lower::LowerLevel;
use membuffer::{LookupMiss, Membuffer};
pub(crate) use position::FloDbPosition;
use reclaiming::Reclaiming;

use crate::entry::{Entry, SeqNo};
use crate::key_span::KeySpan;
use crate::pool::Pool;
use crate::readers::{ReaderView, SeenReaders};
use crate::scan_pause::ScanPause;
use crate::skiplist::{NodeRef, Pin};
use crate::structure::{FrontLevel, Hold, InsertOutcome, Overwritten, Settings, Structure};
use crate::sync::{AtomicBool, AtomicUsize, Mutex, Ordering, relax};

/// The settings of a FloDB memtable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloDbConfig {
    /// The number of buckets of the Membuffer. Each bucket takes one cache line and holds six keys;
    /// 0 means no Membuffer.
    pub buckets: usize,
    /// The Membuffer has two to the power of this many partitions; at most 16.
    pub partition_bits: u8,
    /// The structure that the Membuffer is drained into.
    pub lower: LowerLevel,
    /// How a drain inserts versions into the lower level.
    pub insert: DrainInsert,
    /// Whether versions that no reader needs are reclaimed.
    pub update: Update,
}

/// The number of keys from which the span is learned: all but one key in a thousand lie between the
/// extremes of a sample of this size.
const SAMPLE_KEYS_MIN: usize = if cfg!(miri) { 20 } else { 1000 };

impl Settings for FloDbConfig {
    type Structure = FloDb;

    const EXAMPLES: &'static [(&'static str, Self)] = &[
        ("as usual", Self::of(2000, 4, LowerLevel::BTree, DrainInsert::Multi)),
        ("of few buckets", Self::of(64, 3, LowerLevel::BTree, DrainInsert::Multi)),
        ("without a Membuffer", Self::of(0, 0, LowerLevel::BTree, DrainInsert::Multi)),
        ("over a skip-list", Self::of(64, 3, LowerLevel::SkipList, DrainInsert::Multi)),
        ("of one bucket", Self::of(1, 4, LowerLevel::SkipList, DrainInsert::Single)),
        ("that holds everything", Self::of(8192, 6, LowerLevel::BTree, DrainInsert::Single)),
        (
            "that keeps versions",
            Self {
                update: Update::Versions,
                ..Self::of(500, 4, LowerLevel::SkipList, DrainInsert::Multi)
            },
        ),
    ];

    const SMALLEST: Self = Self::of(1, 0, LowerLevel::BTree, DrainInsert::Multi);

    fn usual(entries: usize) -> Self {
        // Enough buckets for a quarter of the entries, at six keys a bucket.
        Self::of(entries / 24, 4, LowerLevel::BTree, DrainInsert::Multi)
    }

    fn build(self, pool: Arc<Pool>, span: impl FnOnce() -> Option<KeySpan>) -> FloDb {
        FloDb::new(self, span(), pool)
    }
}

impl FloDbConfig {
    /// A memtable that updates in place.
    const fn of(
        buckets: usize,
        partition_bits: u8,
        lower: LowerLevel,
        insert: DrainInsert,
    ) -> Self {
        Self { buckets, partition_bits, lower, insert, update: Update::InPlace }
    }
}

/// What happens to versions that no reader needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// The memory of such a version is refilled with the next version of a key.
    InPlace,
    /// Such a version stays in the memtable.
    Versions,
}

/// A Membuffer in front of a lower level.
pub(crate) struct FloDb {
    lower: Lower,
    /// Set when the memtable is created, or later by [`FrontLevel::enable`], or never.
    membuffer: OnceLock<Membuffer>,
    /// A Membuffer from [`FrontLevel::prepare`] until it is enabled.
    prepared: Mutex<Option<Box<Membuffer>>>,
    /// Its initial size, also once it is enabled.
    prepared_bytes: AtomicUsize,
    buckets: usize,
    partitions: usize,
    insert: DrainInsert,
    update: Update,
    /// Versions inserted before the Membuffer was enabled, and their bytes of keys and values.
    entries: AtomicUsize,
    data_bytes: AtomicUsize,
    drained: AtomicUsize,
    pause: ScanPause,
    /// The readers whose versions drains keep.
    seen: SeenReaders,
    reclaiming: Reclaiming,
    /// The memtable has been almost full, so writes reclaim hidden versions in the Membuffer as well.
    is_scarce: AtomicBool,
    /// A writer waits for the Membuffer to be prepared.
    is_wanted: AtomicBool,
}

impl FloDb {
    /// Creates a memtable. Without a span, it has no Membuffer until it has learned one.
    fn new(config: FloDbConfig, span: Option<KeySpan>, pool: Arc<Pool>) -> Self {
        let partitions = 1 << config.partition_bits.min(16);
        let membuffer = OnceLock::new();
        if let Some(span) = span.filter(|_| config.buckets > 0) {
            membuffer.get_or_init(|| Membuffer::new(config.buckets, partitions, span));
        }
        Self {
            lower: Lower::new(config.lower, pool),
            membuffer,
            prepared: Mutex::new(None),
            prepared_bytes: AtomicUsize::new(0),
            buckets: config.buckets,
            partitions,
            insert: config.insert,
            update: config.update,
            entries: AtomicUsize::new(0),
            data_bytes: AtomicUsize::new(0),
            drained: AtomicUsize::new(0),
            pause: ScanPause::new(),
            seen: SeenReaders::new(),
            reclaiming: Reclaiming::new(),
            is_scarce: AtomicBool::new(false),
            is_wanted: AtomicBool::new(false),
        }
    }

    /// Returns the span of the keys in this memtable; the next memtable derives its partitions from it.
    fn span(&self) -> KeySpan {
        match (self.lower.first_key(), self.lower.last_key()) {
            (Some(first), Some(last)) if first < last => KeySpan::between(&first, &last),
            _ => self.membuffer.get().map_or_else(KeySpan::all, |front| front.span().clone()),
        }
    }

    /// Returns the newest version of `key` at or below `seq`, with a pin that keeps it from being
    /// refilled.
    #[inline]
    fn find(
        &self,
        key: &[u8],
        seq: SeqNo,
        hold: Hold,
    ) -> Result<Option<(NodeRef<'_>, Pin)>, Overwritten> {
        let mut tries = 0;
        while let Some(membuffer) = self.membuffer.get() {
            match membuffer.get(&self.lower, key, seq, hold) {
                Ok(Some(found)) => return Ok(Some((found.node, found.pin))),
                Ok(None) => break,
                Err(LookupMiss::Overwritten) => return Err(Overwritten),
                Err(LookupMiss::DrainFirst) => {
                    self.drain_for(membuffer, key);
                    break;
                }
                Err(LookupMiss::Retry) => relax(&mut tries),
            }
        }
        self.lower.get(key, seq, hold)
    }

    #[inline(always)]
    fn insert_with(&self, version: &Entry<'_>, view: &ReaderView<'_>) -> InsertOutcome {
        let Some(membuffer) = self.membuffer.get() else {
            self.wait_while_paused();
            self.entries.fetch_add(1, Ordering::Relaxed);
            self.data_bytes.fetch_add(version.data_bytes(), Ordering::Relaxed);
            let needs_reclaim = self.lower.insert(version, view);
            return InsertOutcome { needs_reclaim, ..InsertOutcome::default() };
        };
        let added = membuffer.add(&self.lower, version, view);
        // Relaxed: the flag only decides when memory is reclaimed.
        let mut needs_reclaim = added.has_older && self.is_scarce.load(Ordering::Relaxed);
        if !added.is_stored {
            self.wait_while_paused();
            needs_reclaim = self.lower.insert(version, view);
        }
        InsertOutcome {
            is_in_membuffer: added.is_stored,
            reclaimed: added.reclaimed,
            needs_reclaim,
            needs_drain: added.needs_drain,
        }
    }

    /// Drains the partition of `key`, so that a search finds a version that is many steps back in
    /// its chain.
    #[cold]
    fn drain_for(&self, membuffer: &Membuffer, key: &[u8]) {
        self.drain_partition(membuffer, membuffer.partition_of(key), DrainScope::All);
    }

    fn drain_partition(&self, membuffer: &Membuffer, partition: usize, scope: DrainScope) -> usize {
        let seen = self.seen.get();
        self.drain_as_seen(membuffer, partition, scope, &ReaderView::new(&seen))
    }

    fn drain_as_seen(
        &self,
        membuffer: &Membuffer,
        partition: usize,
        scope: DrainScope,
        view: &ReaderView<'_>,
    ) -> usize {
        let drained = membuffer.drain(&self.lower, partition, scope, self.insert, view);
        if drained > 0 {
            self.drained.fetch_add(drained, Ordering::Relaxed);
        }
        drained
    }

    /// Waits while a scan pauses writers of the lower level, and helps it to drain.
    #[inline]
    fn wait_while_paused(&self) {
        if self.pause.is_paused() {
            // Starts at the opposite end from the scan.
            self.pause.wait(|seq| {
                for partition in (0..self.partition_count()).rev() {
                    self.drain_partition_up_to(partition, seq);
                }
            });
        }
    }

    fn drain_partition_up_to(&self, partition: usize, seq: SeqNo) {
        if let Some(membuffer) = self.membuffer.get() {
            self.drain_partition(membuffer, partition, DrainScope::UpTo(seq));
        }
    }

    fn partition_count(&self) -> usize {
        self.membuffer.get().map_or(0, |membuffer| membuffer.partitions.len())
    }
}

impl Structure for FloDb {
    type Position = FloDbPosition;

    const COUNTS_ENTRIES: bool = true;

    #[inline]
    fn insert(&self, version: &Entry<'_>, view: &ReaderView<'_>) -> InsertOutcome {
        match self.update {
            Update::InPlace => {
                self.seen.note(version.seq, view);
                self.insert_with(version, view)
            }
            Update::Versions => {
                let nothing_hidden = || 0;
                let outcome = self.insert_with(version, &ReaderView::new(&nothing_hidden));
                InsertOutcome { needs_reclaim: false, ..outcome }
            }
        }
    }

    fn reclaim_hidden(&self, key: &[u8], seq: SeqNo, view: &ReaderView<'_>) {
        if self.update == Update::Versions {
            return;
        }
        let is_there =
            self.membuffer.get().is_some_and(|front| front.reclaim_hidden(&self.lower, key, view));
        if !is_there {
            self.lower.reclaim_hidden(key, seq, view);
        }
    }

    fn get(&self, key: &[u8], seq: SeqNo) -> Option<Entry<'_>> {
        let (node, _pin) = self.find(key, seq, Hold::Held).ok().flatten()?;
        // SAFETY: the lower level allocates nodes with versions.
        unsafe { node.versions() }.retain();
        Some(node.entry())
    }

    #[inline]
    fn look_up(
        &self,
        key: &[u8],
        seq: SeqNo,
        hold: Hold,
    ) -> Result<Option<(Entry<'_>, Pin)>, Overwritten> {
        Ok(self.find(key, seq, hold)?.map(|(node, pin)| (node.entry(), pin)))
    }

    fn counts(&self) -> (usize, usize) {
        // Loaded first: every version was counted before it was reclaimed.
        let (reclaimed, reclaimed_bytes) = self.lower.free.reclaimed();
        let (entries, bytes) = self.membuffer.get().map_or((0, 0), Membuffer::counts);
        let before = self.data_bytes.load(Ordering::Relaxed).cast_signed();
        let bytes = bytes + before - reclaimed_bytes.cast_signed();
        (
            (entries + self.entries.load(Ordering::Relaxed)).saturating_sub(reclaimed),
            bytes.max(0).cast_unsigned(),
        )
    }

    fn usage(&self) -> (usize, usize) {
        let (used, allocated) = self.lower.usage();
        let prepared = || self.prepared_bytes.load(Ordering::Relaxed);
        let table = self.membuffer.get().map_or_else(prepared, Membuffer::bytes);
        (used + table, allocated + table)
    }

    fn exempt_bytes(&self) -> usize {
        self.prepared_bytes.load(Ordering::Relaxed)
    }

    fn key_span(&self) -> Option<KeySpan> {
        Some(self.span())
    }

    #[inline]
    fn front_level(&self) -> Option<&dyn FrontLevel> {
        Some(self)
    }
}
