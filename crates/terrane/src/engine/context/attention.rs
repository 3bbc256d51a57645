//! The trees that background threads must visit.
//!
//! A database may have very many trees, most of them idle. If every thread looked at all trees
//! whenever it wakes, then n flushes of n trees would take quadratic time. So a tree registers here
//! when its state is replaced, and a thread that finds nothing to do for a tree removes it.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::base::types::KeyspaceId;

/// The trees for which each kind of background work may be due.
#[derive(Debug, Default)]
pub(crate) struct Attention {
    /// Trees with memtables that have been written to.
    pub(crate) memtables: TreeSet,
    /// Trees with immutable memtables.
    pub(crate) flushes: TreeSet,
    /// Trees for which policy may find a compaction.
    pub(crate) compactions: TreeSet,
    /// Trees with tables that may be droppable unread.
    pub(crate) drops: TreeSet,
    /// Trees with replaced states that may still be in use.
    pub(crate) retired: TreeSet,
    /// Readers requested a check of the kind of a memtable.
    checks_requested: AtomicBool,
}

impl Attention {
    /// Requests a check whether the kinds of memtables suit the operations.
    pub(crate) fn request_memtable_check(&self) {
        // Relaxed: the caller wakes a thread under a lock afterwards.
        self.checks_requested.store(true, Ordering::Relaxed);
    }

    /// Returns true if a check was requested. From now on, none is.
    pub(crate) fn take_memtable_check(&self) -> bool {
        self.checks_requested.load(Ordering::Relaxed)
            && self.checks_requested.swap(false, Ordering::Relaxed)
    }
}

/// A set of trees.
#[derive(Debug, Default)]
pub(crate) struct TreeSet {
    registered: Mutex<Registered>,
}

#[derive(Debug, Default)]
struct Registered {
    trees: BTreeMap<KeyspaceId, Registration>,
    /// The number of registrations so far.
    count: u64,
}

/// The number of a registration, which distinguishes it from earlier ones of the same tree: see
/// [`TreeSet::remove_if_unchanged`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Registration(u64);

impl TreeSet {
    fn lock(&self) -> MutexGuard<'_, Registered> {
        self.registered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, tree: KeyspaceId) {
        let mut registered = self.lock();
        registered.count += 1;
        let registration = Registration(registered.count);
        registered.trees.insert(tree, registration);
    }

    pub(crate) fn remove(&self, tree: KeyspaceId) {
        self.lock().trees.remove(&tree);
    }

    /// Adds or removes a tree.
    pub(crate) fn set(&self, tree: KeyspaceId, is_member: bool) {
        if is_member {
            self.add(tree);
        } else {
            self.remove(tree);
        }
    }

    /// Removes a tree, unless it was added again since it was listed.
    pub(crate) fn remove_if_unchanged(&self, tree: KeyspaceId, listed: Registration) {
        let mut registered = self.lock();
        if registered.trees.get(&tree) == Some(&listed) {
            registered.trees.remove(&tree);
        }
    }

    pub(crate) fn list(&self) -> Vec<(KeyspaceId, Registration)> {
        self.lock().trees.iter().map(|(id, registration)| (*id, *registration)).collect()
    }

    /// Returns at most `max` trees, in the order of their numbers from the one after `after` on, and
    /// from the smallest number on after the largest.
    pub(crate) fn list_after(&self, after: KeyspaceId, max: usize) -> Vec<KeyspaceId> {
        let registered = self.lock();
        let (first, last) = ((Excluded(after), Unbounded), ..=after);
        let trees = registered.trees.range(first).chain(registered.trees.range(last));
        trees.take(max).map(|(id, _)| *id).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().trees.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().trees.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread looked for work in vain while another thread added the tree again for new work. The
    /// first thread must not remove that registration.
    #[test]
    fn a_tree_that_was_added_again_is_not_removed() {
        let (set, tree) = (TreeSet::default(), KeyspaceId(3));
        set.add(tree);
        let [(_, listed)] = set.list()[..] else { panic!("one tree is listed") };
        set.add(tree);
        set.remove_if_unchanged(tree, listed);
        let [(_, listed)] = set.list()[..] else { panic!("the tree is still listed") };
        set.remove(tree);
        set.add(tree);
        set.remove_if_unchanged(tree, listed);
        let [(_, listed)] = set.list()[..] else { panic!("the tree was removed and added again") };
        set.remove_if_unchanged(tree, listed);
        assert!(set.is_empty());
    }

    #[test]
    fn trees_are_listed_from_any_number_on_and_each_once() {
        let set = TreeSet::default();
        [1, 3, 5].map(KeyspaceId).into_iter().for_each(|tree| set.add(tree));
        let listed = |after, max| -> Vec<u32> {
            set.list_after(KeyspaceId(after), max).into_iter().map(|tree| tree.0).collect()
        };
        assert_eq!(
            (listed(0, 2), listed(3, 9), listed(4, 2)),
            (vec![1, 3], vec![5, 1, 3], vec![5, 1])
        );
    }
}
