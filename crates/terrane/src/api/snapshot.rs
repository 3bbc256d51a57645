//! Snapshots: consistent views of a database.

use std::sync::Arc;

use crate::api::handle::Handle;
use crate::api::iterator::Iter;
use crate::api::keyspace::Keyspace;
use crate::base::error::Result;
use crate::base::range::{ALL_KEYS, HalfOpen, KeyBounds, bounds_of, prefix_bounds};
use crate::engine::Tree;
use crate::engine::snapshot_pin::SnapshotPin;
use crate::files::value::Value;

/// A consistent view of all keyspaces at one sequence number.
///
/// Compactions keep the versions that a snapshot sees, so a long-lived snapshot costs space. A snapshot
/// taken while a [compaction filter](crate::CompactionFilter) runs also pins tables and memtables, as an
/// iterator does. Snapshots are cheap to create and to clone, and may be used from any thread.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = terrane::Db::open(dir.path())?;
/// db.put("key", "before")?;
/// let snapshot = db.snapshot();
/// db.put("key", "after")?;
/// assert_eq!(snapshot.get("key")?.unwrap(), "before");
/// assert_eq!(db.get("key")?.unwrap(), "after");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Snapshot {
    handle: Arc<Handle>,
    default: Arc<Tree>,
    held: Arc<SnapshotPin>,
}

impl Snapshot {
    pub(crate) fn new(handle: &Arc<Handle>, default: &Arc<Tree>) -> Self {
        let held = SnapshotPin::new(&handle.engine);
        Self { handle: Arc::clone(handle), default: Arc::clone(default), held }
    }

    /// Returns the value of a key.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.handle.engine.reader.get(&self.default, key.as_ref(), Some(self.held.as_of()))
    }

    /// Returns the value of a key of a keyspace.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// let users = db.keyspace("users", terrane::KeyspaceOptions::new())?;
    /// users.put("1", "Ada")?;
    /// let snapshot = db.snapshot();
    /// users.delete("1")?;
    /// assert_eq!(snapshot.get_in(&users, "1")?.unwrap(), "Ada");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A table could not be read, the database was closed, or the keyspace belongs to another database.
    pub fn get_in(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        keyspace.check_of(&self.handle)?;
        self.handle.engine.reader.get(&keyspace.tree, key.as_ref(), Some(self.held.as_of()))
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
        let keys: Vec<K> = keys.into_iter().collect();
        self.handle.engine.reader.multi_get(&self.default, &keys, Some(self.held.as_of()))
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
        let keys: Vec<K> = keys.into_iter().collect();
        self.handle.engine.reader.multi_get(&keyspace.tree, &keys, Some(self.held.as_of()))
    }

    /// Returns whether a key has a value. Reads no value that is stored apart from its key.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    #[doc(alias("contains_key", "exists", "has"))]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.handle.engine.reader.contains(&self.default, key.as_ref(), Some(self.held.as_of()))
    }

    /// Returns whether a key of a keyspace has a value, as [`Self::contains`] does.
    ///
    /// # Errors
    /// A table could not be read, the database was closed, or the keyspace belongs to another database.
    pub fn contains_in(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<bool> {
        keyspace.check_of(&self.handle)?;
        self.handle.engine.reader.contains(&keyspace.tree, key.as_ref(), Some(self.held.as_of()))
    }

    /// Returns an iterator over all keys and values, in order.
    ///
    /// # Errors
    /// The database was closed.
    #[doc(alias("scan", "iterator"))]
    pub fn iter(&self) -> Result<Iter> {
        self.iter_bounds(&self.default, ALL_KEYS)
    }

    /// Returns an iterator over all keys and values of a keyspace, in order.
    ///
    /// # Errors
    /// The database was closed, or the keyspace belongs to another database.
    pub fn iter_in(&self, keyspace: &Keyspace) -> Result<Iter> {
        keyspace.check_of(&self.handle)?;
        self.iter_bounds(&keyspace.tree, ALL_KEYS)
    }

    /// Returns an iterator over the keys of a range with their values, in order.
    ///
    /// # Errors
    /// The database was closed.
    #[doc(alias("scan", "seek"))]
    pub fn range(&self, range: impl KeyBounds) -> Result<Iter> {
        self.iter_bounds(&self.default, bounds_of(&range))
    }

    /// Returns an iterator over the keys of a range of a keyspace with their values, in order.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// let users = db.keyspace("users", terrane::KeyspaceOptions::new())?;
    /// users.put("1", "Ada")?;
    /// let snapshot = db.snapshot();
    /// users.put("2", "Grace")?;
    /// assert_eq!(snapshot.range_in(&users, ..)?.count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The database was closed, or the keyspace belongs to another database.
    pub fn range_in(&self, keyspace: &Keyspace, range: impl KeyBounds) -> Result<Iter> {
        keyspace.check_of(&self.handle)?;
        self.iter_bounds(&keyspace.tree, bounds_of(&range))
    }

    /// Returns an iterator over the keys that begin with `prefix`, with their values, in order.
    ///
    /// # Errors
    /// The database was closed.
    #[doc(alias("scan_prefix", "starts_with"))]
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        self.iter_bounds(&self.default, prefix_bounds(prefix.as_ref()))
    }

    /// Returns an iterator over the keys of a keyspace that begin with `prefix`, with their values,
    /// in order.
    ///
    /// # Errors
    /// The database was closed, or the keyspace belongs to another database.
    pub fn prefix_in(&self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        keyspace.check_of(&self.handle)?;
        self.iter_bounds(&keyspace.tree, prefix_bounds(prefix.as_ref()))
    }

    fn iter_bounds(&self, tree: &Arc<Tree>, bounds: HalfOpen<'_>) -> Result<Iter> {
        let view = self.handle.engine.reader.view(tree, Some(self.held.as_of()))?;
        Ok(Iter::new(Arc::clone(&self.handle), view, Some(Arc::clone(&self.held)), bounds))
    }

    /// Returns the sequence number of the newest write that the snapshot sees. Later snapshots have
    /// larger numbers.
    pub fn sequence_number(&self) -> u64 {
        self.held.seq()
    }
}
