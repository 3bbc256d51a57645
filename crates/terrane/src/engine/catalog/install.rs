//! Makes the result of a flush or a compaction true, first on disk, then in memory.
//!
//! The manifest is locked from before the edit is kept until the new version is in place, so that
//! versions follow each other as edits do.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use terrane_policy::{RunId, TableId};

use crate::engine::Engine;
use crate::engine::tree::{FullBuffer, Tree};
use crate::error::{Error, Result};
use crate::manifest::{Change, Manifest, ManifestState, TableRecord};
use crate::table::{FinishedTable, Table};
use crate::types::{KeyspaceId, Lsn};
use crate::version::Version;
use crate::wal::WantedClean;

/// What becomes true together.
#[derive(Debug, Default)]
pub(crate) struct Installed {
    pub(crate) changes: Vec<Change>,
    /// New tables.
    pub(crate) tables: Vec<TableRecord>,
    /// Tables that are in no tree any more.
    pub(crate) obsolete: Vec<TableId>,
    /// The memtable that is in tables now.
    pub(crate) flushed: Option<Arc<FullBuffer>>,
}

/// Trees without anything in memory that an edit names whatever that costs, as it costs little.
const FEW_IDLE: usize = 8;

/// How much is written to the log for each further one before an edit names them all again.
const LOG_BYTES_PER_IDLE: u64 = 1 << 10;

impl Installed {
    /// Adds a new table to a run.
    pub(crate) fn add(
        &mut self,
        keyspace: KeyspaceId,
        level: usize,
        run: RunId,
        table: &FinishedTable,
    ) {
        let record =
            TableRecord { file: table.id, info: Arc::clone(&table.info), checksum: table.checksum };
        self.tables.push(record.clone());
        self.place(keyspace, level, run, record);
    }

    /// Puts a table, new or not, into a run.
    pub(crate) fn place(
        &mut self,
        keyspace: KeyspaceId,
        level: usize,
        run: RunId,
        table: TableRecord,
    ) {
        let level = u32::try_from(level).unwrap_or(u32::MAX);
        self.changes.push(Change::AddTable { keyspace, level, run, table });
    }

    /// Takes a table out of its place.
    pub(crate) fn remove(&mut self, keyspace: KeyspaceId, table: TableId) {
        self.changes.push(Change::RemoveTable { keyspace, table });
    }
}

impl Engine {
    /// Keeps an edit, and has readers see its result.
    pub(crate) fn install(
        &self,
        tree: &Arc<Tree>,
        prepare: impl FnOnce(&mut Manifest) -> Result<Installed>,
    ) -> Result<()> {
        let idle = self.idle_positions();
        let mut guard = self.lock_manifest();
        let manifest = guard.as_mut().ok_or(Error::ReadOnly)?;
        if tree.is_dropped() {
            return Err(Error::Closed);
        }
        let mut installed = prepare(manifest)?;
        let log_bytes_max = self.settings.log_bytes_max();
        installed.changes.extend(worth_keeping(idle, manifest.state(), log_bytes_max));
        if installed.flushed.is_some() {
            installed.changes.push(self.operations_to_keep());
        }
        self.commit(manifest, installed.changes)?;
        let Some(keyspace) = manifest.state().keyspaces.get(&tree.id) else {
            return Err(Error::internal("a tree vanished from the manifest"));
        };
        let shape = keyspace.shape.clone();
        let before = Arc::clone(&tree.state().version);
        let mut tables: BTreeMap<TableId, Arc<Table>> = before.tables().clone();
        for record in &installed.tables {
            let table = Table::new(record.file, Arc::clone(&record.info), &self.dir, &self.tables);
            tables.insert(record.info.id, table);
        }
        let version = Arc::new(Version::new(shape, &tables));
        tree.replace(|mut state| {
            if let Some(flushed) = &installed.flushed {
                state.full.retain(|full| !Arc::ptr_eq(full, flushed));
            }
            state.version = version;
            state
        });
        for id in installed.obsolete {
            tables.get(&id).inspect(|table| table.make_obsolete());
        }
        drop(guard);
        self.note_manifest();
        self.check_shape(tree)
    }

