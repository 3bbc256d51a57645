//! Reads of a keyspace.

use std::sync::Arc;

use super::Keyspace;
use crate::api::handle::Handle;
use crate::api::iterator::Iter;
use crate::base::error::Result;
use crate::base::range::{ALL_KEYS, HalfOpen, KeyBounds, bounds_of, prefix_bounds};
use crate::files::value::{Key, Value};

impl Keyspace {
    /// Returns the value of a key, or `None` if the key has none; see [`Db::get`](crate::Db::get) for the cost.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// # let users = db.keyspace("users", terrane::KeyspaceOptions::new())?;
    /// users.put("1", "Ada")?;
    /// assert_eq!(users.get("1")?.unwrap(), "Ada");
    /// assert_eq!(users.get("2")?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.handle.engine.reader.get(&self.tree, key.as_ref(), None)
    }

    /// Returns the values of several keys, in the order of the keys, all from one snapshot. Costs less than a lookup
    /// for each key.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// # let users = db.keyspace("users", terrane::KeyspaceOptions::new())?;
    /// users.put("1", "Ada")?;
    /// let found = users.multi_get(["1", "2"])?;
    /// assert!(found[0].is_some() && found[1].is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    #[doc(alias("get_many", "batch_get"))]
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Value>>> {
        let keys: Vec<K> = keys.into_iter().collect();
        self.handle.engine.reader.multi_get(&self.tree, &keys, None)
    }

    /// Returns whether a key has a value. A value that is stored separately from its key is not read.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// # let users = db.keyspace("users", terrane::KeyspaceOptions::new())?;
    /// users.put("1", "Ada")?;
    /// assert!(users.contains("1")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    #[doc(alias("contains_key", "exists", "has"))]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.handle.engine.reader.contains(&self.tree, key.as_ref(), None)
    }

    /// Returns an iterator over all keys and values, in key order; see [`Db::iter`](crate::Db::iter) for its snapshot
    /// and cost.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// # let users = db.keyspace("users", terrane::KeyspaceOptions::new())?;
    /// users.put("1", "Ada")?;
    /// for entry in users.iter()? {
    ///     let (key, value) = entry?;
    ///     assert_eq!((&key[..], &value[..]), (&b"1"[..], &b"Ada"[..]));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The database was closed.
    #[doc(alias("scan", "iterator"))]
    pub fn iter(&self) -> Result<Iter> {
        self.iter_bounds(ALL_KEYS)
    }

    /// Returns an iterator over the keys of a range with their values, in key order.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// # let users = db.keyspace("users", terrane::KeyspaceOptions::new())?;
    /// for id in ["1", "2", "3"] {
    ///     users.put(id, "")?;
    /// }
    /// assert_eq!(users.range("2"..)?.count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The database was closed.
    #[doc(alias("scan", "seek"))]
    pub fn range(&self, range: impl KeyBounds) -> Result<Iter> {
        self.iter_bounds(bounds_of(&range))
    }

    /// Returns an iterator over the keys that begin with `prefix`, with their values, in key order.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// # let users = db.keyspace("users", terrane::KeyspaceOptions::new())?;
    /// users.put("de:1", "Emmy")?;
    /// users.put("en:1", "Ada")?;
    /// assert_eq!(users.prefix("de:")?.count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The database was closed.
    #[doc(alias("scan_prefix", "starts_with"))]
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        self.iter_bounds(prefix_bounds(prefix.as_ref()))
    }

    /// Returns the first key and its value; `None` if there are no keys. Costs one step of an iterator.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    #[doc(alias("first_key_value", "min"))]
    pub fn first(&self) -> Result<Option<(Key, Value)>> {
        self.iter()?.next().transpose()
    }

    /// Returns the last key and its value; `None` if there are no keys. Costs one step of an iterator.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    #[doc(alias("last_key_value", "max"))]
    pub fn last(&self) -> Result<Option<(Key, Value)>> {
        self.iter()?.next_back().transpose()
    }

    /// Returns true if the keyspace has no keys. Costs one step of an iterator.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub fn is_empty(&self) -> Result<bool> {
        self.iter()?.advance().map(|is_any| !is_any)
    }

    fn iter_bounds(&self, bounds: HalfOpen<'_>) -> Result<Iter> {
        let Handle { engine, scans, .. } = &*self.handle;
        let (view, held) = scans.begin_scan(engine, &self.tree, &bounds)?;
        Ok(Iter::new(Arc::clone(&self.handle), view, held, bounds))
    }
}
