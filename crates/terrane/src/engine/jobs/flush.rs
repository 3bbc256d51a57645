//! Writes immutable memtables into tables of level 0.
//!
//! | module | one line |
//! |---|---|
//! | `group` | writes and installs the tables of several trees |
//! | `report` | the events of a flush |
//! | `logged_values` | takes large values from the log |
//! | `target` | the run that a flush writes to, and its claim on that run's tables |
//! | `syncs` | syncs the files of several flushes at the same time |
//! | `tables` | writes the memtable, and the tables merged with it, into new tables |

mod group;
mod logged_values;
mod report;
mod syncs;
mod tables;
mod target;

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use terrane_policy::Turns;

use super::gate::Gate;
use super::merge_io::MergeIo;
use super::picking::Picker;
use crate::base::error::Result;
use crate::base::types::KeyspaceId;
use crate::engine::catalog::{Catalog, Trees};
use crate::engine::context::Context;
use crate::engine::pipeline::Pipeline;
use crate::engine::tree::Tree;

/// A waiting tree is passed by at most this many flushes of trees that are closer to stopping their
/// writers, and then by at most one flush of each other tree.
const PASSES_MAX: u32 = 2;

/// A memtable of fewer bytes shares the syncs of its flush with those of other trees.
const SMALL_BYTES: u64 = 256 << 10;

/// The maximum number of trees that are flushed together. Each keeps a file open until it is synced.
const GROUP_MAX: usize = 64;

/// At most this many waiting trees are compared when one is picked, because comparing very many
/// would take longer than their flushes.
const COMPARED_MAX: usize = 1024;

/// How a flush shares the I/O budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlushPace {
    /// It waits until the budget allows more.
    Budget,
    /// It takes what it needs.
    AtOnce,
}

/// Flushes memtables.
#[derive(Debug)]
pub(crate) struct Flusher {
    context: Arc<Context>,
    pipeline: Arc<Pipeline>,
    catalog: Arc<Catalog>,
    io: MergeIo,
    picker: Arc<Picker>,
    gate: Arc<Gate>,
    /// How often each waiting tree was passed by flushes of other trees.
    turns: Mutex<Turns>,
    /// The number of groups of trees that were picked and are being flushed.
    running: AtomicUsize,
    /// The last of the trees that were compared, if not all were.
    compared_to: AtomicU32,
}

impl Flusher {
    fn lock_turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn new(
        context: &Arc<Context>,
        pipeline: &Arc<Pipeline>,
        catalog: &Arc<Catalog>,
        picker: &Arc<Picker>,
        gate: &Arc<Gate>,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            pipeline: Arc::clone(pipeline),
            catalog: Arc::clone(catalog),
            io: MergeIo::new(context, catalog),
            picker: Arc::clone(picker),
            gate: Arc::clone(gate),
            turns: Mutex::default(),
            running: AtomicUsize::new(0),
            compared_to: AtomicU32::new(0),
        }
    }

    /// Returns the trees to flush next, among the trees that no thread is flushing, and marks them as
    /// being flushed. A tree that was passed often comes first, then the tree that is closest to
    /// the number of immutable memtables at which its writers stop. If its memtable is small, other
    /// trees with small memtables share its syncs.
    pub(super) fn pick(&self) -> Option<Vec<Arc<Tree>>> {
        let trees = self.catalog.trees();
        let mut waiting = self.waiting(&trees);
        let mut turns = self.lock_turns();
        turns.note_waiting(waiting.iter().map(|tree| tree.id.0));
        if waiting.len() > 1 {
            waiting.sort_by_cached_key(|tree| {
                let stop_at = u64::from(tree.design().constraint.stop_buffers.max(1));
                let fullness = tree.state().immutables.len() as u64 * 1000 / stop_at;
                let passed = turns.passed(tree.id.0);
                (Reverse(passed.saturating_sub(PASSES_MAX - 1)), Reverse(fullness))
            });
        }
        drop(turns);
        let begins = |tree: &&Arc<Tree>| {
            let mut jobs = tree.jobs();
            let is_free = !std::mem::replace(&mut jobs.is_flushing, true);
            if is_free {
                self.context.signals.begin_job();
            }
            is_free
        };
        let mut waiting_free = waiting.iter().filter(|tree| begins(tree));
        let mut picked = vec![Arc::clone(waiting_free.next()?)];
        if !self.context.is_inline() && is_small(&picked[0]) {
            // The flush threads share the waiting trees.
            let share = waiting.len().div_ceil(self.context.settings.flush_threads.max(1));
            let small = waiting.iter().filter(|tree| is_small(tree) && begins(tree));
            picked.extend(small.take(share.min(GROUP_MAX) - 1).map(|tree| Arc::clone(tree)));
        }
        // Another thread that found no running flush may have gone back to sleep. A memtable may
        // have become immutable since the trees were listed, so they are checked again after the
        // count has changed. SeqCst: a thread that makes a memtable immutable after this check
        // wakes the flush threads, which then see the count.
        self.running.fetch_add(1, Ordering::SeqCst);
        if self.context.attention.flushes.len() > picked.len() {
            self.context.signals.wake();
        }
        Some(picked)
    }

    /// Returns the trees with immutable memtables, or [`COMPARED_MAX`] of them, which are others at the
    /// next call.
    fn waiting<'a>(&self, trees: &'a Trees) -> Vec<&'a Arc<Tree>> {
        // Relaxed: two threads may compare the same trees.
        let after = KeyspaceId(self.compared_to.load(Ordering::Relaxed));
        let ids = self.context.attention.flushes.list_after(after, COMPARED_MAX);
        if let (COMPARED_MAX, Some(last)) = (ids.len(), ids.last()) {
            self.compared_to.store(last.0, Ordering::Relaxed);
        }
        let trees = ids.iter().filter_map(|id| trees.get(id));
        trees.filter(|tree| !tree.state().immutables.is_empty()).collect()
    }

    /// Returns the number of groups of trees that are being flushed.
    pub(super) fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    /// Returns true if a memtable waits to be flushed, or is being flushed.
    pub(super) fn is_any_due(&self) -> bool {
        !self.context.attention.flushes.is_empty()
    }

    /// Flushes trees that were picked.
    pub(super) fn run(&self, trees: &[Arc<Tree>]) -> Result<()> {
        let result = self.flush_oldest(trees);
        self.running.fetch_sub(1, Ordering::SeqCst);
        self.lock_turns().note_ends(trees.iter().map(|tree| tree.id.0));
        for tree in trees {
            tree.jobs().is_flushing = false;
            self.context.signals.end_job();
        }
        result
    }
}

/// Returns true if the next memtable to flush is so small that its syncs take most of the time.
fn is_small(tree: &Tree) -> bool {
    let oldest = tree.state().immutables.last().cloned();
    oldest.is_some_and(|oldest| oldest.filled_bytes() < SMALL_BYTES)
}
