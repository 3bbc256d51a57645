//! The engine: a composition of parts, each of which owns its state.
//!
//! A part imports from and calls only the parts above it in this table; `docs/ARCHITECTURE.md`
//! lists the modules of each part.
//!
//! | part | one line |
//! |---|---|
//! | `cursor` | cursors over several memtables and tables |
//! | `version` | a tree shape with its tables open |
//! | `merge` | the merge of a flush or compaction |
//! | `context` | settings, storage, clock, counters, events, health, signals |
//! | `tree` | the memtables and tables of one keyspace, and its running jobs |
//! | `pipeline` | sequence numbers, the log, visibility and snapshots |
//! | `filtering` | the states that snapshots keep while compactions filter |
//! | `read` | point lookups and scans |
//! | `catalog` | the trees, the manifest and the files |
//! | `jobs` | flushes, compactions and the threads that run them |
//! | `write` | admission, stalls and writes |
//! | `stalls` | whether a write would wait |
//! | `life` | opening, recovery, closing and checkpoints |
//! | `snapshot_pin`, `restart_scan` | what a snapshot holds; the scan protocol of FloDB |
//!
//! Locks, in the order in which they are taken: the writer lock ([`Pipeline::lock`]), the manifest
//! ([`Catalog::lock_manifest`]), the locks of a tree. No lock is held during input or output, with
//! two exceptions: the lock of the manifest while an edit is committed, and the writer lock while
//! the log moves to another segment.
//!
//! [`Pipeline::lock`]: pipeline::Pipeline::lock
//! [`Catalog::lock_manifest`]: catalog::Catalog::lock_manifest

mod catalog;
mod context;
pub(crate) mod cursor;
mod feed;
mod filtering;
mod jobs;
mod life;
pub(crate) mod merge;
mod pipeline;
mod read;
pub(crate) mod restart_scan;
pub(crate) mod snapshot_pin;
mod stalls;
#[cfg(test)]
mod tests;
mod tree;
pub(crate) mod version;
mod write;

pub(crate) use context::Context;
pub(crate) use filtering::KeptStates;
pub(crate) use jobs::IngestTables;
pub(crate) use life::{Opened, destroy};
pub(crate) use pipeline::{Following, WrittenKeys};
pub(crate) use read::{AsOf, Collected, NewerVersions, ReadView, Reader};
pub(crate) use tree::{Tree, memtable_config, pressure_of};
pub(crate) use write::{Basis, Commit, Write, insert_one};

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use terrane_policy::{Design, Forecast, KeyRange};

use crate::base::cancel::Cancel;
use crate::base::durability::Durability;
use crate::base::error::{Error, Result};
use crate::base::io_budget::IoBudget;
use crate::base::job_view::JobView;
use crate::base::merge_operator::no_merge_operator;
use crate::base::stats::OperationCounts;
use crate::base::types::{KeyspaceId, SeqNo};
use crate::files::batch::Batch;
use crate::files::value::Value;
use crate::options::{Options, RequestedDesign};
use catalog::{Catalog, Trees};
use life::Parts;
use pipeline::HeldTimes;

/// An open database.
#[derive(Debug)]
pub(crate) struct Engine {
    parts: Parts,
}

impl Engine {
    /// Opens a database for writing, or creates one.
    pub(crate) fn open(options: &Options, dir: &Path) -> Result<(Arc<Self>, Opened)> {
        let (parts, opened) = life::open(options, dir)?;
        Ok((Arc::new(Self { parts }), opened))
    }

    /// Opens a database for reading, even while another process writes it.
    pub(crate) fn open_read_only(options: &Options, dir: &Path) -> Result<(Arc<Self>, Opened)> {
        let (parts, opened) = life::open_read_only(options, dir)?;
        Ok((Arc::new(Self { parts }), opened))
    }

    /// Flushes all memtables, and closes the database.
    pub(crate) fn close(&self) -> Result<()> {
        self.context().check_outside_listener("close")?;
        self.parts.close()
    }

    /// Closes the database without a flush.
    pub(crate) fn abandon(&self) {
        self.parts.abandon();
    }

    /// Creates a second database with the same contents in `target`.
    pub(crate) fn checkpoint(&self, target: &Path, cancel: Option<&Cancel>) -> Result<()> {
        self.context().check_outside_listener("checkpoint")?;
        self.parts.checkpoint(target, cancel)
    }

    /// The state that all parts share.
    #[inline]
    pub(crate) fn context(&self) -> &Context {
        &self.parts.context
    }

    #[cfg(test)]
    pub(crate) fn pipeline(&self) -> &pipeline::Pipeline {
        &self.parts.pipeline
    }

    pub(crate) fn durability(&self) -> Durability {
        self.context().settings.durability
    }

    /// Performs a write. Returns once the write is visible and has the requested durability.
    #[inline]
    pub(crate) fn write(&self, write: Write<'_>, durability: Durability) -> Result<()> {
        self.parts.writer.write(write, durability)
    }

