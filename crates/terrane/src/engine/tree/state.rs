//! The state of a tree that readers see, and its memtables.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use terrane_memtable::{BTreeConfig, Config, Memtable, Padded, Pool};
use terrane_policy::{Admission, Design, MemtableKind, Pressure, SettledValues};

use super::logged_value_refs::LoggedValueRefs;
use super::memtables::new_memtable;
use super::share::Share;
use super::usage::Usage;
use crate::base::event::FlushReason;
use crate::base::stats::stripe_of_thread;
use crate::base::types::{Lsn, SeqNo};
use crate::engine::context::{MemtableMemory, ValuesInLog};
use crate::engine::version::Version;
use crate::files::value_pointer::ValueFileName;

/// The number of shares into which a memtable's free space is divided. Each thread takes from one
/// share, so that threads rarely share a cache line.
const SHARES: usize = 8;

/// The memtable of all trees without entries in memory.
static UNWRITTEN: LazyLock<Arc<ActiveMemtable>> = LazyLock::new(|| {
    let memtable = Memtable::new(Config::BTree(BTreeConfig), &Pool::new(0));
    Arc::new(ActiveMemtable::new(memtable, Lsn(0)))
});

/// The memtable that accepts writes, and the part of the log that it covers.
#[derive(Debug)]
pub(crate) struct ActiveMemtable {
    pub(crate) memtable: Arc<Memtable>,
    /// All entries of the memtable are at or after this log position.
    pub(crate) begins: Lsn,
    /// The places of its large values in the log; `None` if the flush may not use them, or if the
    /// memtable was replayed from the log.
    logged_values: Option<Arc<LoggedValueRefs>>,
    /// When its first entry was written, in microseconds since the Unix epoch; 0 while unknown.
    since_micros: AtomicU64,
    /// Whether a range tombstone of the memtable is not in the log. Shared, because a write may still
    /// insert its operations after the memtable became immutable.
    has_unlogged_range: Arc<AtomicBool>,
    /// The bytes that have entered the schedule of the tree; see `spread`.
    scheduled_bytes: AtomicU64,
    /// What threads may do before the memtable must be measured again.
    shares: [Padded<Share>; SHARES],
}

impl ActiveMemtable {
    pub(crate) fn new(memtable: Arc<Memtable>, begins: Lsn) -> Self {
        let shares = std::array::from_fn(|_| Padded::default());
        Self {
            memtable,
            begins,
            logged_values: None,
            since_micros: AtomicU64::new(0),
            has_unlogged_range: Arc::default(),
            scheduled_bytes: AtomicU64::new(0),
            shares,
        }
    }

    /// Returns the memtable of trees without entries in memory, which all of them share, so that an
    /// idle tree needs no memory for a memtable. It stays empty: it has no space, so a writer takes
    /// the writer lock, under which [`begin_memtable`] replaces it before the write gets
    /// its sequence numbers.
    ///
    /// [`begin_memtable`]: crate::engine::pipeline::begin_memtable
    pub(crate) fn unwritten() -> Arc<Self> {
        Arc::clone(&UNWRITTEN)
    }

    /// Returns the first memtable of a tree, which begins at `begins`. A design with preallocated
    /// memtables gets one now, so that its first writer does not wait for the allocation.
    pub(crate) fn first(
        design: &Design,
        memory: &MemtableMemory,
        begins: Lsn,
        in_log: Option<ValuesInLog>,
    ) -> Arc<Self> {
        match design.memtable {
            MemtableKind::Vector { prealloc_bytes: 1.., .. } => {
                Arc::new(Self::new(new_memtable(design, memory, None), begins).noting(in_log))
            }
            _ => Self::unwritten(),
        }
    }

    /// Returns true for [`Self::unwritten`].
    pub(crate) fn is_unwritten(&self) -> bool {
        std::ptr::eq(self, &**UNWRITTEN)
    }

    /// Makes the memtable, which must be empty, note the places of values in the log.
    pub(crate) fn noting(mut self, in_log: Option<ValuesInLog>) -> Self {
        self.logged_values = in_log.map(|in_log| Arc::new(LoggedValueRefs::new(in_log)));
        self
    }

    /// Returns true if the memtable notes the places of values in the log.
    #[inline]
    pub(crate) fn notes_values(&self) -> bool {
        self.logged_values.is_some()
    }

    /// Returns the length from which values are inserted as pointers into the log, if any are.
    #[inline]
    pub(crate) fn pointed_from(&self) -> Option<u64> {
        let refs = self.logged_values.as_deref()?;
        // A memtable that overwrites in place would not see that the values of pointers are overwritten.
        self.memtable.front_level().is_none().then_some(refs.lengths().pointed_from)
    }

    /// Returns the list in which to note a value of `len` bytes, if any.
    #[inline]
    pub(crate) fn logged_value_refs_for(&self, len: usize) -> Option<&LoggedValueRefs> {
        self.logged_values.as_deref().filter(|refs| len as u64 >= refs.lengths().noted_from)
    }

