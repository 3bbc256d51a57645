//! A handle of an open database: opening, closing, reads and writes.

mod administration;

use std::path::Path;
use std::sync::Arc;

use crate::api::handle::Handle;
use crate::api::iterator::Iter;
use crate::api::keyspace::Keyspace;
use crate::api::snapshot::Snapshot;
use crate::api::write_batch::WriteBatch;
use crate::api::write_options::WriteOptions;
use crate::base::error::{Error, Result};
use crate::base::range::KeyBounds;
use crate::base::types::DEFAULT_KEYSPACE;
use crate::engine::{Engine, Write, destroy};
use crate::files::value::{Key, Value};
use crate::options::{OpenMode, Options};

/// An open database: a persistent, ordered map from keys to values.
///
/// Keys are up to 64 KiB long, values up to 1 GiB; both may be empty. Order is bytewise.
///
/// A handle is cheap to clone and may be used from any thread.
///
/// [`Db::close`] flushes all memtables, closes the database and reports errors. Dropping the last
/// handle, snapshot and iterator ends the threads and releases the directory, but flushes nothing:
/// the next opening replays the log. Writes with [`Durability::None`](crate::Durability::None) are
/// not in the log, so those that were not flushed are lost.
///
/// The methods for keys work on the default keyspace; see [`Db::keyspace`] for others.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let db = terrane::Db::open(dir.path())?;
/// db.put("apple", "red")?;
/// db.put("banana", "yellow")?;
/// assert_eq!(db.get("apple")?.unwrap(), "red");
/// for entry in db.range("a".."c")? {
///     let (key, value) = entry?;
///     println!("{} is {}", key.escape_ascii(), value.escape_ascii());
/// }
/// db.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Db {
    default: Keyspace,
}

impl Options {
    /// Opens the database in a directory with these options.
    ///
    /// # Errors
    /// See [`Db::open`].
    pub fn open(&self, dir: impl AsRef<Path>) -> Result<Db> {
        let (engine, opened) = Engine::open(self, dir.as_ref())?;
        Db::new(Handle::new(engine, opened))
    }

    /// Opens the database in a directory for reading only, as [`Db::open_read_only`] does.
    ///
    /// # Errors
    /// See [`Db::open_read_only`].
    pub fn open_read_only(&self, dir: impl AsRef<Path>) -> Result<Db> {
        let (engine, opened) = Engine::open_read_only(self, dir.as_ref())?;
        Db::new(Handle::new(engine, opened))
    }

    /// Removes the files of the database in a directory, and those of its log. The directories stay, and
    /// so do other files in them. A removal that was interrupted can be repeated.
    ///
    /// Nobody may have the database open for writing. On Unix, processes that have it open read-only can
    /// go on reading.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// use terrane::{Db, Options};
    /// Db::open(dir.path())?.close()?;
    /// Options::new().destroy(dir.path())?;
    /// assert!(Db::open_read_only(dir.path()).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Locked`](crate::ErrorKind::Locked): somebody has the database open for writing.
    /// [`Invalid`](crate::ErrorKind::Invalid): there is no database, or the directory of its log is missing.
    /// [`Io`](crate::ErrorKind::Io): the operating system refused an operation; some files may be left.
    #[doc(alias("remove_database", "drop_database", "DestroyDB"))]
    pub fn destroy(&self, dir: impl AsRef<Path>) -> Result<()> {
        destroy(&*self.components.storage, dir.as_ref())
    }
}