    /// Keeps an edit. A failed sync is final for the database.
    pub(crate) fn commit(&self, manifest: &mut Manifest, changes: Vec<Change>) -> Result<()> {
        let before = manifest.bytes_written();
        let committed = manifest.commit(changes);
        let written = manifest.bytes_written() - before;
        self.counters.add(crate::stats::Counter::ManifestBytesWritten, written);
        match committed {
            Ok(()) => {
                if !manifest.is_doubtful() {
                    self.remove_doubtful();
                }
                Ok(())
            }
            Err(error @ Error::Poisoned(_)) => {
                self.health.fail(error.clone());
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Has the log know how far the manifest has come.
    pub(crate) fn note_manifest(&self) {
        let version = self.lock_manifest().as_ref().map(Manifest::version);
        if let (Some(log), Some(version)) = (&mut self.lock_writer().log, version) {
            // The note is a second opinion; the edit itself is durable.
            let _ = log.note_manifest(version);
        }
    }

    /// Up to where trees without anything in memory can let go of the log: up to now.
    pub(crate) fn idle_positions(&self) -> Vec<(KeyspaceId, Lsn)> {
        let writer = self.lock_writer();
        let Some(log) = &writer.log else { return Vec::new() };
        let upto = log.end();
        let trees = self.trees();
        // A write that has its place in the log, and is not in its memtable yet, is told by its
        // sequence number, which is not visible then.
        let visible = self.visible();
        // A write that could not be logged has named a number that was not given out.
        let given = writer.next_seq - 1;
        let is_idle =
            |tree: &&Arc<Tree>| tree.last_seq().min(given) <= visible && tree.state().is_flushed();
        let idle = trees.values().filter(is_idle);
        idle.map(|tree| (tree.id, upto)).collect()
    }

    /// Has no tree keep any of the log for nothing, so that the next opening reads none of it.
    pub(crate) fn keep_idle_positions(&self) -> Result<()> {
        let idle = self.idle_positions();
        let mut guard = self.lock_manifest();
        let Some(manifest) = guard.as_mut() else { return Ok(()) };
        let (changes, _) = behind(idle, manifest.state());
        if changes.is_empty() { Ok(()) } else { self.commit(manifest, changes) }
    }

    /// Removes files that were begun for an edit that was not made, unless it may have been.
    pub(crate) fn abandon(&self, paths: Vec<PathBuf>) {
        let is_doubtful = self.lock_manifest().as_ref().is_some_and(Manifest::is_doubtful);
        if is_doubtful {
            let mut doubtful = self.doubtful.lock().unwrap_or_else(PoisonError::into_inner);
            doubtful.extend(paths);
            return;
        }
        self.remove_files(paths);
    }

    fn remove_doubtful(&self) {
        let mut doubtful = self.doubtful.lock().unwrap_or_else(PoisonError::into_inner);
        self.remove_files(std::mem::take(&mut *doubtful));
    }

    /// Frees the part of the log that no tree needs any more.
    pub(crate) fn release_log(&self) {
        // Files that are freed here are gone before another opening can have use for their names.
        let _helping = self.work.help();
        let needed = {
            let guard = self.lock_manifest();
            let Some(manifest) = guard.as_ref().filter(|manifest| !manifest.is_doubtful()) else {
                return;
            };
            manifest.state().log_needed_from(Lsn(0))
        };
        let released = {
            let mut writer = self.lock_writer();
            writer.log.as_mut().map(|log| log.release(needed)).unwrap_or_default()
        };
        self.remove_files(released.removed);
        if self.is_inline() {
            released.reused.into_iter().for_each(|segment| self.clean_segment(segment));
        } else {
            self.work.clean_later(released.reused);
        }
    }

    /// Has a segment be one of those that are written next.
    pub(crate) fn clean_segment(&self, segment: WantedClean) {
        let cleaned = segment.make(&*self.storage).ok();
        if let Some(log) = &mut self.lock_writer().log {
            log.give_cleaned(cleaned);
        }
    }

    /// Under `cfg(invariants)`, checks the tree after every change.
    #[cfg_attr(not(invariants), allow(clippy::unused_self, clippy::unnecessary_wraps))]
    fn check_shape(&self, tree: &Tree) -> Result<()> {
        if cfg!(invariants) || cfg!(debug_assertions) {
            let state = tree.state();
            if let Err(error) = state.version.shape().check() {
                return Err(Error::internal(format!("after an install: {error}")));
            }
            if state.version.tables().len() != state.version.shape().table_count() {
                return Err(Error::internal("a table of the tree is not open"));
            }
        }
        Ok(())
    }
}

/// The edits by which idle trees let go of the log, if it is time for them. A reader of the log
/// passes over what is in tables, so that it does no harm if they are late; with ten thousand of them
/// each flush would keep more about them than about itself. The log is longer for it by an eighth of
/// what it may be, at most.
fn worth_keeping(
    idle: Vec<(KeyspaceId, Lsn)>,
    state: &ManifestState,
    log_bytes_max: u64,
) -> Vec<Change> {
    let (changes, behind) = behind(idle, state);
    let cost = changes.len().saturating_sub(FEW_IDLE) as u64 * LOG_BYTES_PER_IDLE;
    if behind < cost.min(log_bytes_max / 8) { Vec::new() } else { changes }
}

/// The edits by which idle trees let go of the log that it does not know them to have let go of, and
/// how many bytes that is for the last one of them.
fn behind(idle: Vec<(KeyspaceId, Lsn)>, state: &ManifestState) -> (Vec<Change>, u64) {
    let (mut changes, mut most) = (Vec::new(), 0);
    for (keyspace, upto) in idle {
        let Some(kept) = state.keyspaces.get(&keyspace).map(|state| state.flushed) else {
            continue;
        };
        if kept < upto {
            most = most.max(upto.0 - kept.0);
            changes.push(Change::Flushed { keyspace, upto });
        }
    }
    (changes, most)
}
