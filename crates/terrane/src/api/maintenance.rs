//! Long operations that another thread can cancel and watch.

use std::path::Path;
use std::sync::Arc;

use crate::api::db::Db;
use crate::api::keyspace::Keyspace;
use crate::base::cancel::Cancel;
use crate::base::error::Result;
use crate::base::event::LoggedEvent;
use crate::base::job_view::JobView;
use crate::base::range::KeyBounds;

/// Maintenance of a database that can be cancelled: flushes, compactions and checkpoints that
/// [`Maintenance::cancel`] ends, and whose progress another thread can read.
///
/// A clone is another handle of the same operation.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = terrane::Db::open(dir.path())?;
/// # db.put("key", "value")?;
/// use terrane::{ErrorKind, Maintenance};
///
/// let maintenance = Maintenance::of(&db);
/// maintenance.compact_range(db.default_keyspace(), ..)?;
///
/// // Usually another thread cancels, for example when the user presses Ctrl-C.
/// let other = maintenance.clone();
/// other.cancel();
/// let error = maintenance.compact_range(db.default_keyspace(), ..).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Cancelled);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Maintenance {
    db: Db,
    cancel: Arc<Cancel>,
}

impl Maintenance {
    /// Returns a handle for the maintenance of a database.
    pub fn of(db: &Db) -> Self {
        Self { db: db.clone(), cancel: Arc::default() }
    }

    /// Returns the database.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Ends the current operation and all later ones of this handle and its clones with an error of
    /// the kind [`Cancelled`](crate::ErrorKind::Cancelled). They notice it within a tenth of a second,
    /// or after a chunk of a merge. Finished compactions stay; the tables of an unfinished one are
    /// removed. A flush that has begun continues in the background.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Returns true if the operations were cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Returns the bytes that the running operation has processed, and their expected total. A
    /// compaction counts the bytes that it has read, and finishes early if tables need not be
    /// rewritten; a checkpoint counts the bytes of linked and copied files.
    pub fn progress_bytes(&self) -> (u64, u64) {
        self.cancel.progress()
    }

    /// Fails if the database does not accept writes: it was closed, is open read-only, or has failed.
    ///
    /// # Errors
    /// The error that a write would return.
    pub fn check_writable(&self) -> Result<()> {
        self.db.engine().context.health.check_writable()
    }

    /// Returns a descriptor of the database directory, for calls that are relative to it; `None` if the
    /// storage has none. It leads to the directory even if [`Db::path`] no longer does.
    #[cfg(unix)]
    pub fn directory(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        let context = &self.db.engine().context;
        context.storage.descriptor(&context.dir)
    }

    /// Returns handles of all keyspaces, in the order of their creation. Unlike [`Db::keyspace`] this creates
    /// none, so it suits a caller that only inspects keyspaces while others drop them.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// use terrane::{KeyspaceOptions, Maintenance};
    /// db.keyspace("users", KeyspaceOptions::new())?;
    /// let found = Maintenance::of(&db).keyspaces();
    /// assert!(found.iter().map(|keyspace| keyspace.name()).eq(["default", "users"]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn keyspaces(&self) -> Vec<Keyspace> {
        let handle = &self.db.default_keyspace().handle;
        let keyspace = |tree: &_| Keyspace { handle: Arc::clone(handle), tree: Arc::clone(tree) };
        self.db.engine().catalog.trees().values().map(keyspace).collect()
    }

    /// Returns the running flushes and compactions, then the pending ones.
    pub fn jobs(&self) -> Vec<JobView> {
        self.db.engine().jobs.views()
    }

    /// Returns the events with numbers above `number` among the last thousand, oldest first.
    pub fn events_after(&self, number: u64) -> Vec<LoggedEvent> {
        self.db.engine().context.events_after(number)
    }

    /// Does the same as [`Keyspace::flush`].
    ///
    /// # Errors
    /// See [`Keyspace::flush`].
    pub fn flush(&self, keyspace: &Keyspace) -> Result<()> {
        keyspace.handle.engine.flush(std::slice::from_ref(&keyspace.tree), Some(&self.cancel))
    }

    /// Does the same as [`Db::flush`].
    ///
    /// # Errors
    /// See [`Db::flush`].
    pub fn flush_all(&self) -> Result<()> {
        let trees: Vec<_> = self.db.engine().catalog.trees().values().cloned().collect();
        self.db.engine().flush(&trees, Some(&self.cancel))
    }

    /// Does the same as [`Keyspace::compact_range`].
    ///
    /// # Errors
    /// See [`Keyspace::compact_range`].
    pub fn compact_range(&self, keyspace: &Keyspace, range: impl KeyBounds) -> Result<()> {
        // The entries of memtables count too.
        self.flush(keyspace)?;
        self.cancel.begin(keyspace.approximate_size(&range)?);
        keyspace.compact(&range, Some(&self.cancel))
    }

    /// Does the same as [`Db::wait_for_compactions`].
    ///
    /// # Errors
    /// See [`Db::wait_for_compactions`].
    pub fn wait_for_compactions(&self) -> Result<()> {
        self.db.engine().wait_for_compactions(Some(&self.cancel))
    }

    /// Does the same as [`Db::checkpoint`]. A checkpoint that is cancelled leaves no files.
    ///
    /// # Errors
    /// See [`Db::checkpoint`].
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.db.engine().checkpoint(dir.as_ref(), Some(&self.cancel))
    }
}
