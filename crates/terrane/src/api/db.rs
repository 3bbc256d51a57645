//! A handle of an open database: opening and closing.
//!
//! | module | one line |
//! |---|---|
//! | `writes`, `reads` | the methods for keys, on the default keyspace |
//! | `administration` | keyspaces, maintenance, reports and settings |

mod administration;
mod reads;
mod writes;

use std::path::Path;
use std::sync::Arc;

use crate::api::handle::Handle;
use crate::api::keyspace::Keyspace;
use crate::base::error::{Error, Result};
use crate::base::types::DEFAULT_KEYSPACE;
use crate::engine::{Engine, destroy};
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
/// A database stays in the directory in which it was opened, even if that is renamed or its path leads
/// elsewhere later. If it is removed, the database refuses writes
/// ([`Error::DirectoryRemoved`](crate::Error::DirectoryRemoved)).
///
/// In a child of `fork`, the handles of the parent do not work: every operation returns
/// [`Error::Forked`](crate::Error::Forked), including [`Db::close`], and dropping a handle does nothing.
/// The child can open the database again once the parent has closed it or has ended; the lock does not
/// stay with children. A daemon should open its database after its last fork. This does not apply to
/// children made by `clone` or `vfork` directly: they must not use a handle of the parent.
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
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// use terrane::{Durability, Options};
    ///
    /// let options = Options::new().memory_budget(256 << 20).durability(Durability::Sync);
    /// let db = options.open(dir.path())?;
    /// db.put("key", "value")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`Db::open`].
    pub fn open(&self, dir: impl AsRef<Path>) -> Result<Db> {
        let (engine, opened) = Engine::open(self, dir.as_ref())?;
        Db::new(Handle::new(engine, opened))
    }

    /// Opens the database in a directory for reading only, even while another process writes it.
    /// Reads see the state at one moment of this call: every write that was acknowledged before, and
    /// no later writes. Keyspaces that are created or dropped during the call may be missing or
    /// present.
    ///
    /// A writer removes no files during the call, unless `delete_persistence` is set, or read-only
    /// openings have overlapped without a gap for more than ten seconds.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # use terrane::Db;
    /// let db = Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// let reader = Db::open_read_only(dir.path())?;
    /// db.put("key", "newer")?;
    /// assert_eq!(reader.get("key")?.unwrap(), "value");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Db::open`] except `Locked`; `Invalid` if the directory has no database; and
    /// [`Busy`](crate::ErrorKind::Busy) if a writer replaced files during each of ten attempts.
    pub fn open_read_only(&self, dir: impl AsRef<Path>) -> Result<Db> {
        let (engine, opened) = Engine::open_read_only(self, dir.as_ref())?;
        Db::new(Handle::new(engine, opened))
    }

    /// Removes the files of the database in a directory, and those of its log. The directories stay, and
    /// so do other files in them. An interrupted removal can be repeated.
    ///
    /// Nobody may have the database open for writing. On Unix, processes that have it open read-only can
    /// continue to read.
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
    /// [`Invalid`](crate::ErrorKind::Invalid): the directory has no database, or the log directory is missing.
    /// [`Io`](crate::ErrorKind::Io): the operating system refused an operation; some files may be left.
    #[doc(alias("remove_database", "drop_database", "DestroyDB"))]
    pub fn destroy(&self, dir: impl AsRef<Path>) -> Result<()> {
        destroy(&self.components.storage, dir.as_ref())
    }
}

impl Db {
    /// Opens the database in a directory with the default [`Options`], or creates one; [`Options::open`] takes
    /// options.
    ///
    /// Opening replays the log since the last flush, which `log_bytes_max` bounds. Only one process at a time may have
    /// a database open for writing, which the file `LOCK` ensures. Do not remove that file: another process could then
    /// open the database too, and the first process would notice only at its next flush, compaction or log segment,
    /// and lose the writes since then.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// use terrane::{Db, Options};
    ///
    /// let db = Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// drop(db);
    ///
    /// // The same database, with options.
    /// let db = Options::new().memory_budget(64 << 20).open(dir.path())?;
    /// assert_eq!(db.get("key")?.unwrap(), "value");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`Locked`](crate::ErrorKind::Locked): another process, or another handle in this
    ///   process, has it open; the error names the holder.
    /// - [`Corruption`](crate::ErrorKind::Corruption): a file is damaged or missing.
    /// - [`Unsupported`](crate::ErrorKind::Unsupported): a newer version of this library wrote it.
    /// - [`Invalid`](crate::ErrorKind::Invalid): an option is invalid, or contradicts the options
    ///   that the database was created with; or the directory has other files and no database.
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
    /// The errors of [`Db::open`] except `Locked`; `Invalid` if the directory has no database; and
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
    /// Call it to see the errors of the last flush. A database that is dropped instead closes without a flush, and the
    /// next opening replays the log.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// db.close()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - A flush or sync failed. The database is closed nevertheless, and each write has the
    ///   durability that it was written with, unless a sync failed.
    /// - [`Invalid`](crate::ErrorKind::Invalid): an event listener called this. The database stays
    ///   open for other handles.
    pub fn close(self) -> Result<()> {
        self.engine().close()
    }
}
