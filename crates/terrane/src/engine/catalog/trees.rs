//! The trees of a database, by number and by name.

use std::ops::Deref;
use std::sync::Arc;

use crate::base::shared_map::SharedMap;
use crate::base::types::KeyspaceId;
use crate::engine::tree::Tree;

/// All trees of a database. Clones share their contents.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trees {
    by_id: SharedMap<KeyspaceId, Arc<Tree>>,
    by_name: SharedMap<Arc<str>, KeyspaceId>,
}

impl Trees {
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<Tree>> {
        self.by_id.get(self.by_name.get(name)?)
    }

    pub(super) fn insert(&mut self, tree: Arc<Tree>) {
        self.by_name.insert(Arc::clone(tree.name()), tree.id);
        self.by_id.insert(tree.id, tree);
    }

    pub(super) fn remove(&mut self, tree: &Tree) {
        self.by_name.remove(&**tree.name());
        self.by_id.remove(&tree.id);
    }

    /// Notes that the tree that was called `before` has another name.
    pub(super) fn rename(&mut self, before: &str, tree: &Tree) {
        self.by_name.remove(before);
        self.by_name.insert(Arc::clone(tree.name()), tree.id);
    }
}

impl Deref for Trees {
    type Target = SharedMap<KeyspaceId, Arc<Tree>>;

    fn deref(&self) -> &Self::Target {
        &self.by_id
    }
}

impl FromIterator<Arc<Tree>> for Trees {
    fn from_iter<I: IntoIterator<Item = Arc<Tree>>>(trees: I) -> Self {
        let mut all = Self::default();
        trees.into_iter().for_each(|tree| all.insert(tree));
        all
    }
}
