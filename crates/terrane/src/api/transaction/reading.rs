//! Lookups and iterators of a transaction.

use std::sync::Arc;

use super::{Isolation, Transaction, TransactionIter};
use crate::api::iterator::Iter;
use crate::api::keyspace::Keyspace;
use crate::base::error::Result;
use crate::base::range::{ALL_KEYS, HalfOpen, KeyBounds, bounds_of, prefix_bounds};
use crate::engine::Tree;
use crate::files::value::Value;

impl Transaction {
    /// Returns the value of a key.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.get_of(&self.default, key.as_ref())
    }

    /// Returns the value of a key of a keyspace.
    ///
    /// # Errors
    /// A table could not be read, the database was closed, or the keyspace belongs to another database.
    pub fn get_in(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        keyspace.check_of(&self.handle)?;
        self.get_of(&keyspace.tree, key.as_ref())
    }

    pub(super) fn get_of(&self, tree: &Arc<Tree>, key: &[u8]) -> Result<Option<Value>> {
        if let Some(written) = self.written(tree, key) {
            return Ok(written);
        }
        let value = self.handle.engine.reader.get(tree, key, Some(self.snapshot.as_of()))?;
        self.note_key(tree, key, value.is_some());
        Ok(value)
    }

    pub(super) fn written(&self, tree: &Tree, key: &[u8]) -> Option<Option<Value>> {
        self.writes.in_tree(tree).and_then(|writes| writes.get(key))
    }

    pub(super) fn note_key(&self, tree: &Arc<Tree>, key: &[u8], was_found: bool) {
        if self.options.isolation == Isolation::Serializable {
            self.reads.borrow_mut().add_key(tree, key, was_found);
        }
    }

    /// Returns the values of several keys, in the order of the keys.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    #[doc(alias("get_many", "batch_get"))]
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Value>>> {
        self.multi_get_of(&self.default, keys)
    }

    /// Returns the values of several keys of a keyspace, in the order of the keys.
    ///
    /// # Errors
    /// A table could not be read, the database was closed, or the keyspace belongs to another database.
    pub fn multi_get_in<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Value>>> {
        keyspace.check_of(&self.handle)?;
        self.multi_get_of(&keyspace.tree, keys)
    }

    fn multi_get_of<K: AsRef<[u8]>>(
        &self,
        tree: &Arc<Tree>,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Value>>> {
        let keys: Vec<K> = keys.into_iter().collect();
        let mut values: Vec<_> = keys.iter().map(|key| self.written(tree, key.as_ref())).collect();
        let is_stored = |(key, written): &(&K, &Option<Option<Value>>)| {
            written.is_none().then_some(key.as_ref().to_vec())
        };
        let stored: Vec<_> = keys.iter().zip(&values).filter_map(|pair| is_stored(&pair)).collect();
        let found =
            self.handle.engine.reader.multi_get(tree, &stored, Some(self.snapshot.as_of()))?;
        let mut found = stored.iter().zip(found);
        for value in values.iter_mut().filter(|value| value.is_none()) {
            if let Some((key, stored)) = found.next() {
                self.note_key(tree, key, stored.is_some());
                *value = Some(stored);
            }
        }
        Ok(values.into_iter().map(Option::flatten).collect())
    }

    /// Returns whether a key has a value.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    #[doc(alias("contains_key", "exists", "has"))]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.contains_of(&self.default, key.as_ref())
    }

    /// Returns whether a key of a keyspace has a value.
    ///
    /// # Errors
    /// A table could not be read, the database was closed, or the keyspace belongs to another database.
    pub fn contains_in(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<bool> {
        keyspace.check_of(&self.handle)?;
        self.contains_of(&keyspace.tree, key.as_ref())
    }

    fn contains_of(&self, tree: &Arc<Tree>, key: &[u8]) -> Result<bool> {
        if let Some(written) = self.written(tree, key) {
            return Ok(written.is_some());
        }
        let exists = self.handle.engine.reader.contains(tree, key, Some(self.snapshot.as_of()))?;
        self.note_key(tree, key, exists);
        Ok(exists)
    }

    /// Returns an iterator over all keys and values, in order.
    ///
    /// # Errors
    /// The database was closed.
    #[doc(alias("scan", "iterator"))]
    pub fn iter(&self) -> Result<TransactionIter<'_>> {
        self.iter_bounds(&self.default, &ALL_KEYS)
    }

    /// Returns an iterator over all keys and values of a keyspace, in order.
    ///
    /// # Errors
    /// The database was closed, or the keyspace belongs to another database.
    pub fn iter_in(&self, keyspace: &Keyspace) -> Result<TransactionIter<'_>> {
        keyspace.check_of(&self.handle)?;
        self.iter_bounds(&keyspace.tree, &ALL_KEYS)
    }

    /// Returns an iterator over the keys of a range with their values, in order.
    ///
    /// # Errors
    /// The database was closed.
    #[doc(alias("scan", "seek"))]
    pub fn range(&self, range: impl KeyBounds) -> Result<TransactionIter<'_>> {
        self.iter_bounds(&self.default, &bounds_of(&range))
    }

    /// Returns an iterator over the keys of a range of a keyspace with their values, in order.
    ///
    /// # Errors
    /// The database was closed, or the keyspace belongs to another database.
    pub fn range_in(
        &self,
        keyspace: &Keyspace,
        range: impl KeyBounds,
    ) -> Result<TransactionIter<'_>> {
        keyspace.check_of(&self.handle)?;
        self.iter_bounds(&keyspace.tree, &bounds_of(&range))
    }

    /// Returns an iterator over the keys that begin with `prefix`, with their values, in order.
    ///
    /// # Errors
    /// The database was closed.
    #[doc(alias("scan_prefix", "starts_with"))]
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<TransactionIter<'_>> {
        self.iter_bounds(&self.default, &prefix_bounds(prefix.as_ref()))
    }

    /// Returns an iterator over the keys of a keyspace that begin with `prefix`, with their values, in
    /// order.
    ///
    /// # Errors
    /// The database was closed, or the keyspace belongs to another database.
    pub fn prefix_in(
        &self,
        keyspace: &Keyspace,
        prefix: impl AsRef<[u8]>,
    ) -> Result<TransactionIter<'_>> {
        keyspace.check_of(&self.handle)?;
        self.iter_bounds(&keyspace.tree, &prefix_bounds(prefix.as_ref()))
    }

    fn iter_bounds(&self, tree: &Arc<Tree>, bounds: &HalfOpen<'_>) -> Result<TransactionIter<'_>> {
        let view = self.handle.engine.reader.view(tree, Some(self.snapshot.as_of()))?;
        let held = Some(Arc::clone(&self.snapshot));
        let stored = Iter::new(Arc::clone(&self.handle), view, held, bounds.clone());
        let (start, end) = (&*bounds.0, bounds.1.as_deref());
        let open = match self.options.isolation {
            Isolation::Serializable => Some(self.reads.borrow_mut().open_range(tree, start, end)),
            Isolation::Snapshot => None,
        };
        Ok(TransactionIter::new(self, stored, self.writes.in_tree(tree), open, (start, end)))
    }
}
