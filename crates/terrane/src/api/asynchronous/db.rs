//! A handle of a database whose operations are futures.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use super::keyspace::AsyncKeyspace;
use super::limits::AsyncLimits;
use super::operation::Operation;
use super::shared::{Lanes, Shared};
use super::snapshot::AsyncSnapshot;
use crate::api::db::Db;
use crate::api::keyspace::KeyspaceOptions;
use crate::api::transaction::{Transaction, TransactionOptions};
use crate::api::write_batch::WriteBatch;
use crate::api::write_options::WriteOptions;
use crate::base::error::{Error, Result};
use crate::options::Options;

/// A database whose operations are futures, for any executor. With the feature `async`.
///
/// The methods for keys, such as [`get`](AsyncKeyspace::get), [`put`](AsyncKeyspace::put) and
/// [`range`](AsyncKeyspace::range), are those of the default keyspace, to which a database dereferences.
///
/// No future blocks the thread that polls it: operations run on the handle's own threads, at most as many
/// concurrently as [`AsyncLimits`] allows, and further ones wait in order. A lookup that memtables and
/// cached blocks answer runs in the poll; any other operation costs a hand-over to a thread and back, about
/// 10 microseconds. Nothing happens before the first poll.
///
/// A handle is cheap to clone; clones share the threads. Dropping the last handle, snapshot and stream
/// closes the database as dropping a [`Db`] does, on a thread of the handle, so the directory stays
/// locked for a moment. Await [`AsyncDb::close`] before the program ends or opens the database again.
///
/// # Dropped futures
///
/// Dropping the future of a write does not cancel a write that has begun:
///
/// - A future that was never polled, or whose operation no thread has begun, changes nothing.
/// - A write that a thread has begun runs to completion, with the requested durability. It is
///   applied as a whole or not at all, as if the result had been awaited, but the result is
///   discarded. It may be applied after writes that the program makes later.
///
/// So a program whose write timed out does not know whether it happened. It may read the keys, or write
/// again: a [`WriteBatch`] without merge operands may be applied twice. A dropped read has no effect.
///
/// # Panics
///
/// A panic in a function passed to [`AsyncDb::transaction`] or [`AsyncDb::run`] is resumed where the future
/// is awaited. The transaction changes nothing, and the threads and the database continue.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # pollster::block_on(async {
/// use terrane::{AsyncDb, Durability, Options, WriteBatch, WriteOptions};
///
/// let db = AsyncDb::open(Options::new(), dir.path()).await?;
/// let mut batch = WriteBatch::new();
/// batch.put("apple", "red").put("banana", "yellow");
/// db.commit(batch, WriteOptions::new().durability(Durability::Sync)).await?;
/// assert_eq!(db.get("apple").await?.unwrap(), "red");
/// let mut fruits = db.range("a".."c");
/// while let Some((key, value)) = fruits.next().await.transpose()? {
///     println!("{} is {}", key.escape_ascii(), value.escape_ascii());
/// }
/// db.close().await?;
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct AsyncDb {
    db: Db,
    /// Dropped last, so that `db` is not the last handle.
    default: AsyncKeyspace,
}

impl From<Db> for AsyncDb {
    fn from(db: Db) -> Self {
        Self::new(db, AsyncLimits::new())
    }
}

impl Deref for AsyncDb {
    type Target = AsyncKeyspace;

    /// Returns the default keyspace, so that the database has its methods for keys.
    fn deref(&self) -> &AsyncKeyspace {
        &self.default
    }
}

impl AsyncDb {
    /// Returns a handle of an open database, with threads of its own.
    pub fn new(db: Db, limits: AsyncLimits) -> Self {
        Self::with_lanes(db, Lanes::new(limits))
    }

    fn with_lanes(db: Db, lanes: Lanes) -> Self {
        let shared = Shared::new(db.clone(), lanes);
        let default = AsyncKeyspace::new(db.default_keyspace().clone(), &shared);
        Self { db, default }
    }

