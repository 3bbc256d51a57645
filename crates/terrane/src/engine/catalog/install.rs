//! Applies the result of a flush or a compaction, first on disk, then in memory.
//!
//! The manifest stays locked from before the edit is committed until the new version is installed,
//! so versions are installed in the order of edits.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use terrane_policy::{RunId, TableId, ValueFileId};

use super::Catalog;
use super::log_retention::worth_recording;
use super::value_garbage::add_value_garbage;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::stats::Counter;
use crate::base::types::{KeyspaceId, Lsn, SeqNo};
use crate::engine::context::Context;
use crate::engine::tree::{ImmutableMemtable, Tree};
use crate::engine::version::Version;
use crate::files::manifest::{Change, KeyspaceState, Manifest, TableRecord, ValueFileRecord};
use crate::files::table::{FinishedTable, Table};
use crate::files::value_file::{FinishedValueFile, ValueFile, ValueFiles};

/// A tree, and a function that builds its edit under the manifest lock.
pub(crate) type InstallPlan<'a> =
    (&'a Arc<Tree>, Box<dyn FnOnce(&mut Manifest) -> Result<VersionEdit> + 'a>);

/// The changes of a job, which become visible together.
#[derive(Debug, Default)]
pub(crate) struct VersionEdit {
    pub(crate) changes: Vec<Change>,
    /// New tables.
    tables: Vec<TableRecord>,
    /// Tables that are no longer part of any tree.
    obsolete: Vec<TableId>,
    /// New value files.
    value_files: Vec<ValueFileRecord>,
    /// The memtable whose entries are now in tables.
    pub(crate) flushed: Option<Arc<ImmutableMemtable>>,
    /// The tables come from an ingest. From now on readers see later writes as well.
    pub(crate) ends_ingest: bool,
}

impl VersionEdit {
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

    /// Moves a table to another run.
    pub(crate) fn move_to(
        &mut self,
        keyspace: KeyspaceId,
        level: usize,
        run: RunId,
        table: TableRecord,
    ) {
        self.changes.push(Change::RemoveTable { keyspace, table: table.info.id });
        self.place(keyspace, level, run, table);
    }

    fn place(&mut self, keyspace: KeyspaceId, level: usize, run: RunId, table: TableRecord) {
        let level = u32::try_from(level).unwrap_or(u32::MAX);
        self.changes.push(Change::AddTable { keyspace, level, run, table });
    }

    /// Adds a new value file.
    pub(crate) fn add_value_file(&mut self, keyspace: KeyspaceId, file: &FinishedValueFile) {
        let record = ValueFileRecord {
            name: file.name,
            is_segment: false,
            size_bytes: file.size_bytes,
            info: Arc::clone(&file.info),
        };
        self.set_value_file(keyspace, record);
    }

    /// Adds a value file, or replaces its record.
    pub(crate) fn set_value_file(&mut self, keyspace: KeyspaceId, record: ValueFileRecord) {
        self.changes.push(Change::ValueFile { keyspace, file: record.clone() });
        self.value_files.push(record);
    }

    /// Removes a table, which is obsolete from now on.
    pub(crate) fn remove(&mut self, keyspace: KeyspaceId, table: TableId) {
        self.changes.push(Change::RemoveTable { keyspace, table });
        self.obsolete.push(table);
    }
}

