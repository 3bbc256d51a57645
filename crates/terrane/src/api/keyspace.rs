//! Keyspaces: independent trees in one database.

mod estimates;
mod explain;
mod filters;
mod merges;
mod ttl;

use std::sync::Arc;

use terrane_policy::{Design, Forecast, KeyRange};

use crate::api::handle::Handle;
use crate::api::iterator::Iter;
use crate::api::tree_view::TreeView;
use crate::api::write_options::WriteOptions;
use crate::base::cancel::Cancel;
use crate::base::error::{Error, Result};
use crate::base::expiry::{expiry_after, stored};
use crate::base::range::{ALL_KEYS, HalfOpen, KeyBounds, bounds_of, prefix_bounds};
use crate::base::types::KeyspaceId;
use crate::engine::{Tree, Write};
use crate::files::batch::Op;
use crate::files::value::{Key, Value};
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
    #[must_use]
    pub fn design(mut self, design: Design) -> Self {
        self.design = Some(design.into());
        self
    }

    /// Sets the design of the tree for the case that the keyspace is created. An existing keyspace
    /// keeps its design.
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

    /// Sets the value of a key.
    ///
    /// # Errors
    /// See [`Db::write`](crate::Db::write).
    #[doc(alias("insert", "set", "upsert"))]
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_with(key, value, WriteOptions::new())
    }

    /// Sets the value of a key, with options for this write.
    ///
    /// # Errors
    /// See [`Db::write`](crate::Db::write).
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: WriteOptions,
    ) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        let Some(ttl) = options.ttl_of_put().or_else(|| self.ttl()) else {
            return self.write_one(Op::Put { key, value }, options);
        };
        let stored = stored(expiry_after(&*self.handle.engine.context.clock, ttl), value);
        self.write_one(Op::PutExpiring { key, stored: &stored }, options)
    }

    /// Removes a key, whether it exists or not.
    ///
    /// # Errors
    /// See [`Db::write`](crate::Db::write).
    #[doc(alias("remove", "erase", "del"))]
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write_one(Op::Delete { key: key.as_ref() }, WriteOptions::new())
    }

    /// Removes a key, with options for this write.
    ///
    /// # Errors
    /// See [`Db::write`](crate::Db::write).
    pub fn delete_with(&self, key: impl AsRef<[u8]>, options: WriteOptions) -> Result<()> {
        options.check_no_ttl("a delete")?;
        self.write_one(Op::Delete { key: key.as_ref() }, options)
    }

    /// Removes all keys of a range, at the cost of one write.
    ///
    /// # Errors
    /// See [`Db::write`](crate::Db::write).
    #[doc(alias = "remove_range")]
    pub fn delete_range(&self, range: impl KeyBounds) -> Result<()> {
        let (start, end) = bounds_of(&range);
        if end.as_ref().is_some_and(|end| *end <= start) {
            return Ok(());
        }
        let op = Op::DeleteRange { start: &start, end: end.as_deref() };
        self.write_one(op, WriteOptions::new())
    }

    pub(crate) fn write_one(&self, op: Op<'_>, options: WriteOptions) -> Result<()> {
        let engine = &self.handle.engine;
        engine.writer.write(
            Write::One(&self.tree, op),
            options.durability_or(engine.context.settings.durability),
        )
    }

    /// Returns the value of a key.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.handle.engine.reader.get(&self.tree, key.as_ref(), None)
    }

    /// Returns the values of several keys, in the order of the keys, from one snapshot.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    #[doc(alias("get_many", "batch_get"))]
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Value>>> {
        let keys: Vec<K> = keys.into_iter().collect();
        self.handle.engine.reader.multi_get(&self.tree, &keys, None)
    }

    /// Returns whether a key has a value. Reads no value that is stored apart from its key.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    #[doc(alias("contains_key", "exists", "has"))]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.handle.engine.reader.contains(&self.tree, key.as_ref(), None)
    }

    /// Returns an iterator over all keys and values, in order.
    ///
    /// # Errors
    /// The database was closed.
    #[doc(alias("scan", "iterator"))]
    pub fn iter(&self) -> Result<Iter> {
        self.iter_bounds(ALL_KEYS)
    }

    /// Returns an iterator over the keys of a range with their values, in order.
    ///
    /// # Errors
    /// The database was closed.
    #[doc(alias("scan", "seek"))]
    pub fn range(&self, range: impl KeyBounds) -> Result<Iter> {
        self.iter_bounds(bounds_of(&range))
    }

    /// Returns an iterator over the keys that begin with `prefix`, with their values, in order.
    ///
    /// # Errors
    /// The database was closed.
    #[doc(alias("scan_prefix", "starts_with"))]
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        self.iter_bounds(prefix_bounds(prefix.as_ref()))
    }

    /// Returns the first key and its value; `None` if there are no keys.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    #[doc(alias("first_key_value", "min"))]
    pub fn first(&self) -> Result<Option<(Key, Value)>> {
        self.iter()?.next().transpose()
    }

    /// Returns the last key and its value; `None` if there are no keys.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    #[doc(alias("last_key_value", "max"))]
    pub fn last(&self) -> Result<Option<(Key, Value)>> {
        self.iter()?.next_back().transpose()
    }

    /// Returns whether there are no keys.
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub fn is_empty(&self) -> Result<bool> {
        self.iter()?.advance().map(|is_any| !is_any)
    }

    fn iter_bounds(&self, bounds: HalfOpen<'_>) -> Result<Iter> {
        let Handle { engine, scans, .. } = &*self.handle;
        let (view, held) = scans.begin_scan(engine, &self.tree, &bounds)?;
        Ok(Iter::new(Arc::clone(&self.handle), view, held, bounds))
    }

    /// Flushes the memtables of the keyspace, and returns when that is done.
    ///
    /// # Errors
    /// The disk is full, the operating system refused an operation, or the database does not accept
    /// writes.
    pub fn flush(&self) -> Result<()> {
        self.handle.engine.flush(std::slice::from_ref(&self.tree), None)
    }

    /// Compacts a range into the last level that contains any of its keys, and returns when that is
    /// done. Afterwards the range has no overwritten or deleted values, except those that snapshots
    /// see. To remove such values from a value file, it moves the live values of the file, also those
    /// of keys outside of the range. A [compaction filter](crate::CompactionFilter) is applied to all
    /// values of the range that no snapshot sees. A value that was deleted before stays if its file holds no live
    /// value of the range, or if its file is the segment of the log that is being written.
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

    /// Returns the current tree.
    pub fn tree(&self) -> TreeView {
        TreeView::of(&self.handle.engine, &self.tree)
    }

    /// Returns the design of the tree.
    pub fn design(&self) -> Design {
        (*self.tree.design()).clone()
    }

    /// Predicts the effect of another design on the current tree: the compactions and bytes of the
    /// transition, and the cost of reads and space before and after. The prediction ignores
    /// memtables and the space that overwritten and deleted entries will free.
    ///
    /// # Errors
    /// The design is invalid.
    pub fn forecast(&self, design: &Design) -> Result<Forecast> {
        self.handle.engine.jobs.forecast(&self.tree, design)
    }

    /// Returns the design before the last change, even if an earlier opening made the change; `None`
    /// if the design never changed.
    pub fn design_before(&self) -> Option<Design> {
        self.tree.design_before()
    }

    /// Changes the design of the tree. The next memtable and the next compactions follow it; reads
    /// and writes continue meanwhile. The change is atomic under crashes. Setting
    /// [`Keyspace::design_before`] undoes it at any time, because a tree between two designs is a
    /// valid tree of both.
    ///
    /// # Errors
    /// The design is invalid, or the database does not accept writes.
    pub fn set_design(&self, design: Design) -> Result<()> {
        self.handle.engine.set_design(&self.tree, design)
    }
}
