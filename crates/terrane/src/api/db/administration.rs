//! Keyspaces, maintenance, reports and settings of a database.

use std::path::Path;
use std::sync::Arc;

use terrane_policy::{Design, Forecast};

use super::Db;
use crate::api::keyspace::{Keyspace, KeyspaceOptions};
use crate::api::tree_view::TreeView;
use crate::base::durability::Durability;
use crate::base::error::Result;
use crate::base::event::LoggedEvent;
use crate::base::io_budget::IoBudget;
use crate::base::range::KeyBounds;
use crate::base::stats::{OperationCounts, Stats};
use crate::engine::Tree;

impl Db {
    /// Returns the keyspace with this name, and creates it if it does not exist.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// let design = "tiering T=4; filter=5".parse()?;
    /// let options = terrane::KeyspaceOptions::new().design_if_new(design);
    /// let visits = db.keyspace("visits", options)?;
    /// visits.put("today", "7")?;
    /// // A key of the default keyspace is another key.
    /// assert_eq!(db.get("today")?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The name is empty or longer than 255 bytes, the keyspace exists with a design other
    /// than the one in `options`, or the database does not accept writes.
    #[expect(clippy::needless_pass_by_value, reason = "options are built for the call")]
    #[doc(alias(
        "column family",
        "column_family",
        "create_cf",
        "open_tree",
        "open_partition",
        "open_table"
    ))]
    pub fn keyspace(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        let tree = self.engine().keyspace(name, options.design.as_ref())?;
        Ok(Keyspace { handle: Arc::clone(&self.default.handle), tree })
    }

    /// Returns the names of all keyspaces, including `default`.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// db.keyspace("visits", terrane::KeyspaceOptions::new())?;
    /// assert_eq!(db.keyspaces(), ["default", "visits"]);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias("list_cf", "tree_names"))]
    pub fn keyspaces(&self) -> Vec<String> {
        self.engine().catalog.trees().values().map(|tree| tree.name().to_string()).collect()
    }

    /// Removes a keyspace and its contents; returns false if it does not exist. Open iterators over
    /// it continue. Its handles no longer find any keys, not even through snapshots.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// use terrane::KeyspaceOptions;
    /// let visits = db.keyspace("visits", KeyspaceOptions::new())?;
    /// visits.put("today", "7")?;
    /// assert!(db.drop_keyspace("visits")?);
    /// assert!(db.keyspace("visits", KeyspaceOptions::new())?.is_empty()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The name is that of the default keyspace, or the database does not accept writes.
    #[doc(alias("drop_cf", "drop_tree", "delete_keyspace"))]
    pub fn drop_keyspace(&self, name: &str) -> Result<bool> {
        self.engine().catalog.drop_keyspace(name)
    }

    /// Renames a keyspace; returns false if no keyspace is called `name`. It keeps its contents,
    /// design and handles. The change is atomic under crashes. Until every process that opens
    /// keyspaces by name uses the new one, opening the old name creates an empty keyspace.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// use terrane::{Db, KeyspaceOptions};
    /// let db = Db::open(dir.path())?;
    /// let people = db.keyspace("users", KeyspaceOptions::new())?;
    /// people.put("ada", "Lovelace")?;
    /// assert!(db.rename_keyspace("users", "people")?);
    /// assert_eq!(people.name(), "people");
    /// assert_eq!(people.get("ada")?.unwrap(), "Lovelace");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `name` is that of the default keyspace, another keyspace is called `new_name`, `new_name` is
    /// empty or longer than 255 bytes, or the database does not accept writes.
    pub fn rename_keyspace(&self, name: &str, new_name: &str) -> Result<bool> {
        self.engine().catalog.rename_keyspace(name, new_name)
    }

    /// Returns operation counts by kind since the database was opened, over all keyspaces.
    pub fn operations(&self) -> OperationCounts {
        self.engine().catalog.operations()
    }

    /// Returns operation counts across openings, decayed with a half-life of one day of open time.
    /// Every flush and [`Db::close`] store these counts.
    pub fn remembered_operations(&self) -> OperationCounts {
        self.engine().catalog.operation_history()
    }

    fn all_trees(&self) -> Vec<Arc<Tree>> {
        self.engine().catalog.trees().values().cloned().collect()
    }

    /// Writes the memtables of all keyspaces into tables, and returns once the tables are durable. Never needed for
    /// durability; see [`Keyspace::flush`].
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// db.flush()?;
    /// assert!(db.stats().flushes > 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The disk is full, the operating system refused an operation, or the database does not accept
    /// writes.
    pub fn flush(&self) -> Result<()> {
        self.engine().flush(&self.all_trees(), None)
    }

    /// Makes all earlier writes survive a power failure, except writes with [`Durability::None`].
    ///
    /// **Cost:** one sync of the log, which concurrent callers share. One call after many puts is cheaper than
    /// [`Durability::Sync`] for each of them.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// for number in 0..1000 {
    ///     db.put(format!("key {number}"), "value")?;
    /// }
    /// db.sync()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The sync failed; see [`Poisoned`](crate::ErrorKind::Poisoned).
    #[doc(alias("fsync", "flush_wal", "persist"))]
    pub fn sync(&self) -> Result<()> {
        self.engine().context.health.check_writable()?;
        self.engine().pipeline.sync_log()
    }

    /// Compacts a range of the default keyspace; see [`Keyspace::compact_range`]. Rewrites every table that
    /// overlaps the range, so `compact_range(..)` takes as long as copying the data.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// db.put("key", "old")?;
    /// db.flush()?;
    /// db.put("key", "new")?;
    /// db.compact_range(..)?;
    /// assert_eq!(db.stats().table_entries, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The disk is full, the operating system refused an operation, a table in the range cannot be
    /// read, or the database does not accept writes.
    #[doc(alias = "compact")]
    pub fn compact_range(&self, range: impl KeyBounds) -> Result<()> {
        self.default.compact_range(range)
    }

    /// Returns once no flush is pending and no tree needs a compaction. Useful before a measurement.
    ///
    /// # Errors
    /// The disk is full, an unreadable table prevents a compaction, or the database does not accept
    /// writes.
    pub fn wait_for_compactions(&self) -> Result<()> {
        self.engine().wait_for_compactions(None)
    }

    /// Creates a copy of the database in another directory, which must be empty or not exist, or
    /// contain an unfinished checkpoint, which is replaced. Reads and writes continue meanwhile. The
    /// copy shares tables by hard links if the file system supports them. It may lack writes with
    /// [`Durability::None`].
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// let copy = dir.path().join("copy");
    /// db.checkpoint(&copy)?;
    /// db.delete("key")?;
    /// assert_eq!(terrane::Db::open(&copy)?.get("key")?.unwrap(), "value");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A database that is open for reading, for example on a read-only file system, is copied as the
    /// opening shows it, and nothing but the copy is written.
    ///
    /// # Errors
    /// The directory contains other files, another process writes a checkpoint to it, the disk is
    /// full, or writes are refused after a failure. [`Error::Changed`](crate::Error::Changed) if the
    /// database is open for reading and a writer has replaced files since.
    #[doc(alias = "backup")]
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.engine().checkpoint(dir.as_ref(), None)
    }

    /// Returns counters since the database was opened, and current sizes. [`Stats::metrics`] lists them with
    /// descriptions and units; printed, they are a table.
    ///
    /// **Cost:** microseconds for a few trees. It takes the locks of writers, snapshots and cached blocks for
    /// a moment, one at a time.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// let stats = db.stats();
    /// assert_eq!(stats.writes, 1);
    /// println!("{stats}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn stats(&self) -> Stats {
        Stats::of(self.engine(), &self.default.handle.opened)
    }

    /// Returns the last thousand events since the database was opened, oldest first: flushes, compactions, stalls,
    /// errors. To receive every event, see [`Options::on_event`](crate::Options::on_event); for compactions of earlier
    /// openings, see [`inspect::jobs`](crate::inspect::jobs).
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// db.put("key", "value")?;
    /// db.flush()?;
    /// for event in db.events() {
    ///     println!("{}", event.event);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn events(&self) -> Vec<LoggedEvent> {
        self.engine().context.events_after(0)
    }

    /// Returns the current tree of the default keyspace; see [`Keyspace::tree`].
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// println!("{}", db.tree());
    /// # Ok(())
    /// # }
    /// ```
    pub fn tree(&self) -> TreeView {
        self.default.tree()
    }

    /// Returns the durability of writes that do not choose a durability themselves.
    pub fn durability(&self) -> Durability {
        self.engine().context.settings.durability
    }

    /// Returns the design of the default keyspace; see [`Keyspace::design`].
    pub fn design(&self) -> Design {
        self.default.design()
    }

    /// Predicts the effect of another design on the default keyspace. See [`Keyspace::forecast`].
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// let forecast = db.forecast(&"leveling T=4".parse()?)?;
    /// assert_eq!((forecast.jobs, forecast.bytes_rewritten), (0, 0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The design is invalid.
    pub fn forecast(&self, design: &Design) -> Result<Forecast> {
        self.default.forecast(design)
    }

    /// Changes the design of the default keyspace. See [`Keyspace::set_design`].
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// let before = db.design();
    /// db.set_design("leveling T=4".parse()?)?;
    /// assert_eq!(db.default_keyspace().design_before(), Some(before.clone()));
    /// // To undo the change:
    /// db.set_design(before)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The design is invalid, or the database does not accept writes.
    pub fn set_design(&self, design: Design) -> Result<()> {
        self.default.set_design(design)
    }

    /// Changes the I/O budget of flushes, compactions and ingests until the database is closed.
    ///
    /// # Errors
    /// The budget is below 64 KiB per second.
    pub fn set_io_budget(&self, budget: IoBudget) -> Result<()> {
        self.engine().jobs.set_io_budget(budget)
    }

    /// Returns the I/O budget of flushes, compactions and ingests.
    pub fn io_budget(&self) -> IoBudget {
        self.engine().jobs.io_budget()
    }

    /// Returns the path by which the directory of the database was opened, made absolute. The
    /// database stays in that directory, even if the path leads elsewhere later.
    pub fn path(&self) -> &Path {
        &self.engine().context.dir
    }

    /// Returns the log directory, which is the database directory unless
    /// [`Options::log_dir`](crate::Options::log_dir) chose another.
    pub fn log_path(&self) -> &Path {
        &self.engine().context.log_dir
    }

    /// With [`Background::Inline`](crate::Background::Inline), runs one pending flush or compaction;
    /// returns false if none is pending.
    ///
    /// # Errors
    /// The job failed.
    pub fn run_background_job(&self) -> Result<bool> {
        self.engine().context.health.check_writable()?;
        self.engine().run_one_job()
    }
}
