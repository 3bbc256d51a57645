//! Keyspaces: independent trees in one database.
//!
//! | module | one line |
//! |---|---|
//! | `writes`, `reads` | the methods for keys |
//! | `ttl`, `merges`, `filters` | expiry, merge operator and compaction filter of a keyspace |
//! | `estimates`, `explain` | counts and sizes; the path of a lookup |

mod estimates;
mod explain;
mod filters;
mod merges;
mod reads;
mod ttl;
mod writes;

use std::sync::Arc;

use terrane_policy::{Design, Forecast, KeyRange};

use crate::api::handle::Handle;
use crate::api::tree_view::TreeView;
use crate::base::cancel::Cancel;
use crate::base::error::{Error, Result};
use crate::base::range::{KeyBounds, bounds_of};
use crate::base::types::KeyspaceId;
use crate::engine::Tree;
use crate::options::{IfOther, RequestedDesign};

/// Options for creating or opening a keyspace.
#[derive(Debug, Clone, Default)]
pub struct KeyspaceOptions {
    pub(crate) design: Option<RequestedDesign>,
}

impl KeyspaceOptions {
    /// Returns options with the design of the default keyspace.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the design of the tree. Opening a keyspace whose design differs is an error.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// use terrane::KeyspaceOptions;
    /// db.keyspace("visits", KeyspaceOptions::new().design("tiering T=4".parse()?))?;
    /// let other = KeyspaceOptions::new().design("leveling".parse()?);
    /// assert!(db.keyspace("visits", other).is_err());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn design(mut self, design: Design) -> Self {
        self.design = Some(design.into());
        self
    }

    /// Sets the design of the tree if opening creates the keyspace. An existing keyspace keeps its
    /// design.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// use terrane::KeyspaceOptions;
    /// let options = KeyspaceOptions::new().design_if_new("tiering T=4".parse()?);
    /// let visits = db.keyspace("visits", options)?;
    /// assert!(visits.design().to_string().starts_with("tiering T=4"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn design_if_new(mut self, design: Design) -> Self {
        self.design = Some(RequestedDesign::new(design, IfOther::Keep));
        self
    }

    /// Sets the design of the tree, and changes the design of an existing keyspace that differs, as
    /// [`Keyspace::set_design`] does. The change is reported with its forecast in
    /// [`Event::DesignChanged`](crate::Event::DesignChanged). A database that is open read-only
    /// changes nothing.
    #[must_use]
    pub fn design_or_change(mut self, design: Design) -> Self {
        self.design = Some(RequestedDesign::new(design, IfOther::Change));
        self
    }
}

/// An independent set of keys with its own tree and design.
///
/// All keyspaces of a database share one log, so a [`WriteBatch`](crate::WriteBatch) can change
/// several of them atomically. A keyspace handle is cheap to clone and may be used from any thread.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = terrane::Db::open(dir.path())?;
/// use terrane::{KeyspaceOptions, WriteBatch};
/// let people = db.keyspace("people", KeyspaceOptions::new())?;
/// let by_name = db.keyspace("people by name", KeyspaceOptions::new())?;
/// let mut batch = WriteBatch::new();
/// batch.put_in(&people, "7", "Ada").put_in(&by_name, "Ada", "7");
/// db.write(&batch)?;
/// assert_eq!(by_name.get("Ada")?.unwrap(), "7");
/// # Ok(())
/// # }
/// ```
#[doc(alias("column family", "ColumnFamily", "partition", "tree", "table", "bucket"))]
#[derive(Debug, Clone)]
pub struct Keyspace {
    pub(crate) handle: Arc<Handle>,
    pub(crate) tree: Arc<Tree>,
}

impl Keyspace {
    pub(crate) fn id(&self) -> KeyspaceId {
        self.tree.id
    }

    /// Rejects a keyspace of another database or of an earlier opening, because its number may
    /// belong to a different keyspace here.
    pub(crate) fn check_of(&self, handle: &Handle) -> Result<()> {
        if self.handle.engine.context.number == handle.engine.context.number {
            return Ok(());
        }
        Err(self.foreign())
    }

    pub(crate) fn foreign(&self) -> Error {
        let found =
            format!("'{}' of another database, or of another opening of this one", self.name());
        Error::invalid("keyspace", found, "one of this database")
    }

    /// Returns the current name.
    pub fn name(&self) -> &str {
        self.tree.name()
    }

