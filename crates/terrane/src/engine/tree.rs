//! One tree: the memtables and the tables of a keyspace.
//!
//! | module | one line |
//! |---|---|
//! | `usage` | counts how the memtables are used |
//! | `names` | the names of the tree since the database was opened |
//! | `logged_value_refs` | the places of large values in the log |
//! | `replace` | replaces the state, and registers the tree for background work |
//! | `share` | the part of an active memtable that some threads fill |
//! | `state` | what readers see: memtables and a version |
//! | `cardinality` | estimates the number of keys that were written |
//! | `memtables` | the configuration of memtables |
//! | `memtable_choice` | the kind of memtables, if the design leaves it open |
//! | `droppable_tables` | tables that can be dropped unread |
//! | `functions` | the application functions that the tree uses |
//! | `next_memtable` | the next memtable, created before it is needed |
//! | `jobs` | the jobs in progress |
//! | `value_segments` | segments of the log that are value files |
//! | `pace` | a schedule of writers |
//! | `recent_reads` | the reads since the previous flush |
//! | `relief` | when jobs make room for writers |
//! | `retired` | replaced states that are still in use |
//!
//! In the lock order, the locks of a tree come after the writer lock and the manifest lock.

mod cardinality;
mod droppable_tables;
mod functions;
mod jobs;
mod logged_value_refs;
mod memtable_choice;
mod memtables;
mod names;
mod next_memtable;
mod pace;
mod recent_reads;
mod relief;
mod replace;
mod retired;
mod share;
mod state;
mod usage;
mod value_segments;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use terrane_memtable::Memtable;
use terrane_policy::memtable_choice::{MemtableSelection, regret::Change};
use terrane_policy::{Cursors, Design, MemtableKind, Pressure, Violation, admit_with};

use crate::base::event::{StallEffect, WriteStall};
use crate::base::expiry::DefaultTtl;
use crate::base::types::{KeyspaceId, SeqNo};
use crate::engine::context::{Attention, MemtableMemory};
use crate::engine::cursor::DeadRanges;
use crate::engine::merge::DamagedValues;
use crate::engine::version::Version;
use functions::Functions;
use jobs::lock_with_covered;
use memtable_choice::MemtableChoice;
use names::Names;
use next_memtable::NextMemtable;
use pace::{Pace, nanos_per_write};
use recent_reads::RecentReads;
use relief::Relief;
use retired::RetiredStates;
use usage::Usage;
use value_segments::ValueSegments;

pub(crate) use droppable_tables::DroppableTables;
pub(crate) use jobs::{JobId, LateDeletes, RunningCompaction, TreeJobs};
pub(crate) use logged_value_refs::LoggedValueRef;
pub(crate) use memtables::{memtable_config, new_memtable};
pub(crate) use next_memtable::Preparation;
pub(crate) use relief::JobEnd;
pub(crate) use state::{ActiveMemtable, ImmutableMemtable, TreeState, pressure_of};
pub(crate) use value_segments::ValueSegment;

/// A tree whose memtable is replaced with fewer bytes than this is probably written rarely.
const BARELY_WRITTEN_BYTES: u64 = 64 << 10;

/// A tree of a database.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) id: KeyspaceId,
    names: Names,
    design: ArcSwap<Design>,
    /// The previous design, if the design has changed.
    design_before: ArcSwapOption<Design>,
    state: ArcSwap<TreeState>,
    /// The number of the current state. Comparing this number with the number of a loaded state is
    /// cheaper than loading the state again.
    newest: AtomicU64,
    /// Held while the state is replaced.
    replacing: Mutex<()>,
    retired: RetiredStates,
    jobs: Mutex<TreeJobs>,
    /// The next state recounts the settled values, although its version is the same.
    counts_values: AtomicBool,
    is_dropped: AtomicBool,
    pace: Pace,
    /// When jobs make room for writers.
    pub(crate) relief: Relief,
    pub(crate) recent_reads: RecentReads,
    /// The reported stall that has not ended yet.
    reported_stall: Mutex<Option<WriteStall>>,
    /// The kind of memtable that was chosen, if the design leaves the kind open.
    choice: MemtableChoice,
    next: NextMemtable,
    usage: Arc<Usage>,
    default_ttl: DefaultTtl,
    pub(crate) functions: Functions,
    /// The tree's largest sequence number, and ranges in which scans found nothing.
    dead: Arc<DeadRanges>,
    attention: Arc<Attention>,
    /// Log segments that are value files of the tree and may receive more of its values.
    value_segments: ValueSegments,
}

