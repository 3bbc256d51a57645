//! Snapshots, as futures.

use std::sync::Arc;

use super::iter::AsyncIter;
use super::keyspace::AsyncKeyspace;
use super::operation::Operation;
use super::shared::Shared;
use super::{copied, owned};
use crate::api::snapshot::Snapshot;
use crate::base::error::Result;
use crate::base::range::KeyBounds;
use crate::files::value::Value;

/// A consistent view of all keyspaces, whose reads are futures; see [`Snapshot`].
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # pollster::block_on(async {
/// let db = terrane::AsyncDb::from(terrane::Db::open(dir.path())?);
/// db.put("key", "before").await?;
/// let snapshot = db.snapshot();
/// db.put("key", "after").await?;
/// assert_eq!(snapshot.get("key").await?.unwrap(), "before");
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct AsyncSnapshot {
    snapshot: Snapshot,
    /// Dropped last, so that the snapshot is not the last handle.
    shared: Arc<Shared>,
}

impl AsyncSnapshot {
    pub(super) fn new(snapshot: Snapshot, shared: &Arc<Shared>) -> Self {
        Self { snapshot, shared: Arc::clone(shared) }
    }

    /// An operation on a thread for reads.
    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Snapshot) -> Result<T> + Send + 'static,
    ) -> Operation<T> {
        let snapshot = self.snapshot.clone();
        self.shared.read(move || read(&snapshot))
    }

    /// Returns the blocking handle, for [`AsyncDb::run`](crate::AsyncDb::run).
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Returns the value of a key.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub async fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let key = key.as_ref().to_vec();
        self.read(move |snapshot| snapshot.get(key)).await
    }

    /// Returns the value of a key of a keyspace.
    ///
    /// # Errors
    /// A table could not be read, the database was closed, or the keyspace belongs to another database.
    pub async fn get_in(
        &self,
        keyspace: &AsyncKeyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Value>> {
        let (keyspace, key) = (keyspace.keyspace().clone(), key.as_ref().to_vec());
        self.read(move |snapshot| snapshot.get_in(&keyspace, key)).await
    }

    /// Returns the values of several keys, in the order of the keys.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub async fn multi_get<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Value>>> {
        let keys = copied(keys);
        self.read(move |snapshot| snapshot.multi_get(keys)).await
    }

    /// Returns a stream of all entries, in order.
    pub fn iter(&self) -> AsyncIter {
        self.range(..)
    }

    /// Returns a stream of the entries whose keys are in a range, in order.
    pub fn range(&self, range: impl KeyBounds) -> AsyncIter {
        let (snapshot, range) = (self.snapshot.clone(), owned(&range));
        AsyncIter::new(&self.shared, move || snapshot.range(range))
    }

    /// Returns a stream of the entries of a keyspace whose keys are in a range, in order. Its first item
    /// is an error if the keyspace belongs to another database.
    pub fn range_in(&self, keyspace: &AsyncKeyspace, range: impl KeyBounds) -> AsyncIter {
        let (snapshot, keyspace) = (self.snapshot.clone(), keyspace.keyspace().clone());
        let range = owned(&range);
        AsyncIter::new(&self.shared, move || snapshot.range_in(&keyspace, range))
    }

    /// Returns a stream of the entries whose keys begin with `prefix`, in order.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> AsyncIter {
        let (snapshot, prefix) = (self.snapshot.clone(), prefix.as_ref().to_vec());
        AsyncIter::new(&self.shared, move || snapshot.prefix(prefix))
    }
}
