//! The trees of a database, its manifest and its files.
//!
//! | module | one line |
//! |---|---|
//! | `stall_events` | reports stalls, and resumes stalled writers |
//! | `files` | removes files that the database does not need |
//! | `history` | operation counts across openings |
//! | `install` | applies the result of a job, on disk and in memory |
//! | `log_retention` | frees the part of the log that no tree needs |
//! | `value_garbage` | value files that no table refers to |
//! | `trees` | the trees by number and by name |
//! | `keyspaces` | creates, renames, drops and redesigns trees |

mod files;
mod history;
mod install;
mod keyspaces;
mod log_retention;
mod stall_events;
mod trees;
mod value_garbage;

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use arc_swap::ArcSwap;

use crate::base::error::{Error, Result};
use crate::base::types::KeyspaceId;
use crate::engine::context::{Context, Health, TreeMemtables};
use crate::engine::filtering::FilteringJobs;
use crate::engine::pipeline::Pipeline;
use crate::engine::tree::Tree;
use crate::files::manifest::{Manifest, ManifestState};
use crate::files::table::TableFileId;
use crate::files::value_pointer::ValueFileName;
use history::OperationHistory;

pub(crate) use files::{LOCK, LONG_MANIFEST_BYTES, discard_table};
pub(crate) use install::{InstallPlan, VersionEdit};
pub(crate) use keyspaces::{DEFAULT_NAME, check_design, discards};
pub(crate) use stall_events::report_spread;
pub(crate) use trees::Trees;

/// The number of memtables whose sizes are added up per job.
const MEMTABLES_PER_JOB: usize = 256;

/// The trees of a database, and the manifest in which they are recorded.
#[derive(Debug)]
pub(crate) struct Catalog {
    context: Arc<Context>,
    pipeline: Arc<Pipeline>,
    trees: ArcSwap<Trees>,
    /// `None` if the database is read-only or closed.
    manifest: Mutex<Option<Manifest>>,
    /// Distinguishes the tables written by this opening from the tables of any other.
    writer_id: u64,
    /// Table files of edits that may or may not be durable; see [`crate::files::manifest`].
    doubtful: Mutex<Vec<PathBuf>>,
    /// Files that the flush thread is to remove.
    unneeded: Mutex<Vec<PathBuf>>,
    /// True if the log was not released because a reader may need it.
    is_log_kept: AtomicBool,
    history: OperationHistory,
    /// The number of trees with a reported stall that has not ended.
    stalls_reported: AtomicUsize,
    /// The number of jobs that have ended.
    jobs_ended: AtomicUsize,
    /// Where the log ended when the idle trees were last determined.
    idle_since: AtomicU64,
    /// The running compactions that apply a filter.
    pub(crate) filtering: FilteringJobs,
}

impl Catalog {
    pub(crate) fn new(
        context: &Arc<Context>,
        pipeline: &Arc<Pipeline>,
        trees: Trees,
        state: &ManifestState,
        manifest: Option<Manifest>,
    ) -> Self {
        Self {
            trees: ArcSwap::from_pointee(trees),
            manifest: Mutex::new(manifest),
            writer_id: context.storage.entropy(),
            doubtful: Mutex::default(),
            unneeded: Mutex::default(),
            is_log_kept: AtomicBool::default(),
            history: OperationHistory::new(&state.operations, context.clock.now_micros()),
            stalls_reported: AtomicUsize::default(),
            jobs_ended: AtomicUsize::default(),
            idle_since: AtomicU64::default(),
            filtering: FilteringJobs::default(),
            context: Arc::clone(context),
            pipeline: Arc::clone(pipeline),
        }
    }

    /// Locks the manifest unless another thread, which may be syncing it, has locked it.
    pub(crate) fn try_lock_manifest(&self) -> Option<ManifestGuard<'_>> {
        let manifest = match self.manifest.try_lock() {
            Ok(manifest) => manifest,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(ManifestGuard { manifest, _report: ReportOnDrop(&self.context.health) })
    }

