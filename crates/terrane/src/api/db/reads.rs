//! Reads of the default keyspace, and snapshots.

use super::Db;
use crate::api::iterator::Iter;
use crate::api::snapshot::Snapshot;
use crate::base::error::Result;
use crate::base::range::KeyBounds;
use crate::files::value::{Key, Value};

impl Db {
    /// Returns the value of a key, or `None` if the key has none.
    ///
    /// The lookup sees every write that returned before it began. The [`Value`] shares the memory of the engine
    /// instead of copying it, and keeps that memory until it is dropped.
    ///
    /// **Cost:** searches the memtables, and then the sorted runs from new to old until one has the key. A filter skips
    /// nearly all runs without the key, so a lookup usually reads one block. It takes no lock and makes no system call
    /// if that block is in memory; otherwise it reads the file once. Lookups in other threads do not slow it down.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// db.put("apple", "red")?;
    /// let value = db.get("apple")?.unwrap();
    /// assert_eq!(&value[..], b"red");
    /// assert_eq!(db.get("cherry")?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`Io`](crate::ErrorKind::Io), [`Corruption`](crate::ErrorKind::Corruption): a table could not be read.
    /// - [`Closed`](crate::ErrorKind::Closed): the database was closed.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.default.get(key)
    }

    /// Returns the values of several keys, in the order of the keys, all from one snapshot.
    ///
    /// **Cost:** less than a [`Db::get`] for each key, because the waits for memory overlap, as do the reads of blocks
    /// that are not in memory.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// db.put("a", "1")?;
    /// let values = db.multi_get(["a", "b"])?;
    /// assert_eq!(values[0].as_deref(), Some(&b"1"[..]));
    /// assert!(values[1].is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`Io`](crate::ErrorKind::Io), [`Corruption`](crate::ErrorKind::Corruption): a table could not be read.
    /// - [`Closed`](crate::ErrorKind::Closed): the database was closed.
    #[doc(alias("get_many", "batch_get"))]
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Value>>> {
        self.default.multi_get(keys)
    }

    /// Returns whether a key has a value.
    ///
    /// **Cost:** that of [`Db::get`], except that a value that is stored separately from its key is not read.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// db.put("apple", "red")?;
    /// assert!(db.contains("apple")? && !db.contains("cherry")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`Io`](crate::ErrorKind::Io), [`Corruption`](crate::ErrorKind::Corruption): a table could not be read.
    /// - [`Closed`](crate::ErrorKind::Closed): the database was closed.
    #[doc(alias("contains_key", "exists", "has"))]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.default.contains(key)
    }

    /// Returns an iterator over all keys and values, in key order. It can be advanced from both ends.
    ///
    /// The iterator reads from a snapshot of this call: later writes do not affect it. It pins the memtables and tables
    /// of that snapshot until it is dropped. An error is an item, after which the iterator ends.
    ///
    /// **Cost:** creating it reads nothing. The first step searches every sorted run; each further step is a comparison
    /// or two, and a block is read once for all of its keys. Long scans read ahead.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// db.put("b", "2")?;
    /// db.put("a", "1")?;
    /// let keys: Vec<_> = db.iter()?.map(|entry| entry.map(|(key, _)| key)).collect::<Result<_, _>>()?;
    /// assert_eq!(keys, ["a", "b"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Closed`](crate::ErrorKind::Closed): the database was closed.
    #[doc(alias("scan", "iterator"))]
    pub fn iter(&self) -> Result<Iter> {
        self.default.iter()
    }

    /// Returns an iterator over the keys of a range with their values, in key order; see [`Db::iter`] for the
    /// snapshot and the cost.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// for word in ["ant", "bee", "cat"] {
    ///     db.put(word, "")?;
    /// }
    /// assert_eq!(db.range("b"..)?.count(), 2);
    /// // An iterator yields entries from either end.
    /// let last = db.range("a".."c")?.next_back().unwrap()?;
    /// assert_eq!(last.0, "bee");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Closed`](crate::ErrorKind::Closed): the database was closed.
    #[doc(alias("scan", "seek"))]
    pub fn range(&self, range: impl KeyBounds) -> Result<Iter> {
        self.default.range(range)
    }

    /// Returns an iterator over the keys that begin with `prefix`, with their values, in key order; see
    /// [`Db::iter`] for the snapshot and the cost.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// db.put("user:1", "Ada")?;
    /// db.put("visit:1", "today")?;
    /// for entry in db.prefix("user:")? {
    ///     let (key, value) = entry?;
    ///     assert_eq!((&key[..], &value[..]), (&b"user:1"[..], &b"Ada"[..]));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Closed`](crate::ErrorKind::Closed): the database was closed.
    #[doc(alias("scan_prefix", "starts_with"))]
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        self.default.prefix(prefix)
    }

    /// Returns the first key and its value; `None` if there are no keys. Costs one step of an iterator.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// db.put("b", "2")?;
    /// db.put("a", "1")?;
    /// assert_eq!(db.first()?.unwrap().0, "a");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`Io`](crate::ErrorKind::Io), [`Corruption`](crate::ErrorKind::Corruption): a table could not be read.
    /// - [`Closed`](crate::ErrorKind::Closed): the database was closed.
    #[doc(alias("first_key_value", "min"))]
    pub fn first(&self) -> Result<Option<(Key, Value)>> {
        self.default.first()
    }

    /// Returns the last key and its value; `None` if there are no keys. Costs one step of an iterator.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// db.put("log:001", "started")?;
    /// db.put("log:002", "stopped")?;
    /// assert_eq!(db.last()?.unwrap().1, "stopped");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`Io`](crate::ErrorKind::Io), [`Corruption`](crate::ErrorKind::Corruption): a table could not be read.
    /// - [`Closed`](crate::ErrorKind::Closed): the database was closed.
    #[doc(alias("last_key_value", "max"))]
    pub fn last(&self) -> Result<Option<(Key, Value)>> {
        self.default.last()
    }

    /// Returns true if the keyspace has no keys. Costs one step of an iterator.
    ///
    /// # Errors
    /// - [`Io`](crate::ErrorKind::Io), [`Corruption`](crate::ErrorKind::Corruption): a table could not be read.
    /// - [`Closed`](crate::ErrorKind::Closed): the database was closed.
    pub fn is_empty(&self) -> Result<bool> {
        self.default.is_empty()
    }

    /// Returns a consistent view of the current state of all keyspaces.
    ///
    /// **Cost:** two short locks and an allocation; nothing is locked while it exists. Flushes and compactions keep
    /// the versions that a snapshot sees, so one that lives long costs space.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// db.put("key", "before")?;
    /// let snapshot = db.snapshot();
    /// db.put("key", "after")?;
    /// assert_eq!(snapshot.get("key")?.unwrap(), "before");
    /// # Ok(())
    /// # }
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(&self.default.handle, &self.default.tree)
    }
}