impl Tree {
    pub(crate) fn new(
        id: KeyspaceId,
        name: &str,
        design: Arc<Design>,
        version: Version,
        active: Arc<ActiveMemtable>,
        attention: Arc<Attention>,
    ) -> Arc<Self> {
        let settled_values = version.shape().settled_values();
        let admission = admit_with(version.shape(), settled_values, 0, &design);
        let cursors = Cursors::resumed(version.shape());
        let usage = Arc::new(Usage::default());
        usage.count(design.memtable == MemtableKind::Auto);
        let state = TreeState {
            active,
            immutables: Vec::new(),
            version: Arc::new(version),
            stalled_since: pressure_of(&admission).map(|_| Instant::now()),
            admission,
            settled_values,
            nanos_per_write: nanos_per_write(&design),
            spreads: design.constraint.violation == Violation::Spread,
            usage: Arc::clone(&usage),
            readable_to: SeqNo::MAX,
            number: 0,
        };
        let tree = Arc::new(Self {
            usage,
            id,
            names: Names::new(name),
            design: ArcSwap::new(design),
            design_before: ArcSwapOption::empty(),
            state: ArcSwap::from_pointee(state),
            newest: AtomicU64::new(0),
            replacing: Mutex::new(()),
            retired: RetiredStates::default(),
            jobs: Mutex::new(TreeJobs { cursors, ..TreeJobs::default() }),
            counts_values: AtomicBool::new(false),
            is_dropped: AtomicBool::new(false),
            reported_stall: Mutex::new(None),
            pace: Pace::new(),
            relief: Relief::new(),
            recent_reads: RecentReads::default(),
            choice: MemtableChoice::default(),
            next: NextMemtable::default(),
            default_ttl: DefaultTtl::default(),
            functions: Functions::default(),
            dead: Arc::default(),
            attention,
            value_segments: ValueSegments::default(),
        });
        tree.register(&tree.state());
        tree
    }

    /// Returns true if the next memtable should be prepared now and no thread has requested it yet.
    pub(crate) fn needs_next_memtable(&self, filled: u64, limit: u64) -> bool {
        filled >= limit / 4 * 3 && self.next.request()
    }

    /// Creates the memtable that will replace the active one. This touches all of its memory, which
    /// takes long, so writers leave it to a background thread.
    pub(crate) fn prepare_memtable(&self, memory: &MemtableMemory) {
        let design = self.design();
        let create = || self.choice.create(&memory.fitted(&design), &self.state(), memory);
        self.next.prepare(Arc::clone(&design), create);
    }

    /// Returns an empty memtable to replace the active one: the prepared one, or a new one if none
    /// was prepared for the current design. If a thread prepares memtables, the new one is not
    /// preallocated, because touching its memory would take the writer too long.
    pub(crate) fn next_memtable(
        &self,
        memory: &MemtableMemory,
        preparation: Preparation,
    ) -> Arc<Memtable> {
        let (design, state) = (self.design(), self.state());
        let fitted = memory.fitted(&design);
        let create = || self.choice.create(&preparation.design_if_late(&fitted), &state, memory);
        let memtable = self.next.take(&design).unwrap_or_else(create);
        self.choice.begin(&fitted, &state);
        memtable
    }

    /// Returns a change to the active memtable that pays off, if readers have requested a check.
    pub(crate) fn due_change(&self, memory: &MemtableMemory) -> Option<Change> {
        self.choice.due_change(|| memory.fitted(&self.design()), &self.state())
    }

    /// Selects the kind of the next memtable, with the writer lock held. The caller replaces the
    /// active one.
    pub(crate) fn leave_for(&self, selection: MemtableSelection) {
        self.next.discard();
        self.choice.leave_for(selection);
    }

    /// Returns the last choice of memtable if it differs from the previous choice and has not been
    /// returned yet.
    pub(crate) fn take_new_choice(&self) -> Option<MemtableSelection> {
        self.choice.take_news()
    }

    /// Returns the choice for the active memtable, if the design leaves the kind open.
    pub(crate) fn memtable_choice(&self) -> Option<MemtableSelection> {
        self.choice.active()
    }

    /// Returns true if the active memtable has so few entries that the tree needs no other one before
    /// the next write. A memtable whose kind or size follows from that of its predecessor is always
    /// created at once.
    pub(crate) fn is_barely_written(&self, memory: &MemtableMemory) -> bool {
        let Design { memtable, buffer_bytes, .. } = **self.design.load();
        let most = BARELY_WRITTEN_BYTES.min(memory.bytes_max(buffer_bytes) / 4);
        let follows = matches!(memtable, MemtableKind::Auto | MemtableKind::FloDb(_));
        !follows && self.state().active.filled_bytes() < most
    }

    /// Returns the size of all memtables, including the prepared one, in bytes.
    pub(crate) fn memtable_bytes(&self) -> usize {
        self.state().memtable_bytes() + self.next.bytes()
    }

    /// Returns the counts of how the memtables are used.
    #[inline]
    pub(crate) fn default_ttl(&self) -> &DefaultTtl {
        &self.default_ttl
    }

