//! Iterators over keys without their values.

use crate::api::db::Db;
use crate::api::iterator::Iter;
use crate::api::keyspace::Keyspace;
use crate::api::snapshot::Snapshot;
use crate::api::transaction::{Transaction, TransactionIter};
use crate::base::error::Result;
use crate::files::value::{Key, Value};

/// An iterator over the keys of a range, in order, which can be advanced from both ends.
///
/// [`Db::keys`] iterates over all keys, [`Iter::into_keys`] over those of a range or with a prefix. It
/// reads no value that is stored apart from its key. After an error it returns no more keys.
#[derive(Debug)]
pub struct Keys<I = Iter>(I);

impl<I: Iterator<Item = Result<(Key, Value)>>> Iterator for Keys<I> {
    type Item = Result<Key>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|entry| entry.map(|(key, _)| key))
    }
}

impl<I: DoubleEndedIterator<Item = Result<(Key, Value)>>> DoubleEndedIterator for Keys<I> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|entry| entry.map(|(key, _)| key))
    }
}

impl<I: std::iter::FusedIterator<Item = Result<(Key, Value)>>> std::iter::FusedIterator
    for Keys<I>
{
}

impl Iter {
    /// Returns an iterator over the remaining keys, without their values.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// # db.put("user:1", "a")?;
    /// let users: Vec<_> = db.prefix("user:")?.into_keys().collect::<Result<_, _>>()?;
    /// assert_eq!(users, ["user:1"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_keys(self) -> Keys {
        Keys(self.keys_only())
    }
}

impl<'a> TransactionIter<'a> {
    /// Returns an iterator over the remaining keys, without their values.
    pub fn into_keys(mut self) -> Keys<TransactionIter<'a>> {
        self.leave_out_values();
        Keys(self)
    }
}

impl Keyspace {
    /// Returns an iterator over all keys, in order.
    ///
    /// # Errors
    /// The database was closed.
    pub fn keys(&self) -> Result<Keys> {
        Ok(self.iter()?.into_keys())
    }
}

impl Db {
    /// Returns an iterator over all keys, in order.
    ///
    /// # Errors
    /// The database was closed.
    pub fn keys(&self) -> Result<Keys> {
        self.default_keyspace().keys()
    }
}

impl Snapshot {
    /// Returns an iterator over all keys, in order.
    ///
    /// # Errors
    /// The database was closed.
    pub fn keys(&self) -> Result<Keys> {
        Ok(self.iter()?.into_keys())
    }

    /// Returns an iterator over all keys of a keyspace, in order.
    ///
    /// # Errors
    /// The database was closed, or the keyspace belongs to another database.
    pub fn keys_in(&self, keyspace: &Keyspace) -> Result<Keys> {
        Ok(self.iter_in(keyspace)?.into_keys())
    }
}

impl Transaction {
    /// Returns an iterator over all keys, in order.
    ///
    /// # Errors
    /// The database was closed.
    pub fn keys(&self) -> Result<Keys<TransactionIter<'_>>> {
        Ok(self.iter()?.into_keys())
    }

    /// Returns an iterator over all keys of a keyspace, in order.
    ///
    /// # Errors
    /// The database was closed, or the keyspace belongs to another database.
    pub fn keys_in(&self, keyspace: &Keyspace) -> Result<Keys<TransactionIter<'_>>> {
        Ok(self.iter_in(keyspace)?.into_keys())
    }
}
