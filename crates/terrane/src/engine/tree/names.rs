//! The names that a tree has had since the database was opened.
//!
//! A handle returns the name of its keyspace as a reference, so a name must stay valid after it is
//! replaced. Names are therefore kept until the tree is dropped. Few accumulate, because a renaming
//! costs a manifest edit and happens rarely.

use std::sync::{Arc, OnceLock};

use super::Tree;

/// A list of names, the last of which is current.
#[derive(Debug)]
pub(super) struct Names {
    name: Arc<str>,
    next: OnceLock<Box<Names>>,
}

impl Names {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.into(), next: OnceLock::new() }
    }

    fn last(&self) -> &Self {
        std::iter::successors(Some(self), |names| names.next.get().map(Box::as_ref))
            .last()
            .unwrap_or(self)
    }

    /// Returns the current name.
    pub(super) fn current(&self) -> &Arc<str> {
        &self.last().name
    }

    /// Replaces the name. The caller holds the manifest lock, so that no two names are set
    /// concurrently.
    pub(super) fn replace(&self, name: &str) {
        let is_set = self.last().next.set(Box::new(Self::new(name)));
        debug_assert!(is_set.is_ok(), "two threads rename a tree");
    }
}

impl Tree {
    /// The name of the keyspace.
    pub(crate) fn name(&self) -> &Arc<str> {
        self.names.current()
    }

    /// Sets the name of the keyspace, with the manifest lock held.
    pub(crate) fn set_name(&self, name: &str) {
        self.names.replace(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_names_remain_valid_for_their_readers() {
        let names = Names::new("a");
        let first = names.current();
        names.replace("b");
        names.replace("a again");
        assert_eq!((&**first, &**names.current()), ("a", "a again"));
    }
}
