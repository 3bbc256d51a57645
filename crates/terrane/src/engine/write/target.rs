//! The memtables that a write goes to.

use std::sync::Arc;

use arc_swap::Guard;
use terrane_memtable::Memtable;

use crate::batch::{Batch, Op};
use crate::engine::catalog::Catalog;
use crate::engine::tree::{Tree, TreeState};
use crate::error::{Error, Result};
use crate::types::{KeyspaceId, SeqNo};

/// Operations that are written atomically.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Write<'a> {
    /// One operation on one tree.
    One(&'a Arc<Tree>, Op<'a>),
    /// Any number of operations on any trees.
    Batch(&'a Batch),
}

impl Write<'_> {
    /// Checks the operations. Returns their number and their size in user bytes.
    #[inline]
    pub(super) fn check(&self) -> Result<(u64, usize)> {
        match self {
            Self::One(_, op) => {
                op.check()?;
                Ok((1, op.user_bytes()))
            }
            Self::Batch(batch) => {
                batch.checked()?;
                Ok((batch.len() as u64, batch.user_bytes()))
            }
        }
    }

    pub(super) fn into_batch(self) -> Batch {
        match self {
            Self::One(tree, op) => {
                let mut batch = Batch::default();
                batch.add(tree.id, op);
                batch
            }
            Self::Batch(batch) => batch.clone(),
        }
    }
}

/// The trees of a write, and their memtables.
pub(super) enum WriteTarget<'a> {
    /// One operation, its tree, and the state of the tree, in a guard that is not reference-counted:
    /// the count would be shared by all writers.
    One { op: Op<'a>, tree: &'a Arc<Tree>, state: Guard<Arc<TreeState>> },
    /// A batch, and the memtables of its trees, taken with the writer lock.
    Batch { batch: &'a Batch, memtables: Vec<(Arc<Tree>, Arc<Memtable>)> },
}

impl<'a> WriteTarget<'a> {
    /// Creates the target of a write. Also prefetches the memory that the insertion accesses first;
    /// it arrives while the writer waits for the lock.
    pub(super) fn new(write: Write<'a>) -> Self {
        match write {
            Write::One(tree, op) => {
                let state = tree.state();
                if let Op::Put { key, .. } | Op::Delete { key } = op
                    && let Some(front) = state.active.memtable.front_level()
                {
                    front.prefetch(key);
                }
                Self::One { op, tree, state }
            }
            Write::Batch(batch) => Self::Batch { batch, memtables: Vec::new() },
        }
    }

    /// Prefetches the memory that the insertion accesses next. Its address is in the memory that
    /// [`Self::new`] prefetched.
    #[inline]
    pub(super) fn prefetch_version(&self) {
        if let Self::One { op: Op::Put { key, .. } | Op::Delete { key }, state, .. } = self
            && let Some(front) = state.active.memtable.front_level()
        {
            front.prefetch_version(key);
        }
    }

    /// Reloads the state of the tree if it was replaced.
    pub(super) fn refresh(&mut self) {
        if let Self::One { tree, state, .. } = self {
            tree.refresh(state);
        }
    }

    /// Takes the active memtables of all trees of the write, whose sequence numbers end at `last`.
    /// Called with the writer lock, under which memtables are replaced.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a tree was dropped.
    #[inline]
    pub(super) fn take_memtables(&mut self, catalog: &Catalog, last: SeqNo) -> Result<()> {
        match self {
            Self::One { tree, .. } if tree.is_dropped() => Err(dropped(tree.id)),
            Self::One { tree, .. } => {
                tree.set_last_seq(last);
                Ok(())
            }
            Self::Batch { batch, memtables } => {
                let trees = catalog.trees();
                let find = |id: &KeyspaceId| trees.get(id).ok_or_else(|| dropped(*id));
                let found: Vec<_> = batch.keyspaces().iter().map(find).collect::<Result<_>>()?;
                memtables.extend(found.into_iter().map(|tree| {
                    tree.set_last_seq(last);
                    (Arc::clone(tree), Arc::clone(&tree.state().active.memtable))
                }));
                Ok(())
            }
        }
    }
}

fn dropped(keyspace: KeyspaceId) -> Error {
    Error::invalid("keyspace", format!("number {keyspace}, which was dropped"), "one that exists")
}
