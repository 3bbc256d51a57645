//! A database.

use std::ops::RangeBounds;
use std::path::Path;
use std::sync::Arc;

use terrane_policy::{Design, Forecast};

use crate::durability::Durability;
use crate::engine::{Engine, Tree, Write};
use crate::error::{Error, Result};
use crate::event::LoggedEvent;
use crate::handle::Handle;
use crate::io_budget::IoBudget;
use crate::iterator::Iter;
use crate::keyspace::{Keyspace, KeyspaceOptions};
use crate::options::{OpenMode, Options};
use crate::restart_scan::RestartScans;
use crate::snapshot::Snapshot;
use crate::stats::{OperationCounts, Stats};
use crate::tree_view::TreeView;
use crate::types::DEFAULT_KEYSPACE;
use crate::value::{Key, Value};
use crate::write_batch::WriteBatch;
use crate::write_options::WriteOptions;

/// An open database: a persistent, ordered map from keys to values.
///
/// Keys are up to 64 KiB long, values up to 1 GiB; both may be empty. Order is bytewise.
///
/// A handle is cheap to clone and may be used from any thread. The database is closed when the
/// last handle, snapshot and iterator is gone; [`Db::close`] does it at once, and tells of errors.
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
        Db::new(Handle { engine, opened, scans: RestartScans::default() })
    }

    /// Opens the database in a directory to be read, as [`Db::open_read_only`] does.
    ///
    /// # Errors
    /// See [`Db::open_read_only`].
    pub fn open_read_only(&self, dir: impl AsRef<Path>) -> Result<Db> {
        let (engine, opened) = Engine::open_read_only(self, dir.as_ref())?;
        Db::new(Handle { engine, opened, scans: RestartScans::default() })
    }
}