impl Db {
    /// Opens the database in a directory, or creates one. Only one process at a time may open it for
    /// writing. The file `LOCK` ensures that, so it must not be removed while the database is open:
    /// another process could then open it too, and the first process notices the loss of its lock only
    /// at its next flush, compaction or segment of the log. Its writes in between are lost.
    ///
    /// # Errors
    /// - [`Locked`](crate::ErrorKind::Locked): another process, or another handle in this
    ///   process, has it open; the error names the holder.
    /// - [`Corruption`](crate::ErrorKind::Corruption): a file is damaged or missing.
    /// - [`Unsupported`](crate::ErrorKind::Unsupported): a newer version of this library wrote it.
    /// - [`Invalid`](crate::ErrorKind::Invalid): an option is invalid, or contradicts the options
    ///   that the database was created with; or there is no database, and the directory has other
    ///   files.
    /// - [`Io`](crate::ErrorKind::Io): the operating system refused an operation.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        Options::new().open(dir)
    }

    /// Opens the database in a directory for reading only, even while another process writes it.
    /// Reads see the state at one moment of this call: every write that was acknowledged before, and
    /// no later writes. Keyspaces that are created or dropped during the call may be missing or
    /// present.
    ///
    /// A writer removes no files during the call, unless `delete_persistence` is set, or read-only
    /// openings have overlapped without a gap for more than ten seconds.
    ///
    /// # Errors
    /// The errors of [`Db::open`] except `Locked`, `Invalid` if there is no database, and
    /// [`Busy`](crate::ErrorKind::Busy) if a writer replaced files during each of ten attempts.
    pub fn open_read_only(dir: impl AsRef<Path>) -> Result<Self> {
        Options::new().open_mode(OpenMode::MustExist).open_read_only(dir)
    }

    fn new(handle: Handle) -> Result<Self> {
        let tree = handle.engine.catalog.tree(DEFAULT_KEYSPACE);
        let tree = tree.ok_or_else(|| Error::internal("the default keyspace is missing"))?;
        Ok(Self { default: Keyspace { handle: Arc::new(handle), tree } })
    }

    /// Returns a handle whose default keyspace is the given one.
    pub(crate) fn of(default: Keyspace) -> Self {
        Self { default }
    }

    /// Returns the default keyspace, on which the methods for keys work.
    pub fn default_keyspace(&self) -> &Keyspace {
        &self.default
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.default.handle.engine
    }

    /// Flushes all memtables and closes the database for all handles. Later operations on other
    /// handles fail; open iterators continue.
    ///
    /// # Errors
    /// - A flush or sync failed. The database is closed nevertheless, and each write has the
    ///   durability that it was written with, unless a sync failed.
    /// - [`Invalid`](crate::ErrorKind::Invalid): an event listener called this. The database stays
    ///   open for other handles.
    pub fn close(self) -> Result<()> {
        self.engine().close()
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// See [`Db::write`].
    #[doc(alias("insert", "set", "upsert"))]
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.default.put(key, value)
    }

    /// Sets the value of a key, with options for this write.
    ///
    /// # Errors
    /// See [`Db::write`].
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: WriteOptions,
    ) -> Result<()> {
        self.default.put_with(key, value, options)
    }

    /// Removes a key, whether it exists or not.
    ///
    /// # Errors
    /// See [`Db::write`].
    #[doc(alias("remove", "erase", "del"))]
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.default.delete(key)
    }

    /// Removes a key, with options for this write.
    ///
    /// # Errors
    /// See [`Db::write`].
    pub fn delete_with(&self, key: impl AsRef<[u8]>, options: WriteOptions) -> Result<()> {
        self.default.delete_with(key, options)
    }

    /// Removes all keys of a range, at the cost of one write.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// db.put("user:1", "Ada")?;
    /// db.put("user:2", "Grace")?;
    /// db.delete_range("user:".."user:2")?;
    /// assert_eq!(db.iter()?.count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`Db::write`].
    #[doc(alias = "remove_range")]
    pub fn delete_range(&self, range: impl KeyBounds) -> Result<()> {
        self.default.delete_range(range)
    }

    /// Applies a batch atomically, with the durability of the database.
    ///
    /// Returns once all readers see the changes and they have the requested durability.
    ///
    /// # Errors
    /// - [`Invalid`](crate::ErrorKind::Invalid): a key, a value or the batch is too long, a keyspace
    ///   was dropped or belongs to another database, or the database is open read-only.
    /// - [`Io`](crate::ErrorKind::Io): the disk is full, or the operating system refused an
    ///   operation. Nothing changed.
    /// - [`Poisoned`](crate::ErrorKind::Poisoned): a sync failed, or the lock file was removed while
    ///   the database was open. The changes may exist after the database is opened again.
    /// - [`Corruption`](crate::ErrorKind::Corruption): writers are stopped, and an unreadable table
    ///   prevents the compaction that would resume them. Nothing changed.
    /// - [`Closed`](crate::ErrorKind::Closed): the database was closed.
    #[doc(alias("apply", "apply_batch", "commit"))]
    pub fn write(&self, batch: &WriteBatch) -> Result<()> {
        self.write_with(batch, WriteOptions::new())
    }

    /// Does the same as [`Db::write`], with options for this write.
    ///
    /// # Errors
    /// See [`Db::write`].
    pub fn write_with(&self, batch: &WriteBatch, options: WriteOptions) -> Result<()> {
        let engine = self.engine();
        batch.check_of(engine)?;
        options.check_no_ttl("a batch")?;
        let operations = engine.prepared(&batch.operations)?;
        engine.writer.write(
            Write::Batch(&operations),
            options.durability_or(engine.context.settings.durability),
        )
    }

    /// Returns the value of a key.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.default.get(key)
    }

    /// Returns the values of several keys, in the order of the keys, from one snapshot. This is
    /// cheaper than calling [`Db::get`] for each key.
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
    /// A table could not be read, or the database was closed.
    #[doc(alias("get_many", "batch_get"))]
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Value>>> {
        self.default.multi_get(keys)
    }

    /// Returns whether a key has a value. Reads no value that is stored apart from its key.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    #[doc(alias("contains_key", "exists", "has"))]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.default.contains(key)
    }

    /// Returns an iterator over all keys and values, in order.
    ///
    /// # Errors
    /// The database was closed.
    #[doc(alias("scan", "iterator"))]
    pub fn iter(&self) -> Result<Iter> {
        self.default.iter()
    }

    /// Returns an iterator over the keys of a range with their values, in order.
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
    /// The database was closed.
    #[doc(alias("scan", "seek"))]
    pub fn range(&self, range: impl KeyBounds) -> Result<Iter> {
        self.default.range(range)
    }

    /// Returns an iterator over the keys that begin with `prefix`, with their values, in order.
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
    /// The database was closed.
    #[doc(alias("scan_prefix", "starts_with"))]
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        self.default.prefix(prefix)
    }

    /// Returns the first key and its value; `None` if there are no keys.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    #[doc(alias("first_key_value", "min"))]
    pub fn first(&self) -> Result<Option<(Key, Value)>> {
        self.default.first()
    }

    /// Returns the last key and its value; `None` if there are no keys.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    #[doc(alias("last_key_value", "max"))]
    pub fn last(&self) -> Result<Option<(Key, Value)>> {
        self.default.last()
    }

    /// Returns whether there are no keys.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub fn is_empty(&self) -> Result<bool> {
        self.default.is_empty()
    }

    /// Returns a consistent view of the current state of all keyspaces.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(&self.default.handle, &self.default.tree)
    }
}
