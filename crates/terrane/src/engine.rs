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
//! | `life` | opening, recovery, closing and checkpoints |
//! | `snapshot_pin`, `restart_scan` | what a snapshot pins; FloDB's scan protocol |
//!
//! Locks, in the order in which they are taken: the writer lock ([`Pipeline::lock`]), the manifest
//! lock ([`Catalog::lock_manifest`]), the locks of a tree. No lock is held during I/O, with two
//! exceptions: the manifest lock while an edit is committed, and the writer lock while the log
//! moves to another segment.
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
#[cfg(test)]
mod tests;
mod tree;
pub(crate) mod version;
mod write;

pub(crate) use filtering::KeptStates;
pub(crate) use jobs::IngestTables;
pub(crate) use life::{Engine, Opened, destroy};
pub(crate) use pipeline::{Following, WrittenKeys};
pub(crate) use read::{AsOf, Collected, NewerVersions, ReadView};
pub(crate) use tree::{Tree, memtable_config, pressure_of};
pub(crate) use write::{Commit, CommitCondition, Write, collect_delays, insert_one, note_stalled};

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use terrane_policy::{Design, KeyRange};

use crate::base::cancel::Cancel;
use crate::base::error::{Error, Result};
use crate::base::merge_operator::no_merge_operator;
use crate::base::types::KeyspaceId;
use crate::files::batch::Batch;
use crate::options::{Options, RequestedDesign};

impl Engine {
    /// Opens a database for writing, or creates one.
    pub(crate) fn open(options: &Options, dir: &Path) -> Result<(Arc<Self>, Opened)> {
        let (engine, opened) = life::open(options, dir)?;
        Ok((Arc::new(engine), opened))
    }

    /// Opens a database for reading, even while another process writes it.
    pub(crate) fn open_read_only(options: &Options, dir: &Path) -> Result<(Arc<Self>, Opened)> {
        let (engine, opened) = life::open_read_only(options, dir)?;
        Ok((Arc::new(engine), opened))
    }

    /// Returns the tree with this name, and creates it if it does not exist.
    pub(crate) fn keyspace(
        &self,
        name: &str,
        design: Option<&RequestedDesign>,
    ) -> Result<Arc<Tree>> {
        let opened = self.keyspaces(&[name], design)?.pop();
        opened.ok_or_else(|| Error::internal("no keyspace was opened"))
    }

    /// Returns the trees with these names. Creates those that do not exist, by one edit.
    pub(crate) fn keyspaces(
        &self,
        names: &[&str],
        design: Option<&RequestedDesign>,
    ) -> Result<Vec<Arc<Tree>>> {
        let trees = self.catalog.keyspaces(names, design)?;
        let changed = design.and_then(RequestedDesign::to_change);
        for tree in &trees {
            if let Some(design) = changed.filter(|_| !self.context.health.is_read_only()) {
                self.jobs.change_design(tree, design)?;
            }
            self.jobs.start_drain_threads_for(tree)?;
        }
        Ok(trees)
    }

    /// Changes the design of a tree.
    pub(crate) fn set_design(&self, tree: &Arc<Tree>, design: Design) -> Result<()> {
        self.catalog.set_design(tree, design, None)?;
        self.jobs.start_drain_threads_for(tree)
    }

    /// Returns a batch as it is written: expiry times replace its times to live, and the default
    /// times to live of keyspaces are applied.
    ///
    /// # Errors
    /// An operand is for a keyspace without a merge operator.
    pub(crate) fn prepared<'a>(&self, batch: &'a Batch) -> Result<Cow<'a, Batch>> {
        let trees = self.catalog.trees();
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
        Ok(Cow::Owned(batch.with_expiry_times(self.context.clock.now_micros(), &defaults)))
    }

    /// Flushes the memtables of trees.
    pub(crate) fn flush(&self, trees: &[Arc<Tree>], cancel: Option<&Cancel>) -> Result<()> {
        self.context.check_outside_listener("flush")?;
        self.jobs.flush(trees, cancel)
    }

    /// Adds the tables of an ingest to its tree.
    pub(crate) fn commit_ingest(&self, tables: IngestTables) -> Result<()> {
        self.context.check_outside_listener("commit")?;
        self.jobs.commit_ingest(tables)
    }

    /// Compacts all entries in `range` into the last level that contains any of them.
    pub(crate) fn compact_range(
        &self,
        tree: &Arc<Tree>,
        range: &KeyRange,
        cancel: Option<&Cancel>,
    ) -> Result<()> {
        self.context.check_outside_listener("compact_range")?;
        self.jobs.compact_range(tree, range, cancel)
    }

    /// Returns when no flush, drop or compaction is due or running.
    pub(crate) fn wait_for_compactions(&self, cancel: Option<&Cancel>) -> Result<()> {
        self.context.check_outside_listener("wait_for_compactions")?;
        self.jobs.wait_for_compactions(cancel)
    }

    /// Runs one job in the calling thread. Returns false if no job is due.
    pub(crate) fn run_one_job(&self) -> Result<bool> {
        self.context.check_outside_listener("run_background_job")?;
        self.jobs.run_one_job()
    }
}