    /// Performs a write unless its basis has changed.
    pub(crate) fn commit(
        &self,
        batch: &Batch,
        durability: Durability,
        basis: &dyn Basis,
    ) -> Result<Commit> {
        self.parts.writer.commit(batch, durability, basis)
    }

    /// Counts a transaction, before it holds its sequence number.
    pub(crate) fn begin_transaction(&self) {
        self.parts.pipeline.begin_transaction();
    }

    /// Counts a transaction that has ended.
    pub(crate) fn end_transaction(&self) {
        self.parts.pipeline.end_transaction();
    }

    /// Returns whether a lookup would find another version now than as of `since`.
    pub(crate) fn is_key_changed(
        &self,
        tree: &Tree,
        key: &[u8],
        was_found: bool,
        since: SeqNo,
    ) -> Result<bool> {
        self.parts.reader.is_key_changed(tree, key, was_found, since)
    }

    /// Returns whether a key of a range was written or deleted after `since`.
    pub(crate) fn is_range_changed(
        &self,
        tree: &Tree,
        range: (&[u8], Option<&[u8]>),
        since: SeqNo,
    ) -> Result<bool> {
        self.parts.reader.is_range_changed(tree, range, since)
    }

    /// Returns the value of `key` as of `at`, or now.
    #[inline]
    pub(crate) fn get(
        &self,
        tree: &Tree,
        key: &[u8],
        at: Option<AsOf<'_>>,
    ) -> Result<Option<Value>> {
        self.parts.reader.get(tree, key, at)
    }

    /// Returns whether `key` has a value as of `at`, or now.
    pub(crate) fn contains(&self, tree: &Tree, key: &[u8], at: Option<AsOf<'_>>) -> Result<bool> {
        self.parts.reader.contains(tree, key, at)
    }

    /// Returns the values of several keys as of `at`, or now, in the order of the keys.
    pub(crate) fn multi_get<K: AsRef<[u8]>>(
        &self,
        tree: &Tree,
        keys: &[K],
        at: Option<AsOf<'_>>,
    ) -> Result<Vec<Option<Value>>> {
        self.parts.reader.multi_get(tree, keys, at)
    }

    /// Returns a view of a tree as of `at`, or now.
    pub(crate) fn view(&self, tree: &Tree, at: Option<AsOf<'_>>) -> Result<ReadView> {
        self.parts.reader.view(tree, at)
    }

    /// Returns the reader of trees, for reads that are not methods here.
    pub(crate) fn reader(&self) -> &Reader {
        &self.parts.reader
    }

    /// Holds the newest visible sequence number, to be released with [`Self::release_snapshot`].
    pub(crate) fn hold_snapshot(&self) -> SeqNo {
        self.parts.pipeline.hold_snapshot()
    }

    /// The times as of which snapshots read.
    pub(crate) fn times(&self) -> &HeldTimes {
        self.parts.pipeline.times()
    }

    /// Returns the states that a snapshot, whose number is held, has to keep.
    pub(crate) fn states_to_keep(&self) -> KeptStates {
        self.parts.catalog.filtering.states_to_keep()
    }

    /// Holds a sequence number once more. Returns false if nobody holds it.
    pub(crate) fn hold_again(&self, seq: SeqNo) -> bool {
        self.parts.pipeline.hold_again(seq)
    }

    pub(crate) fn release_snapshot(&self, seq: SeqNo) {
        self.parts.pipeline.release_snapshot(seq);
    }

    /// Holds a sequence number, which somebody holds, until the memtable of a tree is replaced or
    /// another one is kept. Returns false if nobody holds it.
    pub(crate) fn keep_snapshot(&self, tree: &Tree, seq: SeqNo) -> bool {
        self.parts.pipeline.keep_snapshot(tree, Some(seq))
    }

    /// Returns the sequence numbers that are held, in ascending order.
    pub(crate) fn snapshots(&self) -> Vec<SeqNo> {
        self.parts.pipeline.snapshots()
    }

    /// Returns all trees.
    pub(crate) fn trees(&self) -> arc_swap::Guard<Arc<Trees>> {
        self.parts.catalog.trees()
    }

    /// Returns the tree of a keyspace, unless it was dropped.
    pub(crate) fn tree(&self, id: KeyspaceId) -> Option<Arc<Tree>> {
        self.parts.catalog.tree(id)
    }

    /// Returns the tree of this name, and creates it if it does not exist.
    pub(crate) fn keyspace(
        &self,
        name: &str,
        design: Option<&RequestedDesign>,
    ) -> Result<Arc<Tree>> {
        let tree = self.parts.catalog.keyspace(name, design)?;
        let changed = design.and_then(RequestedDesign::to_change);
        if let Some(design) = changed.filter(|_| !self.context().health.is_read_only()) {
            self.parts.jobs.change_design(&tree, design)?;
        }
        self.start_drain_threads()?;
        Ok(tree)
    }

