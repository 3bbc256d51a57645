//! Compactions that filter values, and the states of trees that snapshots keep because of them.
//!
//! A filter removes or replaces the version that readers see, at its own sequence number, so a
//! snapshot's sequence number does not protect that version. Two rules do:
//!
//! 1. A compaction filters no version that is visible to a snapshot in its list of snapshots
//!    (`engine/merge/filtering.rs`).
//! 2. A snapshot that is missing from the list keeps the state that the tree has when the snapshot
//!    is taken, and reads from that state until it is released.
//!
//! Together they cover every snapshot: a compaction registers here before it lists the snapshots,
//! and stays registered until its result is installed. A snapshot first registers its number, under
//! the lock of the list, and then looks here. A snapshot that is missing from the list therefore
//! finds either the compaction or its result. Iterators and single lookups read from one state
//! anyway.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::base::types::KeyspaceId;
use crate::engine::tree::{Tree, TreeState};

/// The running compactions that filter.
#[derive(Debug, Default)]
pub(crate) struct FilteringJobs {
    count: AtomicUsize,
    /// The tree of each compaction.
    trees: Mutex<Vec<Arc<Tree>>>,
}

impl FilteringJobs {
    /// Registers a compaction that filters a tree. The compaction lists the snapshots afterwards,
    /// and drops the returned job after its result is installed.
    pub(crate) fn begin(&self, tree: &Arc<Tree>) -> FilteringJob<'_> {
        let mut trees = self.lock();
        trees.push(Arc::clone(tree));
        // Relaxed: the lock of the list of snapshots orders this store before the check of a
        // snapshot that is missing from the list.
        self.count.store(trees.len(), Ordering::Relaxed);
        FilteringJob { jobs: self, tree: tree.id }
    }

    /// Returns the current states of the trees that are being filtered, for a snapshot that has
    /// registered its number.
    #[inline]
    pub(crate) fn states_to_keep(&self) -> KeptStates {
        match self.count.load(Ordering::Acquire) {
            0 => KeptStates::default(),
            _ => self.filtered_states(),
        }
    }

    #[cold]
    fn filtered_states(&self) -> KeptStates {
        let mut kept = KeptStates::default();
        for tree in self.lock().iter() {
            if kept.of(tree).is_none() {
                kept.0.push((tree.id, tree.state_arc()));
            }
        }
        kept
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Tree>>> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A compaction that filters, until it is dropped.
#[derive(Debug)]
pub(crate) struct FilteringJob<'a> {
    jobs: &'a FilteringJobs,
    tree: KeyspaceId,
}

impl Drop for FilteringJob<'_> {
    fn drop(&mut self) {
        let mut trees = self.jobs.lock();
        if let Some(at) = trees.iter().position(|tree| tree.id == self.tree) {
            trees.swap_remove(at);
        }
        // Release pairs with the acquire in `states_to_keep`: a snapshot that no longer finds the
        // compaction reads the state that the compaction installed, or a later one.
        self.jobs.count.store(trees.len(), Ordering::Release);
    }
}

/// The states from which a snapshot reads the trees that were being filtered when it was taken.
#[derive(Debug, Default)]
pub(crate) struct KeptStates(Vec<(KeyspaceId, Arc<TreeState>)>);

impl KeptStates {
    /// Returns the state of a tree, if it is kept.
    #[inline]
    pub(crate) fn of(&self, tree: &Tree) -> Option<&Arc<TreeState>> {
        self.0.iter().find(|(id, _)| *id == tree.id).map(|(_, state)| state)
    }
}