    /// Opens a database, as [`Options::open`] does. If the future is dropped, the database is opened
    /// and closed again, or never opened.
    ///
    /// # Errors
    /// See [`Db::open`].
    pub async fn open(options: Options, dir: impl AsRef<Path>) -> Result<Self> {
        let (lanes, dir) = (Lanes::new(AsyncLimits::new()), dir.as_ref().to_path_buf());
        let opening = Operation::new(&lanes.writes, move || options.open(dir));
        Ok(Self::with_lanes(opening.await?, lanes))
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.default.shared
    }

    /// Returns the blocking handle, for calls that do not wait, such as [`Db::stats`] and [`Db::tree`].
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Returns the default keyspace, on which the methods for keys work.
    pub fn default_keyspace(&self) -> &AsyncKeyspace {
        &self.default
    }

    /// Runs a function on a thread for writes. Use it for calls that this type lacks, such as
    /// [`Db::checkpoint`] and [`Db::compact_range`].
    ///
    /// The function must not wait for futures of this handle, because they may need its thread.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # pollster::block_on(async {
    /// # let db = terrane::AsyncDb::from(terrane::Db::open(dir.path())?);
    /// db.run(|db| db.delete_range("tmp:".."tmp;")).await?;
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of the function.
    pub async fn run<T: Send + 'static>(
        &self,
        function: impl FnOnce(&Db) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let db = self.db.clone();
        self.shared().write(move || function(&db)).await
    }

    /// Applies a batch atomically. Returns once all readers see the changes and they have the requested
    /// durability. Batches that are synced concurrently share a sync. Batches whose futures are awaited
    /// concurrently are applied in any order.
    ///
    /// # Errors
    /// See [`Db::write`].
    #[doc(alias("write", "apply"))]
    pub async fn commit(&self, batch: WriteBatch, options: WriteOptions) -> Result<()> {
        self.run(move |db| db.write_with(&batch, options)).await
    }

    /// Runs `function` with a serializable transaction on a thread for writes and commits it, as
    /// [`Db::transaction`] does. The function must not wait for futures of this handle.
    ///
    /// Dropping the future does not interrupt a transaction that has begun.
    ///
    /// # Errors
    /// See [`Db::transaction`].
    pub async fn transaction<T: Send + 'static>(
        &self,
        function: impl FnMut(&mut Transaction) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run(move |db| db.transaction(function)).await
    }

    /// Does the same as [`AsyncDb::transaction`], with options. The error of the function may be of any
    /// type that has a conversion from [`Error`].
    ///
    /// # Errors
    /// See [`Db::transaction`].
    pub async fn transaction_with<T: Send + 'static, E: From<Error> + Send + 'static>(
        &self,
        options: TransactionOptions,
        function: impl FnMut(&mut Transaction) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        self.run(move |db| Ok(db.transaction_with(options, function))).await?
    }

    /// Returns a consistent view of the current state of all keyspaces. Does not wait.
    pub fn snapshot(&self) -> AsyncSnapshot {
        AsyncSnapshot::new(self.db.snapshot(), self.shared())
    }

    /// Opens a keyspace, or creates it, as [`Db::keyspace`] does.
    ///
    /// # Errors
    /// See [`Db::keyspace`].
    pub async fn keyspace(&self, name: &str, options: KeyspaceOptions) -> Result<AsyncKeyspace> {
        let name = name.to_owned();
        let keyspace = self.run(move |db| db.keyspace(&name, options)).await?;
        Ok(AsyncKeyspace::new(keyspace, self.shared()))
    }

    /// Flushes the memtables of all keyspaces, as [`Db::flush`] does.
    ///
    /// # Errors
    /// See [`Db::flush`].
    pub async fn flush(&self) -> Result<()> {
        self.run(Db::flush).await
    }

    /// Makes all earlier writes survive a power failure, as [`Db::sync`] does.
    ///
    /// # Errors
    /// See [`Db::sync`].
    pub async fn sync(&self) -> Result<()> {
        self.run(Db::sync).await
    }

    /// Flushes all memtables and closes the database for all handles, as [`Db::close`] does. Running
    /// operations complete or fail with [`Closed`](crate::ErrorKind::Closed), waiting operations
    /// fail with `Closed`, and open streams continue.
    ///
    /// # Errors
    /// See [`Db::close`].
    pub async fn close(self) -> Result<()> {
        self.run(|db| db.clone().close()).await
    }
}