    /// Drops a keyspace and its contents. Returns false if no keyspace has this name.
    pub(crate) fn drop_keyspace(&self, name: &str) -> Result<bool> {
        self.parts.catalog.drop_keyspace(name)
    }

    /// Renames a keyspace. Returns false if no keyspace has this name.
    pub(crate) fn rename_keyspace(&self, name: &str, new_name: &str) -> Result<bool> {
        self.parts.catalog.rename_keyspace(name, new_name)
    }

    /// Changes the design of a tree.
    pub(crate) fn set_design(&self, tree: &Arc<Tree>, design: Design) -> Result<()> {
        self.parts.catalog.set_design(tree, design, None)?;
        self.start_drain_threads()
    }

    /// The part that changes the settings of trees.
    pub(crate) fn catalog(&self) -> &Catalog {
        &self.parts.catalog
    }

    /// Returns a batch as it is written: with the ends of values in place of times to live, also of those
    /// of keyspaces.
    ///
    /// # Errors
    /// An operand is for a keyspace without a merge operator.
    pub(crate) fn prepared<'a>(&self, batch: &'a Batch) -> Result<Cow<'a, Batch>> {
        let trees = self.trees();
        if batch.has_merges() {
            let merged = batch.merged_keyspaces();
            let lacks = |tree: &&Arc<Tree>| tree.functions.merge_operator().get().is_none();
            if let Some(tree) = merged.iter().filter_map(|id| trees.get(id)).find(lacks) {
                return Err(no_merge_operator(tree.name()));
            }
        }
        let of_keyspace = |id: &KeyspaceId| Some((*id, trees.get(id)?.default_ttl().get()?));
        let defaults: Vec<_> = batch.keyspaces().iter().filter_map(of_keyspace).collect();
        if defaults.is_empty() && !batch.has_ttls() {
            return Ok(Cow::Borrowed(batch));
        }
        Ok(Cow::Owned(batch.with_ends(self.context().clock.now_micros(), &defaults)))
    }

    /// Returns the compactions that another design would cause, without running them.
    pub(crate) fn forecast(&self, tree: &Tree, design: &Design) -> Result<Forecast> {
        self.parts.jobs.forecast(tree, design)
    }

    /// Returns the counts of the operations since the database was opened.
    pub(crate) fn operations(&self) -> OperationCounts {
        self.parts.catalog.operations()
    }

    /// Returns the operation counts across openings.
    pub(crate) fn operation_history(&self) -> OperationCounts {
        self.parts.catalog.operation_history()
    }

    /// Returns the error of an unreadable table of any tree.
    pub(crate) fn damage(&self) -> Option<Error> {
        self.parts.catalog.damage()
    }

    /// Flushes the memtables of trees.
    pub(crate) fn flush(&self, trees: &[Arc<Tree>], cancel: Option<&Cancel>) -> Result<()> {
        self.context().check_outside_listener("flush")?;
        self.parts.jobs.flush(trees, cancel)
    }

    /// Begins an ingest into a tree.
    pub(crate) fn begin_ingest(&self, tree: &Arc<Tree>) -> Result<IngestTables> {
        self.parts.jobs.begin_ingest(tree)
    }

    /// Adds the tables of an ingest to its tree.
    pub(crate) fn commit_ingest(&self, tables: IngestTables) -> Result<()> {
        self.context().check_outside_listener("commit")?;
        self.parts.jobs.commit_ingest(tables)
    }

    /// Compacts all entries in `range` into the last level that contains any of them.
    pub(crate) fn compact_range(
        &self,
        tree: &Arc<Tree>,
        range: &KeyRange,
        cancel: Option<&Cancel>,
    ) -> Result<()> {
        self.context().check_outside_listener("compact_range")?;
        self.parts.jobs.compact_range(tree, range, cancel)
    }

    /// Returns when no flush, drop or compaction is due or running.
    pub(crate) fn wait_for_compactions(&self, cancel: Option<&Cancel>) -> Result<()> {
        self.context().check_outside_listener("wait_for_compactions")?;
        self.parts.jobs.wait_for_compactions(cancel)
    }

    /// Returns the running jobs, and the jobs that wait.
    pub(crate) fn jobs(&self) -> Vec<JobView> {
        self.parts.jobs.views()
    }

    /// Runs one job in the calling thread. Returns false if no job is due.
    pub(crate) fn run_one_job(&self) -> Result<bool> {
        self.context().check_outside_listener("run_background_job")?;
        self.parts.jobs.run_one_job()
    }

    /// Returns the bandwidth of flushes, compactions and ingests.
    pub(crate) fn io_budget(&self) -> IoBudget {
        self.parts.jobs.io_budget()
    }

    /// Changes the bandwidth of flushes, compactions and ingests at once.
    pub(crate) fn set_io_budget(&self, budget: IoBudget) -> Result<()> {
        self.parts.jobs.set_io_budget(budget)
    }

    /// Starts the drain threads that the designs require and that are not running yet.
    pub(crate) fn start_drain_threads(&self) -> Result<()> {
        self.parts.jobs.start_drain_threads()
    }
}
