//! Keyspaces, as futures.

use std::sync::Arc;

use super::iter::AsyncIter;
use super::operation::Operation;
use super::shared::Shared;
use super::{copied, owned};
use crate::api::keyspace::Keyspace;
use crate::api::write_options::WriteOptions;
use crate::base::error::Result;
use crate::base::range::KeyBounds;
use crate::files::value::Value;

/// A keyspace whose operations are futures; see [`AsyncDb`](crate::AsyncDb), which also says what a dropped
/// future means. An [`AsyncDb`](crate::AsyncDb) dereferences to its default keyspace.
#[derive(Debug, Clone)]
pub struct AsyncKeyspace {
    keyspace: Keyspace,
    /// Dropped last, so that the keyspace is not the last handle.
    pub(super) shared: Arc<Shared>,
}

impl AsyncKeyspace {
    pub(super) fn new(keyspace: Keyspace, shared: &Arc<Shared>) -> Self {
        Self { keyspace, shared: Arc::clone(shared) }
    }

    /// Returns the value of a key if the lookup needs only memory.
    fn resident(&self, key: &[u8]) -> Result<Option<Option<Value>>> {
        self.keyspace.handle.engine.reader.get_resident(&self.keyspace.tree, key)
    }

    /// An operation on a thread for reads.
    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Keyspace) -> Result<T> + Send + 'static,
    ) -> Operation<T> {
        let keyspace = self.keyspace.clone();
        self.shared.read(move || read(&keyspace))
    }

    /// An operation on a thread for writes.
    fn write<T: Send + 'static>(
        &self,
        write: impl FnOnce(&Keyspace) -> Result<T> + Send + 'static,
    ) -> Operation<T> {
        let keyspace = self.keyspace.clone();
        self.shared.write(move || write(&keyspace))
    }

    /// Returns the blocking handle: for its name, for batches and transactions, and for
    /// [`AsyncDb::run`](crate::AsyncDb::run).
    pub fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    /// Returns the value of a key. The lookup runs in the poll if it needs only memory.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub async fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        if let Some(known) = self.resident(key.as_ref())? {
            return Ok(known);
        }
        let key = key.as_ref().to_vec();
        self.read(move |keyspace| keyspace.get(key)).await
    }

    /// Returns the values of several keys, in the order of the keys, from one snapshot.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub async fn multi_get<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Value>>> {
        let keys = copied(keys);
        self.read(move |keyspace| keyspace.multi_get(keys)).await
    }

    /// Returns whether a key has a value. Reads no value that is stored apart from its key.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub async fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        if let Some(known) = self.resident(key.as_ref())? {
            return Ok(known.is_some());
        }
        let key = key.as_ref().to_vec();
        self.read(move |keyspace| keyspace.contains(key)).await
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// See [`Db::write`](crate::Db::write).
    pub async fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_with(key, value, WriteOptions::new()).await
    }

    /// Sets the value of a key, with options for this write.
    ///
    /// # Errors
    /// See [`Db::write`](crate::Db::write).
    pub async fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: WriteOptions,
    ) -> Result<()> {
        let (key, value) = (key.as_ref().to_vec(), value.as_ref().to_vec());
        self.write(move |keyspace| keyspace.put_with(key, value, options)).await
    }

    /// Removes a key, whether it exists or not.
    ///
    /// # Errors
    /// See [`Db::write`](crate::Db::write).
    pub async fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref().to_vec();
        self.write(move |keyspace| keyspace.delete(key)).await
    }

    /// Returns a stream of all entries, in order.
    pub fn iter(&self) -> AsyncIter {
        self.range(..)
    }

    /// Returns a stream of the entries whose keys are in a range, in order.
    #[doc(alias("scan", "seek"))]
    pub fn range(&self, range: impl KeyBounds) -> AsyncIter {
        let (keyspace, range) = (self.keyspace.clone(), owned(&range));
        AsyncIter::new(&self.shared, move || keyspace.range(range))
    }

    /// Returns a stream of the entries whose keys begin with `prefix`, in order.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> AsyncIter {
        let (keyspace, prefix) = (self.keyspace.clone(), prefix.as_ref().to_vec());
        AsyncIter::new(&self.shared, move || keyspace.prefix(prefix))
    }
}