    /// Returns true if a logged value is inserted as a pointer into the log.
    #[inline]
    pub(crate) fn points_to(&self, value: &[u8]) -> bool {
        self.pointed_from().is_some_and(|from| value.len() as u64 >= from)
    }

    /// Returns the size of the entries, including the values in the log to which they point.
    pub(crate) fn filled_bytes(&self) -> u64 {
        self.memtable.filled_bytes() as u64 + self.pointed_bytes()
    }

    /// Returns the length of the values in the log to which entries point.
    pub(crate) fn pointed_bytes(&self) -> u64 {
        pointed_bytes_of(&self.logged_values)
    }

    /// Returns the share of the memtable's space that this thread fills.
    #[inline]
    pub(crate) fn share(&self) -> &Share {
        &self.shares[stripe_of_thread() % SHARES]
    }

    /// Notes that the memtable is filled with `filled` bytes. Returns how many of them have not entered the
    /// schedule of the tree yet.
    pub(crate) fn take_unscheduled(&self, filled: u64) -> u64 {
        filled.saturating_sub(self.scheduled_bytes.swap(filled, Ordering::Relaxed))
    }

    /// Notes that a range tombstone will be inserted that is not in the log.
    pub(crate) fn note_unlogged_range(&self) {
        // Relaxed: who may act on the tombstone reads a sequence number that is visible after it.
        self.has_unlogged_range.store(true, Ordering::Relaxed);
    }

    /// Returns true if a visible range tombstone may be lost in a crash, although the log is synced.
    pub(crate) fn has_unlogged_range(&self) -> bool {
        self.has_unlogged_range.load(Ordering::Relaxed)
    }

    /// Returns the time at which the first entry was written, or `None` while it is unknown.
    pub(crate) fn since_micros(&self) -> Option<u64> {
        // Relaxed: a stale value only delays a flush until the next check.
        Some(self.since_micros.load(Ordering::Relaxed)).filter(|&since| since > 0)
    }

    /// Notes the current time as that of the first entry, unless a time is already noted. Returns
    /// true if this call noted it.
    pub(crate) fn note_entry(&self, now_micros: impl FnOnce() -> u64) -> bool {
        if self.since_micros.load(Ordering::Relaxed) != 0 {
            return false;
        }
        // Another thread may have noted an earlier time for its own entry since.
        let now = now_micros().max(1);
        let (unknown, order) = (0, Ordering::Relaxed);
        self.since_micros.compare_exchange(unknown, now, order, order).is_ok()
    }
}

/// A memtable that accepts no more writes and waits to be flushed.
#[derive(Debug)]
pub(crate) struct ImmutableMemtable {
    pub(crate) memtable: Arc<Memtable>,
    /// All entries of the memtable are at or after this log position.
    pub(crate) begins: Lsn,
    /// All entries of the memtable are before this log position.
    pub(crate) ends: Lsn,
    /// The places of its large values in the log, if they were noted.
    pub(crate) logged_values: Option<Arc<LoggedValueRefs>>,
    /// The largest sequence number in the memtable. Once it is visible, all entries are inserted.
    pub(crate) last_seq: SeqNo,
    /// When its first entry was written, in microseconds since the Unix epoch, if noted.
    pub(crate) since_micros: Option<u64>,
    /// Whether a range tombstone of the memtable is not in the log.
    has_unlogged_range: Arc<AtomicBool>,
    /// Why the memtable is flushed.
    pub(crate) reason: FlushReason,
}

impl ImmutableMemtable {
    /// Makes the active memtable immutable. `ends` is the current end of the log, `last_seq` the
    /// last assigned sequence number.
    pub(crate) fn new(
        active: &ActiveMemtable,
        ends: Lsn,
        last_seq: SeqNo,
        reason: FlushReason,
    ) -> Self {
        let (memtable, since_micros) = (Arc::clone(&active.memtable), active.since_micros());
        let logged_values = active.logged_values.clone();
        Self {
            memtable,
            begins: active.begins,
            ends,
            logged_values,
            last_seq,
            since_micros,
            has_unlogged_range: Arc::clone(&active.has_unlogged_range),
            reason,
        }
    }

    /// Returns the size of the entries, including the values in the log to which they point.
    pub(crate) fn filled_bytes(&self) -> u64 {
        self.memtable.filled_bytes() as u64 + self.pointed_bytes()
    }

    /// Returns the length of the values in the log to which entries point.
    pub(crate) fn pointed_bytes(&self) -> u64 {
        pointed_bytes_of(&self.logged_values)
    }

    /// Returns the names, as value files, of the log segments to which entries point.
    pub(crate) fn logged_files(&self) -> Vec<ValueFileName> {
        self.logged_values.as_deref().map_or_else(Vec::new, LoggedValueRefs::file_names)
    }

    /// Returns true if a visible range tombstone may be lost in a crash, although the log is synced.
    pub(crate) fn has_unlogged_range(&self) -> bool {
        self.has_unlogged_range.load(Ordering::Relaxed)
    }
}

