//! A second database with the same contents, created while the first one is in use.
//!
//! Tables and value files are immutable, so the copy shares them by hard links if the file system
//! supports these. The entries that are not in tables are in the log, whose needed part is copied
//! up to its end at one moment. The copy equals the files that a crash at that moment would leave,
//! and opening it recovers it in the same way.
//!
//! A follower of changes continues after the copy's last sequence number, so the copy contains
//! every write up to that number, including writes that are not in the log ([`CheckpointLog`]).
//!
//! A database that is open for reading is copied as its opening shows it ([`opened`]).

mod opened;
mod target;

use std::path::Path;
use std::sync::{Arc, MutexGuard};

use self::target::Target;
use super::assembly::Engine;
use super::copy_file::copy_file;
use super::open::report_unsynced_dirs;
use crate::base::cancel::{self, Cancel};
use crate::base::error::{Error, Result};
use crate::engine::catalog::ManifestGuard;
use crate::engine::pipeline::{CheckpointLog, PipelineState, broken};
use crate::engine::tree::Tree;
use crate::engine::version::Version;
use crate::files::manifest::{FileManifest, Manifest, ManifestState, RecoveredState};
use crate::files::storage::HeldDir;
use crate::files::wal::{LogCopy, LogWriter};

/// How often a checkpoint waits for the manifest lock without blocking writers. After other edits
/// have come first this many times in a row, it waits with the writer lock held, so that it
/// finishes.
const LOCK_TRIES: u32 = 100;

/// The contents of a checkpoint at one moment. Holding the versions keeps their files.
struct Cut {
    state: ManifestState,
    version: u64,
    _versions: Vec<Arc<Version>>,
    log: Vec<LogCopy>,
}

impl Engine {
    /// Creates a database in `dir`, which must not exist, must be empty, or must contain an
    /// unfinished checkpoint.
    pub(crate) fn checkpoint(&self, dir: &Path, cancel: Option<&Cancel>) -> Result<()> {
        self.context.check_outside_listener("checkpoint")?;
        match self.context.health.check_writable() {
            Err(Error::ReadOnly) => {}
            checked => checked?,
        }
        let target = Target::begin(&self.context.storage, dir)?;
        let written = match &self.opened_files {
            Some(files) => self.copy_opened(files, &target, cancel),
            None => self.write_checkpoint(&target, cancel),
        };
        match written {
            Ok(()) => {
                report_unsynced_dirs(&self.context.events, &*target.dir().storage);
                target.finish();
            }
            Err(error) => {
                target.abandon();
                return Err(error);
            }
        }
        Ok(())
    }

    fn write_checkpoint(&self, target: &Target, cancel: Option<&Cancel>) -> Result<()> {
        // From now on every write is logged, so that the flush and the log together contain all
        // writes.
        let complete = CheckpointLog::begin(&self.pipeline)?;
        // Flushed entries need not be copied from the log.
        let trees: Vec<Arc<Tree>> = self.catalog.trees().values().cloned().collect();
        self.jobs.flush(&trees, cancel)?;
        self.pipeline.pin_log(true);
        let cut = self.cut();
        drop(complete);
        let copied = cut.and_then(|cut| {
            self.copy(&cut, target, cancel)?;
            write_manifest(&cut, target)
        });
        self.pipeline.pin_log(false);
        self.catalog.release_log();
        copied
    }

    /// Captures the contents of the checkpoint. They include every write up to their last sequence
    /// number: unlogged writes were flushed, and no ingest has taken its numbers without having
    /// added its tables.
    fn cut(&self) -> Result<Cut> {
        let _no_ingest = self.pipeline.ingests().close();
        let (writer, guard) = self.lock_writers_and_manifest();
        if self.pipeline.is_broken() {
            // The log has a gap, and its copy would end there.
            return Err(broken(&self.context));
        }
        let manifest = guard.as_ref().ok_or(Error::ReadOnly)?;
        let trees = self.catalog.trees();
        let versions = trees.values().map(|tree| Arc::clone(&tree.state().version));
        let log = writer.log.as_ref().map(LogWriter::copies).unwrap_or_default();
        Ok(Cut {
            state: manifest.state().clone(),
            version: manifest.version(),
            _versions: versions.collect(),
            log,
        })
    }