    pub(crate) fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Returns the current state, for the duration of one operation.
    #[inline]
    pub(crate) fn state(&self) -> Guard<Arc<TreeState>> {
        self.state.load()
    }

    /// Reloads a state if it was replaced since it was loaded. An earlier replacement under a lock
    /// that the caller now holds is always seen; a concurrent replacement may be missed.
    #[inline]
    pub(crate) fn refresh(&self, state: &mut Guard<Arc<TreeState>>) {
        // Acquire pairs with the release in `replace`, which stores the state before its number.
        if self.newest.load(Ordering::Acquire) != state.number {
            *state = self.state();
        }
    }

    /// Returns the current state, which the caller may keep.
    pub(crate) fn state_arc(&self) -> Arc<TreeState> {
        self.state.load_full()
    }

    /// Returns the size in bytes at which a memtable of this design is replaced.
    #[inline]
    pub(crate) fn buffer_bytes(&self) -> u64 {
        self.design.load().buffer_bytes
    }

    pub(crate) fn design(&self) -> Arc<Design> {
        self.design.load_full()
    }

    /// Replaces the design. Memtables follow it at the next rotation, tables by compactions.
    pub(crate) fn set_design(&self, design: Design) {
        self.usage.count(design.memtable == MemtableKind::Auto);
        let before = self.design.swap(Arc::new(design));
        if *before != *self.design() {
            self.set_design_before(Some(before));
        }
        self.replace(|state| state);
    }

    /// The previous design, if the design has changed.
    pub(crate) fn design_before(&self) -> Option<Arc<Design>> {
        self.design_before.load_full()
    }

    pub(crate) fn set_design_before(&self, before: Option<Arc<Design>>) {
        self.design_before.store(before);
    }

    /// Notes value files with values that could not be read. From now on they are not collected,
    /// and their garbage does not slow down writers, which would wait for its removal in vain.
    pub(crate) fn note_damaged_values(&self, damaged: &DamagedValues) {
        if damaged.is_empty() {
            return;
        }
        let mut jobs = self.jobs();
        for (file, error) in damaged {
            jobs.damaged_values.entry(*file).or_insert_with(|| error.clone());
        }
        drop(jobs);
        // Relaxed: the lock under which states are replaced orders this store.
        self.counts_values.store(true, Ordering::Relaxed);
        self.replace(|state| state);
    }

    /// The replaced states that may still be in use.
    pub(crate) fn retired(&self) -> &RetiredStates {
        &self.retired
    }

    /// Locks the jobs of the tree. A job is picked under this lock, so that no two jobs take the same
    /// table.
    pub(crate) fn jobs(&self) -> MutexGuard<'_, TreeJobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Determines the tables of the current version that can be dropped unread, and locks the jobs.
    pub(crate) fn jobs_with_covered(&self) -> MutexGuard<'_, TreeJobs> {
        lock_with_covered(&self.jobs, || Arc::clone(&self.state().version))
    }

    /// Notes that a write of this tree has sequence numbers up to `seq`. Called with the writer
    /// lock held.
    #[inline]
    pub(crate) fn set_last_seq(&self, seq: SeqNo) {
        self.dead.set_last_seq(seq);
    }

    /// Returns the largest sequence number assigned to a write of this tree.
    pub(crate) fn last_seq(&self) -> SeqNo {
        self.dead.last_seq()
    }

    /// The ranges in which scans found nothing.
    #[inline]
    pub(crate) fn dead(&self) -> &Arc<DeadRanges> {
        &self.dead
    }

    /// Adds `operations` to the schedule of the maximum rate. Returns how far writers are ahead of
    /// this schedule.
    pub(crate) fn pace(&self, operations: u64) -> Duration {
        let cost = self.state().nanos_per_write.saturating_mul(operations);
        self.pace.add(cost)
    }

    /// Returns the stall that was reported and is not resolved yet.
    pub(crate) fn reported_stall(&self) -> MutexGuard<'_, Option<WriteStall>> {
        self.reported_stall.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if this stall was reported and is not resolved yet.
    pub(crate) fn has_reported(&self, effect: StallEffect, pressure: &Pressure) -> bool {
        is_stall(&self.reported_stall(), effect, pressure)
    }

    pub(crate) fn mark_dropped(&self) {
        // Release pairs with the acquire in `is_dropped`.
        self.is_dropped.store(true, Ordering::Release);
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.is_dropped.load(Ordering::Acquire)
    }
}

/// Returns true if a stall has this effect and cause.
pub(crate) fn is_stall(
    stall: &Option<WriteStall>,
    effect: StallEffect,
    pressure: &Pressure,
) -> bool {
    stall.as_ref().is_some_and(|stall| stall.effect == effect && stall.cause == pressure.cause)
}