impl Catalog {
    /// Commits an edit and installs the resulting version. `prepare` builds the edit under the
    /// manifest lock.
    pub(crate) fn install<'a>(
        &self,
        tree: &'a Arc<Tree>,
        prepare: impl FnOnce(&mut Manifest) -> Result<VersionEdit> + 'a,
    ) -> Result<()> {
        let installed = self.install_all(vec![(tree, Box::new(prepare))])?;
        if installed == [true] { Ok(()) } else { Err(Error::Closed) }
    }

    /// Commits the edits of several trees as one, and installs the resulting versions. Returns for
    /// each tree whether it still exists.
    pub(crate) fn install_all(&self, plans: Vec<InstallPlan<'_>>) -> Result<Vec<bool>> {
        let idle = self.idle_positions_if_due();
        let mut guard = self.lock_manifest();
        let manifest = guard.as_mut().ok_or(Error::ReadOnly)?;
        let log_bytes_max = self.context.settings.log_bytes_max();
        let mut changes = worth_recording(idle, manifest.state(), log_bytes_max);
        let mut edits = Vec::with_capacity(plans.len());
        let mut is_installed = Vec::with_capacity(plans.len());
        for (tree, prepare) in plans {
            is_installed.push(!tree.is_dropped());
            if tree.is_dropped() {
                continue;
            }
            let mut edit = prepare(manifest)?;
            note_value_garbage(manifest, tree, &mut edit, self.context.clock.now_micros());
            changes.append(&mut edit.changes);
            edits.push((tree, edit));
        }
        if edits.is_empty() {
            return Ok(is_installed);
        }
        if edits.iter().any(|(_, edit)| edit.flushed.is_some()) {
            changes.push(self.history_change());
        }
        self.commit(manifest, changes)?;
        for (tree, edit) in edits {
            self.apply(manifest, tree, &edit)?;
        }
        drop(guard);
        self.note_manifest_version();
        Ok(is_installed)
    }

    /// Installs the version of a tree that follows from a committed edit.
    fn apply(&self, manifest: &Manifest, tree: &Tree, edit: &VersionEdit) -> Result<()> {
        let Context { dir, tables: environment, .. } = &*self.context;
        let Some(keyspace) = manifest.state().keyspaces.get(&tree.id) else {
            return Err(Error::internal("a tree vanished from the manifest"));
        };
        let shape = keyspace.shape.clone();
        let before = Arc::clone(&tree.state().version);
        let mut tables = before.tables().clone();
        let gone = edit.obsolete.iter().filter_map(|id| tables.remove(id));
        let obsolete: Vec<Arc<Table>> = gone.collect();
        for record in &edit.tables {
            let table = Table::new(record.file, Arc::clone(&record.info), dir, environment);
            tables.insert(record.info.id, table);
        }
        let values = values_of(before.values(), keyspace, &edit.value_files, &self.context);
        let version = Arc::new(Version::after(&before, shape, tables, values));
        tree.replace(|mut state| {
            if let Some(flushed) = &edit.flushed {
                state.immutables.retain(|immutable| !Arc::ptr_eq(immutable, flushed));
            }
            state.version = version;
            if edit.ends_ingest {
                state.readable_to = SeqNo::MAX;
            }
            state
        });
        obsolete.iter().for_each(|table| table.make_obsolete());
        let is_left = |number: &u64| keyspace.value_files.contains_key(&ValueFileId(*number));
        let gone = before.values().files().iter().filter(|(number, _)| !is_left(number));
        gone.for_each(|(_, file)| file.make_obsolete());
        check_shape(tree)
    }

    /// Commits an edit to the manifest, and records in it the position up to which the log is
    /// durable. A failed sync or a lost lock is final for the database.
    pub(crate) fn commit(&self, manifest: &mut Manifest, mut changes: Vec<Change>) -> Result<()> {
        let synced = self.pipeline.log_sync().synced();
        let state = manifest.state();
        // If the tables contain all records before the position, the log may lose these records.
        if synced > state.log_durable.max(state.log_needed_from(Lsn(0))) {
            changes.push(Change::LogDurable(synced));
        }
        let before = manifest.bytes_written();
        let committed = self.context.with_reserve(|| manifest.commit(changes.clone()));
        let written = manifest.bytes_written() - before;
        self.context.counters.add(Counter::ManifestBytesWritten, written);
        match committed {
            Ok(()) => {
                if !manifest.is_doubtful() {
                    self.remove_doubtful();
                }
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Poisoned => {
                self.context.health.note_failure(error.clone());
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Notes the manifest version and the durable position in the log. With them, the next opening
    /// detects that the manifest has lost edits, or that the log has lost records.
    pub(crate) fn note_manifest_version(&self) {
        let version = self.lock_manifest().as_ref().map(Manifest::version);
        if let (Some(log), Some(version)) = (&mut self.pipeline.lock().log, version) {
            // A failure is harmless, because the edit itself is durable.
            let _ = log.note_manifest(version);
        }
    }

    /// Removes the files of a failed job, unless its edit may have been committed.
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
}

/// Adds the changes of the value files that an edit makes to garbage.
fn note_value_garbage(manifest: &Manifest, tree: &Tree, edit: &mut VersionEdit, now: u64) {
    if let Some(before) = manifest.state().keyspaces.get(&tree.id) {
        let since = edit.flushed.as_ref().and_then(|flushed| flushed.since_micros);
        add_value_garbage(tree.id, before, &mut edit.changes, since, now);
        note_persisted_values(&mut edit.changes, before, now);
    }
}

/// Returns the value files of a keyspace: those that remain from the previous version, and the new
/// ones.
fn values_of(
    before: &ValueFiles,
    keyspace: &KeyspaceState,
    new: &[ValueFileRecord],
    context: &Context,
) -> ValueFiles {
    let Context { dir, tables: environment, .. } = context;
    let is_left = |number: &u64| keyspace.value_files.contains_key(&ValueFileId(*number));
    let mut files = before.files().clone();
    for record in new {
        let open = || ValueFile::new(record.name, record.size_bytes, dir, environment);
        files.entry(record.name.number).or_insert_with(open);
    }
    files.retain(|number, _| is_left(number));
    before.replaced(dir, files)
}

/// If the changes include a job's record, notes in it how long the removed value files contained
/// dead values.
fn note_persisted_values(changes: &mut [Change], before: &KeyspaceState, now_micros: u64) {
    let removed = changes.iter().filter_map(|change| match change {
        Change::RemoveValueFile { file, .. } => before.value_files.get(file),
        _ => None,
    });
    let Some(oldest) = removed.filter_map(|file| file.info.oldest_dead_micros).min() else {
        return;
    };
    for change in changes {
        if let Change::Job(job) = change {
            job.persisted_micros =
                job.persisted_micros.max(Some(now_micros.saturating_sub(oldest)));
        }
    }
}

/// Checks the tree after every change, in builds with debug assertions.
fn check_shape(tree: &Tree) -> Result<()> {
    if cfg!(debug_assertions) {
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