impl Db {
    /// Opens the database in a directory, or makes one. Only one process may have it open for
    /// writing.
    ///
    /// # Errors
    /// - [`Locked`](crate::ErrorKind::Locked): another process, or another handle of this one, has
    ///   it open; the error says which.
    /// - [`Corruption`](crate::ErrorKind::Corruption): a file is damaged or missing.
    /// - [`Unsupported`](crate::ErrorKind::Unsupported): a newer version of this library wrote it.
    /// - [`Invalid`](crate::ErrorKind::Invalid): the options make no sense, or contradict what the
    ///   database was made with.
    /// - [`Io`](crate::ErrorKind::Io): the operating system refused.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        Options::new().open(dir)
    }

    /// Opens the database in a directory to be read, also while another process writes it. What is
    /// read is the state at the time of opening; it does not follow the writer.
    ///
    /// # Errors
    /// As [`Db::open`]; it is never locked.
    pub fn open_read_only(dir: impl AsRef<Path>) -> Result<Self> {
        Options::new().open_mode(OpenMode::MustExist).open_read_only(dir)
    }

    fn new(handle: Handle) -> Result<Self> {
        let tree = handle.engine.tree(DEFAULT_KEYSPACE);
        let tree = tree.ok_or_else(|| Error::internal("the default keyspace is missing"))?;
        Ok(Self { default: Keyspace { handle: Arc::new(handle), tree } })
    }

    fn engine(&self) -> &Arc<Engine> {
        &self.default.handle.engine
    }

    /// Flushes what is in memory, and closes the database for all handles. Operations on other
    /// handles fail from now on; iterators that are open go on with what they hold.
    ///
    /// # Errors
    /// What was written could not be flushed or synced. The database is closed all the same, and
    /// what the durability of each write promised still holds.
    pub fn close(self) -> Result<()> {
        self.engine().close()
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// See [`Db::write`].
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

    /// Removes a key, whether it is there or not.
    ///
    /// # Errors
    /// See [`Db::write`].
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
    /// # Errors
    /// See [`Db::write`].
    pub fn delete_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        self.default.delete_range(range)
    }

    /// Makes all changes of a batch, or none, with the durability of the database.
    ///
    /// Returns once the changes can be seen by everyone, and have the durability that was asked
    /// for.
    ///
    /// # Errors
    /// - [`Invalid`](crate::ErrorKind::Invalid): a key, a value or the batch is too long, a
    ///   keyspace was dropped or is of another database, or the database is open for reading only.
    /// - [`Io`](crate::ErrorKind::Io): the disk is full or refuses; nothing was changed.
    /// - [`Poisoned`](crate::ErrorKind::Poisoned): a sync failed. The changes may be there after
    ///   the database is opened again.
    /// - [`Corruption`](crate::ErrorKind::Corruption): the tree is so far behind that writers must
    ///   wait, and a table that cannot be read keeps it there; nothing was changed.
    /// - [`Closed`](crate::ErrorKind::Closed): the database was closed.
    pub fn write(&self, batch: &WriteBatch) -> Result<()> {
        self.write_with(batch, WriteOptions::new())
    }

    /// As [`Db::write`], with options for this write.
    ///
    /// # Errors
    /// See [`Db::write`].
    pub fn write_with(&self, batch: &WriteBatch, options: WriteOptions) -> Result<()> {
        let engine = self.engine();
        batch.check_of(engine)?;
        engine.write(Write::Batch(&batch.operations), options.durability_or(engine.durability()))
    }

    /// The value of a key.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.default.get(key)
    }

    /// The values of several keys, in their order, all as of the same moment. Cheaper than as many
    /// calls of [`Db::get`].
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Value>>> {
        self.default.multi_get(keys)
    }

    /// Whether a key has a value.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.default.contains(key)
    }

    /// All keys and values, in order.
    ///
    /// # Errors
    /// The database was closed.
    pub fn iter(&self) -> Result<Iter> {
        self.default.iter()
    }

    /// The keys of a range with their values, in order.
    ///
    /// # Errors
    /// The database was closed.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Iter> {
        self.default.range(range)
    }

    /// The keys that begin with `prefix` with their values, in order.
    ///
    /// # Errors
    /// The database was closed.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        self.default.prefix(prefix)
    }

    /// The first key with its value, if there is any.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub fn first(&self) -> Result<Option<(Key, Value)>> {
        self.default.first()
    }

    /// The last key with its value, if there is any.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub fn last(&self) -> Result<Option<(Key, Value)>> {
        self.default.last()
    }

    /// Whether there is no key.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub fn is_empty(&self) -> Result<bool> {
        self.default.is_empty()
    }

    /// The database as it is now, to be read for as long as the snapshot exists.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(&self.default.handle, &self.default.tree)
    }

    /// The keyspace of a name; it is made if there is none.
    ///
    /// # Errors
    /// The name is empty or longer than 255 bytes, the keyspace has another design than is asked
    /// for, or the database does not take writes.
    #[expect(clippy::needless_pass_by_value, reason = "options are put together for the call")]
    pub fn keyspace(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        let tree = self.engine().keyspace(name, options.design.as_ref())?;
        self.engine().start_drain_threads()?;
        Ok(Keyspace { handle: Arc::clone(&self.default.handle), tree })
    }

    /// The names of all keyspaces.
    pub fn keyspaces(&self) -> Vec<String> {
        self.engine().trees().values().map(|tree| tree.name.to_string()).collect()
    }

    /// Removes a keyspace with everything in it; false if there is none of this name. Iterators
    /// that are open on it go on; handles of it find nothing from now on, in snapshots neither.
    ///
    /// # Errors
    /// It is the default keyspace, or the database does not take writes.
    pub fn drop_keyspace(&self, name: &str) -> Result<bool> {
        self.engine().drop_keyspace(name)
    }

    /// What was done since the database was opened, by kinds of operation, in all keyspaces.
    pub fn operations(&self) -> OperationCounts {
        self.engine().operations()
    }

    /// What was done before, too, as far as it is remembered: of what was done a day of being open
    /// ago a half counts. It is kept with flushes and when the database is closed; of a database
    /// that is only read, by [`Db::close`].
    pub fn remembered_operations(&self) -> OperationCounts {
        self.engine().remembered_operations()
    }

    fn all_trees(&self) -> Vec<Arc<Tree>> {
        self.engine().trees().values().cloned().collect()
    }

    /// Writes everything that is in memory into tables, for all keyspaces. Returns when that is
    /// done.
    ///
    /// # Errors
    /// The disk is full or refuses, or the database does not take writes.
    pub fn flush(&self) -> Result<()> {
        self.engine().flush(&self.all_trees())
    }

    /// Makes everything that was written survive the loss of power, but for writes of
    /// [`Durability::None`].
    ///
    /// # Errors
    /// The sync failed; see [`Poisoned`](crate::ErrorKind::Poisoned).
    pub fn sync(&self) -> Result<()> {
        self.engine().health.check_writable()?;
        self.engine().sync_log()
    }

    /// Merges everything in a range down to the last level that holds any of it. See
    /// [`Keyspace::compact_range`].
    ///
    /// # Errors
    /// The disk is full or refuses, a table in the range cannot be read, or the database does not
    /// take writes.
    pub fn compact_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        self.default.compact_range(range)
    }

    /// Returns once no memtable waits to be flushed and no tree needs a compaction.
    ///
    /// # Errors
    /// The disk is full, a compaction that is needed cannot be done as a table cannot be read, or the
    /// database does not take writes.
    pub fn wait_for_compactions(&self) -> Result<()> {
        self.engine().wait_for_compactions()
    }

    /// Makes a second database of the same contents in another directory, which must not exist or
    /// be empty. Reads and writes go on meanwhile. Tables are shared by hard links where the file
    /// system can do that. Writes of [`Durability::None`] may be missing.
    ///
    /// # Errors
    /// The directory holds files, the disk is full, or the database does not take writes.
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.engine().checkpoint(dir.as_ref())
    }

    /// Counters and sizes, as they are now.
    pub fn stats(&self) -> Stats {
        Stats::of(self.engine(), &self.default.handle.opened)
    }

    /// The last thousand things that happened since the database was opened, oldest first; for
    /// everything, as it happens, see [`Options::on_event`]. Compactions of earlier openings are
    /// told by [`inspect::jobs`](crate::inspect::jobs).
    pub fn events(&self) -> Vec<LoggedEvent> {
        self.engine().events.last()
    }

    /// The tree of the default keyspace, as it is now.
    pub fn tree(&self) -> TreeView {
        self.default.tree()
    }

    /// The durability that writes have unless they say otherwise.
    pub fn durability(&self) -> Durability {
        self.engine().durability()
    }

    /// The design of the default keyspace.
    pub fn design(&self) -> Design {
        self.default.design()
    }

    /// The design that the default keyspace had before the last change. See
    /// [`Keyspace::design_before`].
    pub fn design_before(&self) -> Option<Design> {
        self.default.design_before()
    }

    /// What another design would do to the default keyspace. See [`Keyspace::forecast`].
    ///
    /// # Errors
    /// The design makes no sense.
    pub fn forecast(&self, design: &Design) -> Result<Forecast> {
        self.default.forecast(design)
    }

    /// Gives the default keyspace another design. See [`Keyspace::set_design`].
    ///
    /// # Errors
    /// The design makes no sense, or the database does not take writes.
    pub fn set_design(&self, design: Design) -> Result<()> {
        self.default.set_design(design)
    }

    /// Gives flushes and compactions another budget, from now on until the database is closed.
    ///
    /// # Errors
    /// It is below 64 KiB a second.
    pub fn set_io_budget(&self, budget: IoBudget) -> Result<()> {
        self.engine().set_io_budget(budget)
    }

    /// What flushes and compactions may write in a second.
    pub fn io_budget(&self) -> IoBudget {
        self.engine().io_budget()
    }

    /// The directory of the database.
    pub fn path(&self) -> &Path {
        self.engine().dir()
    }

    /// With inline background work, does one flush or compaction that is waiting to be done; false
    /// if there is none.
    ///
    /// # Errors
    /// The job failed.
    pub fn run_background_job(&self) -> Result<bool> {
        self.engine().health.check_writable()?;
        self.engine().run_one_job()
    }
}
