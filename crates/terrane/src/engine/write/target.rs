//! The memtables that a write goes to.

use std::sync::Arc;

use arc_swap::Guard;

use crate::base::error::{Error, Result};
use crate::base::types::{KeyspaceId, SeqNo};
use crate::engine::catalog::{Catalog, Trees};
use crate::engine::pipeline::WrittenKeys;
use crate::engine::tree::{Tree, TreeState};
use crate::files::batch::{Batch, Op, Ops};
use crate::files::wal::RecordOps;

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
                debug_assert!(!batch.has_ttls(), "times to live without an expiry time");
                batch.checked()?;
                Ok((batch.len() as u64, batch.user_bytes()))
            }
        }
    }

    /// Returns the operations for a log record.
    #[inline(always)]
    pub(super) fn record(&self) -> Result<RecordOps<'_>> {
        Ok(match self {
            Self::One(tree, op) => RecordOps::one(tree.id, op),
            Self::Batch(batch) => RecordOps::encoded(batch.checked()?),
        })
    }

    /// Returns true if the write only deletes, so that it is accepted on a full disk.
    #[cold]
    pub(super) fn frees_space(&self) -> bool {
        let deletes = |op: &Op<'_>| matches!(op, Op::Delete { .. } | Op::DeleteRange { .. });
        match self {
            Self::One(_, op) => deletes(op),
            Self::Batch(batch) => batch
                .checked()
                .is_ok_and(|encoded| Ops::new(encoded).flatten().all(|(_, op)| deletes(&op))),
        }
    }

    /// Returns the keys that the write changes.
    pub(super) fn keys(&self) -> Result<Vec<WrittenKeys>> {
        Ok(match self {
            Self::One(tree, op) => vec![WrittenKeys::of(tree.id, op)],
            Self::Batch(batch) => WrittenKeys::of_encoded(batch.checked()?),
        })
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

/// A tree of a batch, and its state.
pub(super) type BatchTree = (Arc<Tree>, Arc<TreeState>);

/// Returns the operations of an encoded batch that begins at `first`, with their sequence numbers and trees.
#[inline]
pub(super) fn batch_operations<'a>(
    encoded: &'a [u8],
    trees: &'a [BatchTree],
    first: SeqNo,
) -> impl Iterator<Item = (SeqNo, Op<'a>, &'a BatchTree)> {
    let ops = (first..).zip(Ops::new(encoded).flatten());
    ops.filter_map(|(seq, (keyspace, op))| {
        let tree = trees.iter().find(|(tree, _)| tree.id == keyspace)?;
        Some((seq, op, tree))
    })
}

/// The trees of a write and their memtables.
pub(super) enum WriteTarget<'a> {
    /// One operation, its tree, and the tree's state, in a guard without a reference count, because
    /// all writers would share the count.
    One { op: Op<'a>, tree: &'a Arc<Tree>, state: Guard<Arc<TreeState>> },
    /// A batch, its trees and their states.
    Batch { batch: &'a Batch, trees: Vec<BatchTree> },
}

impl<'a> WriteTarget<'a> {
    /// Creates the target of a write. Also prefetches the memory that the insertion accesses first,
    /// which arrives while the writer waits for the lock.
    #[inline(always)]
    pub(super) fn new(write: Write<'a>) -> Self {
        match write {
            Write::One(tree, op) => {
                let state = tree.state();
                if let Some(key) = op.point_key()
                    && let Some(front) = state.active.memtable.front_level()
                {
                    front.prefetch(key);
                }
                Self::One { op, tree, state }
            }
            Write::Batch(batch) => Self::Batch { batch, trees: Vec::new() },
        }
    }

    /// Prefetches the memory that the insertion accesses next, whose address is in the memory that
    /// [`Self::new`] prefetched.
    #[inline(always)]
    pub(super) fn prefetch_version(&self) {
        if let Self::One { op, state, .. } = self
            && let Some(key) = op.point_key()
            && let Some(front) = state.active.memtable.front_level()
        {
            front.prefetch_version(key);
        }
    }

    /// Returns the write.
    pub(super) fn write(&self) -> Write<'a> {
        match *self {
            Self::One { op, tree, .. } => Write::One(tree, op),
            Self::Batch { batch, .. } => Write::Batch(batch),
        }
    }

    /// Reloads the state of the tree if it was replaced.
    pub(super) fn refresh(&mut self) {
        if let Self::One { tree, state, .. } = self {
            tree.refresh(state);
        }
    }

    /// Loads the states of all trees of the write. Called with the writer lock held, or after
    /// loading the window; the active memtables are then not replaced until the window is closed.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a tree was dropped.
    #[inline(always)]
    pub(super) fn load(&mut self, catalog: &Catalog) -> Result<()> {
        match self {
            Self::One { tree, state, .. } => {
                tree.refresh(state);
                if tree.is_dropped() { Err(dropped(tree.id)) } else { Ok(()) }
            }
            Self::Batch { batch, trees } => load_all(batch, trees, catalog),
        }
    }

    /// Returns the trees of the write that still exist.
    pub(super) fn trees<'t>(&self, all: &'t Trees) -> Vec<&'t Arc<Tree>> {
        match self {
            Self::One { tree, .. } => all.get(&tree.id).into_iter().collect(),
            Self::Batch { batch, .. } => {
                batch.keyspaces().iter().filter_map(|id| all.get(id)).collect()
            }
        }
    }

    /// Drops replaced states, whose memtables would otherwise stay in memory.
    pub(super) fn release(&mut self) {
        match self {
            Self::One { tree, state, .. } => tree.refresh(state),
            Self::Batch { trees, .. } => trees.clear(),
        }
    }

    /// The most recently loaded states.
    #[inline]
    pub(super) fn states(&self) -> impl Iterator<Item = &TreeState> {
        let (one, several) = match self {
            Self::One { state, .. } => (Some(&***state), &[][..]),
            Self::Batch { trees, .. } => (None, &trees[..]),
        };
        one.into_iter().chain(several.iter().map(|(_, state)| &**state))
    }

    /// Notes the last sequence number of the write in its trees.
    #[inline(always)]
    pub(super) fn set_last_seq(&self, last: SeqNo) {
        match self {
            Self::One { tree, .. } => tree.set_last_seq(last),
            Self::Batch { trees, .. } => {
                trees.iter().for_each(|(tree, _)| tree.set_last_seq(last));
            }
        }
    }
}

fn load_all(batch: &Batch, trees: &mut Vec<BatchTree>, catalog: &Catalog) -> Result<()> {
    let all = catalog.trees();
    let find = |id: &KeyspaceId| all.get(id).ok_or_else(|| dropped(*id));
    trees.clear();
    for tree in batch.keyspaces().iter().map(find) {
        let tree = tree?;
        trees.push((Arc::clone(tree), tree.state_arc()));
    }
    Ok(())
}

#[cold]
fn dropped(keyspace: KeyspaceId) -> Error {
    Error::invalid("keyspace", format!("number {keyspace}, which was dropped"), "one that exists")
}