    /// Locks the manifest. In the lock order, this lock comes second, after the writer lock.
    pub(crate) fn lock_manifest(&self) -> ManifestGuard<'_> {
        ManifestGuard {
            manifest: self.manifest.lock().unwrap_or_else(PoisonError::into_inner),
            _report: ReportOnDrop(&self.context.health),
        }
    }

    /// Returns a copy of the state of the manifest.
    pub(crate) fn manifest_state(&self) -> Result<ManifestState> {
        let guard = self.lock_manifest();
        guard.as_ref().map(|manifest| manifest.state().clone()).ok_or(Error::ReadOnly)
    }

    /// Returns all trees.
    pub(crate) fn trees(&self) -> arc_swap::Guard<Arc<Trees>> {
        self.trees.load()
    }

    /// Returns the tree of a keyspace, unless it was dropped.
    pub(crate) fn tree(&self, id: KeyspaceId) -> Option<Arc<Tree>> {
        self.trees.load().get(&id).cloned()
    }

    pub(crate) fn find_tree(&self, name: &str) -> Option<Arc<Tree>> {
        self.trees().named(name).cloned()
    }

    /// Assigns a number and a path to a new table.
    pub(crate) fn next_table(&self) -> (TableFileId, PathBuf) {
        let mut manifest = self.lock_manifest();
        let number = manifest.as_mut().map_or(0, Manifest::take_table_number);
        let id = TableFileId { number, writer: self.writer_id };
        (id, self.context.dir.join(id.file_name()))
    }

    /// Assigns a name and a path to a new value file.
    pub(crate) fn next_value_file(&self) -> (ValueFileName, PathBuf) {
        let mut manifest = self.lock_manifest();
        let number = manifest.as_mut().map_or(0, Manifest::take_table_number);
        let name = ValueFileName { number, writer: self.writer_id };
        (name, self.context.dir.join(name.file_name()))
    }

    /// From now on, keeps the replaced states of all trees until [`Self::drop_retired`] is called.
    pub(crate) fn keep_retired(&self) {
        self.trees().values().for_each(|tree| tree.retired().keep());
    }

    /// Drops the replaced states and keeps no further states, because the thread has ended.
    pub(crate) fn keep_no_retired(&self) {
        self.trees().values().for_each(|tree| tree.retired().keep_no_more());
    }

    /// Drops the replaced states that are no longer used. Returns true if some of them are still in
    /// use.
    pub(crate) fn drop_retired(&self) -> bool {
        let retired = &self.context.attention.retired;
        let trees = self.trees();
        let mut is_left = false;
        for (id, listed) in retired.list() {
            if trees.get(&id).is_some_and(|tree| tree.retired().drop_unused()) {
                is_left = true;
            } else {
                retired.remove_if_unchanged(id, listed);
            }
        }
        is_left
    }

    /// Returns the error of an unreadable table or value of any tree.
    pub(crate) fn damage(&self) -> Option<Error> {
        let trees = self.trees();
        trees.values().find_map(|tree| {
            let jobs = tree.jobs();
            jobs.unreadable.values().chain(jobs.damaged_values.values()).next().cloned()
        })
    }

    /// Makes tables count their reads if the design of any tree needs the counts.
    pub(crate) fn update_access_counting(&self) {
        let looks = |tree: &Arc<Tree>| tree.design().strategy.looks_at_accesses();
        let counts = self.trees().values().any(looks);
        self.context.tables.counts_accesses.store(counts, Ordering::Relaxed);
    }

    /// Returns the trees with memtables that have been written to.
    pub(crate) fn trees_with_memtables(&self) -> Vec<Arc<Tree>> {
        let listed = self.context.attention.memtables.list();
        let trees = self.trees();
        listed.iter().filter_map(|(id, _)| trees.get(id).cloned()).collect()
    }

    /// Resizes the cache after a job. With very many memtables, does so after some of the jobs only,
    /// because adding up their sizes takes longer than a small job.
    pub(crate) fn resize_cache_after_job(&self) {
        let every = self.context.attention.memtables.len() / MEMTABLES_PER_JOB + 1;
        // Relaxed: it does not matter which of two concurrent jobs resizes the cache.
        if self.jobs_ended.fetch_add(1, Ordering::Relaxed).is_multiple_of(every) {
            self.resize_cache();
        }
    }

    /// Measures memtables, and decides what they may take. Gives the cache the part of the memory budget
    /// that memtables, jobs and open tables leave. Returns what the memtables of trees take.
    pub(crate) fn resize_cache(&self) -> TreeMemtables {
        let Context { ledger, tables, memory_plan: plan, memtables, settings, .. } = &*self.context;
        let pressure = &self.context.memory_pressure;
        let in_trees = self.tree_memtables();
        let open = ledger.tables.load(Ordering::Relaxed);
        let blocks = tables.buffer.bytes();
        // Blocks in the pool that are pinned count against its capacity, unless they exceed it.
        let beyond_pool = blocks.allocated.saturating_sub(blocks.capacity);
        let others = open + blocks.standalone + ledger.transactions.load(Ordering::Relaxed);
        let beyond = (others + beyond_pool).saturating_sub(plan.bytes_of_others());
        let jobs = ledger.jobs.load(Ordering::Relaxed);
        let pool_free = memtables.pool().free_bytes();
        let unused = plan.unused_bytes(blocks.allocated, jobs, others + pool_free);
        // The machine may have less than the budget.
        let cache_when_lent = plan.cache_bytes_when_lent(blocks.allocated);
        let spare = pressure.cache_bytes_max().saturating_sub(cache_when_lent);
        let unused = unused.min(plan.memtable_bytes.saturating_add(spare));
        let measured = memtables.measure(in_trees, beyond, unused);
        let used = measured.total_bytes + pool_free + jobs + others;
        let rest = plan.usable_bytes.saturating_sub(used).max(plan.cache_bytes_min);
        let wanted = (rest as u64).min(settings.cache_bytes_max());
        let mut space = pressure.cache_bytes(wanted);
        if measured.borrows {
            // Before the next measurement, memtables may take all that they may borrow.
            space = space.min(cache_when_lent as u64);
        }
        ledger.pool_bytes_min.store(plan.cache_bytes_min, Ordering::Relaxed);
        let (capacity, allocated) = (blocks.capacity as u64, blocks.allocated as u64);
        // The pool shrinks at once, because its memory is needed elsewhere. It grows only if the
        // gain is worth the cost of resizing.
        let step = plan.cache_step_bytes() as u64;
        if space < capacity || space - capacity > step || allocated > capacity {
            ledger.tables_counted.store(open, Ordering::Relaxed);
            tables.set_cache_bytes(space);
        }
        in_trees
    }

    /// Returns what the memtables of trees take.
    pub(crate) fn tree_memtables(&self) -> TreeMemtables {
        let (trees, retired) = (self.trees(), self.context.attention.retired.list());
        let is_read = |id| trees.get(id).is_some_and(|tree| tree.retired().are_used());
        let are_read = retired.iter().any(|(id, _)| is_read(id));
        let mut sum = TreeMemtables { are_read, ..TreeMemtables::default() };
        for tree in self.trees_with_memtables() {
            let (bytes, state) = (tree.memtable_bytes(), tree.state());
            sum.bytes += bytes;
            let immutables = state.immutables.iter();
            let immutable = immutables.map(|one| one.memtable.memory().total_bytes());
            sum.immutable_bytes += immutable.sum::<usize>();
            if state.is_flushed() {
                sum.empty_bytes += bytes;
            }
        }
        sum
    }

    /// Closes the manifest. Jobs that still run in callers' threads can no longer commit anything.
    pub(crate) fn close(&self) {
        *self.lock_manifest() = None;
    }
}

/// The locked manifest. If the database fails while the lock is held, the failure is reported once
/// the lock is released.
#[derive(Debug)]
pub(crate) struct ManifestGuard<'a> {
    // Fields are dropped in declaration order, so this one is dropped first.
    manifest: MutexGuard<'a, Option<Manifest>>,
    _report: ReportOnDrop<'a>,
}

#[derive(Debug)]
struct ReportOnDrop<'a>(&'a Health);

impl Drop for ReportOnDrop<'_> {
    fn drop(&mut self) {
        self.0.report_failure();
    }
}

impl Deref for ManifestGuard<'_> {
    type Target = Option<Manifest>;

    fn deref(&self) -> &Option<Manifest> {
        &self.manifest
    }
}

impl DerefMut for ManifestGuard<'_> {
    fn deref_mut(&mut self) -> &mut Option<Manifest> {
        &mut self.manifest
    }
}