/// What readers see of a tree. A state never changes, but is replaced.
#[derive(Debug)]
pub(crate) struct TreeState {
    pub(crate) active: Arc<ActiveMemtable>,
    /// Memtables that wait to be flushed, newest first.
    pub(crate) immutables: Vec<Arc<ImmutableMemtable>>,
    pub(crate) version: Arc<Version>,
    /// Whether writers may continue.
    pub(crate) admission: Admission,
    /// The value files of the version that count for admission.
    pub(crate) settled_values: SettledValues,
    /// When the current cause of stalls arose, if writers are stalled or delayed.
    pub(crate) stalled_since: Option<Instant>,
    /// The time per operation at the maximum rate of the design; 0 if the design has no maximum
    /// rate.
    pub(crate) nanos_per_write: u64,
    /// Whether the design makes writers spread the room before a stop.
    pub(crate) spreads: bool,
    /// How the memtables are used, for designs that leave their kind open.
    pub(crate) usage: Arc<Usage>,
    /// Readers of this state see writes up to this number. The numbers after it belong to an ingest
    /// that is not in the version yet, while later writes may already be in the active memtable.
    pub(crate) readable_to: SeqNo,
    /// The number of previous states.
    pub(crate) number: u64,
}

/// The parts of a state that a change may replace.
#[derive(Debug)]
pub(crate) struct NextState {
    pub(crate) active: Arc<ActiveMemtable>,
    pub(crate) immutables: Vec<Arc<ImmutableMemtable>>,
    pub(crate) version: Arc<Version>,
    pub(crate) readable_to: SeqNo,
}

impl NextState {
    /// Replaces the active memtable, which `memory` counts until its last user drops it. Returns it.
    pub(crate) fn replace_active(
        &mut self,
        active: Arc<ActiveMemtable>,
        memory: &MemtableMemory,
    ) -> Arc<ActiveMemtable> {
        let before = std::mem::replace(&mut self.active, active);
        if !before.is_unwritten() {
            memory.note_replaced(&before.memtable);
        }
        before
    }
}

impl TreeState {
    /// Returns false if no value of the tree expires.
    #[inline]
    pub(crate) fn may_expire(&self) -> bool {
        self.usage.may_expire() || self.version.has_expiry()
    }

    /// Returns the sequence number at which a reader of this state reads, if writes up to `visible`
    /// are visible.
    #[inline]
    pub(crate) fn readable(&self, visible: SeqNo) -> SeqNo {
        visible.min(self.readable_to)
    }

    /// All memtables, newest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        let immutables = self.immutables.iter().map(|immutable| &immutable.memtable);
        std::iter::once(&self.active.memtable).chain(immutables)
    }

    /// All memtables, newest first, each with the length of the values in the log to which it points.
    pub(crate) fn memtables_with_pointed_bytes(
        &self,
    ) -> impl Iterator<Item = (&Arc<Memtable>, u64)> {
        let immutables = self.immutables.iter().map(|one| (&one.memtable, &one.logged_values));
        let all = std::iter::once((&self.active.memtable, &self.active.logged_values));
        all.chain(immutables).map(|(memtable, refs)| (memtable, pointed_bytes_of(refs)))
    }

    /// Returns true if a memtable reclaims versions that no reader needs. If so, a reader that
    /// reads more than once at a sequence number must hold that number.
    pub(crate) fn reclaims_versions(&self) -> bool {
        self.memtables().any(|memtable| memtable.front_level().is_some())
    }

    /// Returns the number of bytes that the memtables have allocated.
    pub(crate) fn memtable_bytes(&self) -> usize {
        if self.immutables.is_empty() && self.active.is_unwritten() {
            return 0;
        }
        let memtables: usize =
            self.memtables().map(|memtable| memtable.memory().total_bytes()).sum();
        let of_immutables = self.immutables.iter().filter_map(|one| one.logged_values.as_ref());
        let refs = of_immutables.chain(&self.active.logged_values).map(|refs| refs.memory_bytes());
        memtables + refs.sum::<usize>()
    }

    /// The oldest log position that the active memtable needs; `None` if it is empty, or if
    /// immutable memtables exist.
    pub(crate) fn log_begins(&self) -> Option<Lsn> {
        // The oldest immutable memtable begins where the tables end, a position known only to the
        // manifest.
        let is_oldest = self.immutables.is_empty() && !self.active.memtable.is_empty();
        is_oldest.then_some(self.active.begins)
    }

    /// Returns true if all memtables are empty.
    pub(crate) fn is_flushed(&self) -> bool {
        self.immutables.is_empty() && self.active.memtable.is_empty()
    }
}

/// Returns the length of the values in the log to which the entries of a memtable point.
fn pointed_bytes_of(refs: &Option<Arc<LoggedValueRefs>>) -> u64 {
    refs.as_deref().map_or(0, LoggedValueRefs::pointed_bytes)
}

/// Returns the pressure that delays or stops writers, if there is any.
pub(crate) fn pressure_of(admission: &Admission) -> Option<Pressure> {
    match admission {
        Admission::Proceed => None,
        Admission::Delay(pressure) | Admission::Stop(pressure) => Some(*pressure),
    }
}