    /// Writes the memtables of the keyspace into tables, and returns once the tables are durable.
    ///
    /// A flush is never needed for durability, because the log has every write except those with
    /// [`Durability::None`](crate::Durability::None). It frees memory, and it makes the next opening replay less.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// # let users = db.keyspace("users", terrane::KeyspaceOptions::new())?;
    /// users.put("1", "Ada")?;
    /// users.flush()?;
    /// assert_eq!(users.tree().shape.levels[0].runs.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The disk is full, the operating system refused an operation, or the database does not accept
    /// writes.
    pub fn flush(&self) -> Result<()> {
        self.handle.engine.flush(std::slice::from_ref(&self.tree), None)
    }

    /// Compacts a range into the last level that contains any of its keys, and returns when that is
    /// done. Afterwards the range has no overwritten or deleted values, except those that snapshots
    /// see. To remove such values from a value file, it moves the file's live values, including those
    /// of keys outside the range. A [compaction filter](crate::CompactionFilter) is applied to all
    /// values of the range that no snapshot sees. A value deleted earlier stays if its file holds no live
    /// value of the range, or is the log segment that is being written.
    ///
    /// # Errors
    /// The disk is full, the operating system refused an operation, a table in the range cannot be
    /// read, or the database does not accept writes.
    #[doc(alias = "compact")]
    pub fn compact_range(&self, range: impl KeyBounds) -> Result<()> {
        self.compact(range, None)
    }

    pub(crate) fn compact(&self, range: impl KeyBounds, cancel: Option<&Cancel>) -> Result<()> {
        let (start, end) = bounds_of(&range);
        let range = KeyRange::new(&start, end.as_deref());
        if range.is_empty() {
            return Ok(());
        }
        self.handle.engine.compact_range(&self.tree, &range, cancel)
    }

    /// Returns the current tree: its levels, sorted runs and tables, for people and programs. Printed, it is a picture.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// # let users = db.keyspace("users", terrane::KeyspaceOptions::new())?;
    /// users.put("1", "Ada")?;
    /// users.flush()?;
    /// println!("{}", users.tree());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// In a child of the process that opened the database, the view has no compactions, and an empty memtable.
    pub fn tree(&self) -> TreeView {
        TreeView::of(&self.handle.engine, &self.tree)
    }

    /// Returns the design of the tree. Its text form parses to an equal design.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// # let users = db.keyspace("users", terrane::KeyspaceOptions::new())?;
    /// let text = users.design().to_string();
    /// assert_eq!(text.parse::<terrane::Design>()?, users.design());
    /// # Ok(())
    /// # }
    /// ```
    pub fn design(&self) -> Design {
        (*self.tree.design()).clone()
    }

    /// Predicts the effect of another design on the current tree: the compactions and bytes of the
    /// transition, and the cost of reads and space before and after. The prediction ignores
    /// memtables and the space that overwritten and deleted entries will free.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// let users = db.keyspace("users", terrane::KeyspaceOptions::new())?;
    /// let forecast = users.forecast(&"tiering T=4".parse()?)?;
    /// assert_eq!(forecast.bytes_rewritten, 0, "an empty tree has nothing to rewrite");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The design is invalid.
    pub fn forecast(&self, design: &Design) -> Result<Forecast> {
        self.handle.engine.jobs.forecast(&self.tree, design)
    }

    /// Returns the design before the last change, even if an earlier opening made the change; `None`
    /// if the design never changed.
    pub fn design_before(&self) -> Option<Design> {
        self.tree.design_before().map(Arc::unwrap_or_clone)
    }

    /// Changes the design of the tree, while the database is in use. The next memtable and the next compactions follow
    /// it; reads and writes continue. The change is atomic under crashes.
    ///
    /// [`Keyspace::forecast`] predicts the cost of the change. Setting [`Keyspace::design_before`] undoes it at
    /// any time, because a tree between two designs is a valid tree of both.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// # let users = db.keyspace("users", terrane::KeyspaceOptions::new())?;
    /// users.set_design("tiering T=4".parse()?)?;
    /// let before = users.design_before().unwrap();
    /// users.set_design(before)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The design is invalid, or the database does not accept writes.
    pub fn set_design(&self, design: Design) -> Result<()> {
        self.handle.engine.set_design(&self.tree, design)
    }
}