    /// Takes both locks. A job that installs its tables syncs the manifest while it holds the
    /// manifest lock. This may take seconds on a busy device, and writers must not wait for it.
    fn lock_writers_and_manifest(&self) -> (MutexGuard<'_, PipelineState>, ManifestGuard<'_>) {
        for _ in 0..LOCK_TRIES {
            let writer = self.pipeline.lock();
            if let Some(guard) = self.catalog.try_lock_manifest() {
                return (writer, guard);
            }
            drop(writer);
            drop(self.catalog.lock_manifest());
        }
        let writer = self.pipeline.lock();
        (writer, self.catalog.lock_manifest())
    }

    fn copy(&self, cut: &Cut, target: &Target, cancel: Option<&Cancel>) -> Result<()> {
        let HeldDir { path: target, storage } = target.dir();
        let files = || {
            let keyspaces = cut.state.keyspaces.values();
            keyspaces.flat_map(|keyspace| {
                let tables = keyspace.tables.values();
                let tables = tables.map(|table| (table.file.file_name(), table.info.size_bytes));
                let values = keyspace.value_files.values();
                tables.chain(values.map(|file| (file.name.file_name(), file.size_bytes)))
            })
        };
        let log_bytes = cut.log.iter().map(|segment| segment.bytes).sum::<u64>();
        if let Some(cancel) = cancel {
            cancel.begin(files().map(|(_, bytes)| bytes).sum::<u64>() + log_bytes);
        }
        for (name, bytes) in files() {
            cancel::check(cancel)?;
            let (from, to) = (self.context.dir.join(&name), target.join(&name));
            if storage.hard_link(&from, &to).is_err() {
                copy_file(&**storage, (&from, &to), None, cancel)?;
            } else if let Some(cancel) = cancel {
                cancel.add_done(bytes);
            }
        }
        for segment in &cut.log {
            let name = segment.path.file_name().unwrap_or_default();
            let to = target.join(name);
            copy_file(&**storage, (&segment.path, &to), Some(segment.bytes), cancel)?;
        }
        storage.sync_dir(target).map_err(|error| Error::io("sync", target, error))
    }
}

/// Writes the manifest, after all other files because it turns the directory into a database.
fn write_manifest(cut: &Cut, target: &Target) -> Result<()> {
    let HeldDir { path, storage } = target.dir();
    let store = FileManifest::new(Arc::clone(storage), path, cut.version)?;
    let found = RecoveredState {
        state: cut.state.clone(),
        version: cut.version,
        ..RecoveredState::default()
    };
    Manifest::begin(found, &[], Box::new(store))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use terrane_testkit::run_guarded;

    use crate::files::storage::MemoryStorage;
    use crate::{Background, KeyspaceOptions, Options};

    use super::*;

    /// A checkpoint held the writer lock while it waited for the manifest, which a flush or a
    /// compaction was syncing. No write returned until the sync had ended.
    #[test]
    fn writes_return_while_a_checkpoint_waits_for_the_manifest() {
        run_guarded(|| {
            let storage = Arc::new(MemoryStorage::new(1));
            let options = Options::new().storage(storage).background(Background::Inline);
            let db = options.open("db").unwrap();
            let keyspace = db.keyspace("default", KeyspaceOptions::new()).unwrap();
            let engine = &keyspace.handle.engine;
            std::thread::scope(|scope| {
                let manifest = engine.catalog.lock_manifest();
                let cut = scope.spawn(|| engine.cut().map(drop));
                for number in 0..100_u32 {
                    db.put(number.to_be_bytes(), "value").unwrap();
                    std::thread::sleep(Duration::from_millis(1));
                }
                assert!(!cut.is_finished());
                drop(manifest);
                cut.join().unwrap().unwrap();
            });
        });
    }
}
