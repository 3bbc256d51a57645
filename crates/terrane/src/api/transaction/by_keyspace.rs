//! Reads or writes of a transaction by keyspace.

use std::sync::Arc;

use crate::base::types::KeyspaceId;
use crate::engine::Tree;

/// A `T` for each keyspace that a transaction uses: a vector, because most transactions use one or two.
#[derive(Debug, Clone)]
pub(super) struct ByKeyspace<T>(
    /// In the order of the numbers of the keyspaces.
    Vec<(Arc<Tree>, T)>,
);

impl<T> Default for ByKeyspace<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Default> ByKeyspace<T> {
    fn find(&self, id: KeyspaceId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&id, |(tree, _)| tree.id)
    }

    pub(super) fn get(&self, id: KeyspaceId) -> Option<&T> {
        self.find(id).ok().and_then(|at| self.0.get(at)).map(|(_, kept)| kept)
    }

    pub(super) fn get_or_insert(&mut self, tree: &Arc<Tree>) -> &mut T {
        let at = self.find(tree.id).unwrap_or_else(|at| {
            self.0.insert(at, (Arc::clone(tree), T::default()));
            at
        });
        &mut self.0[at].1
    }

    /// Returns the keyspaces in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<Tree>, &T)> {
        self.0.iter().map(|(tree, kept)| (tree, kept))
    }
}
