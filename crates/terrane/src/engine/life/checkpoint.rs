//! A second database of the same contents, made while the first one is in use.
//!
//! Tables never change, so the copy shares their files by hard links where the file system can do
//! that. What is not in tables is in the log, of which the part that is needed is copied up to the
//! end that it has at one moment. The copy is what a crash at that moment would have left, and is
//! opened like that.

use std::path::Path;
use std::sync::Arc;

use crate::engine::{Engine, Tree};
use crate::error::{Error, Result};
use crate::manifest::{
    FileManifest, Manifest, ManifestState, RecoveredState, manifest_file_number,
};
use crate::storage::{Access, Storage};
use crate::table::TableFileId;
use crate::version::Version;
use crate::wal::{LogCopy, clear_note, segment_file_number};

/// What a checkpoint is made of, as it was at one moment. Holding the versions keeps their files.
struct Cut {
    state: ManifestState,
    version: u64,
    _versions: Vec<Arc<Version>>,
    log: Vec<LogCopy>,
}

impl Engine {
    /// Makes a database in `target`, which must not exist or be empty.
    pub(crate) fn checkpoint(&self, target: &Path) -> Result<()> {
        // What is in tables need not be copied from the log.
        let trees: Vec<Arc<Tree>> = self.trees().values().cloned().collect();
        self.flush(&trees)?;
        let storage = &*self.storage;
        let io = |operation, path: &Path, error| Error::io(operation, path, error);
        storage.create_dir_all(target).map_err(|error| io("create", target, error))?;
        if !storage.list(target).map_err(|error| io("list", target, error))?.is_empty() {
            let found = format!("{}, which holds files", target.display());
            return Err(Error::invalid("checkpoint directory", found, "a new or empty directory"));
        }
        self.pin_log(true);
        let cut = self.cut();
        let copied = cut.and_then(|cut| self.copy(&cut, target));
        self.pin_log(false);
        self.release_log();
        if copied.is_err() {
            // Half a checkpoint is of no use.
            let names = storage.list(target).unwrap_or_default();
            for name in names.iter().filter(|name| is_made_here(name)) {
                let _ = storage.remove(&target.join(name));
            }
        }
        copied
    }

    fn pin_log(&self, is_pinned: bool) {
        if let Some(log) = &mut self.lock_writer().log {
            log.pin(is_pinned);
        }
    }

    fn cut(&self) -> Result<Cut> {
        let writer = self.lock_writer();
        let guard = self.lock_manifest();
        let manifest = guard.as_ref().ok_or(Error::ReadOnly)?;
        let trees = self.trees();
        let versions = trees.values().map(|tree| Arc::clone(&tree.state().version));
        let log = writer.log.as_ref().map(crate::wal::LogWriter::copies).unwrap_or_default();
        Ok(Cut {
            state: manifest.state().clone(),
            version: manifest.version(),
            _versions: versions.collect(),
            log,
        })
    }

    fn copy(&self, cut: &Cut, target: &Path) -> Result<()> {
        let storage = &self.storage;
        let keyspaces = cut.state.keyspaces.values();
        for table in keyspaces.flat_map(|keyspace| keyspace.tables.values()) {
            let name = table.file.file_name();
            let (from, to) = (self.dir.join(&name), target.join(&name));
            if storage.hard_link(&from, &to).is_err() {
                copy_file(&**storage, &from, &to, None)?;
            }
        }
        for part in &cut.log {
            let name = part.path.file_name().unwrap_or_default();
            let to = target.join(name);
            copy_file(&**storage, &part.path, &to, Some(part.bytes))?;
        }
        storage.sync_dir(target).map_err(|error| Error::io("sync", target, error))?;
        // Last, for it makes the rest a database.
        let store = FileManifest::new(Arc::clone(storage), target, cut.version)?;
        let found = RecoveredState {
            state: cut.state.clone(),
            version: cut.version,
            ..RecoveredState::default()
        };
        Manifest::begin(found, &[], Box::new(store))?;
        if let Some(parent) = target.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            // The name of the directory; not all parents can be synced, nor need be.
            let _ = storage.sync_dir(parent);
        }
        Ok(())
    }
}

/// Whether a file of this name is part of a checkpoint.
fn is_made_here(name: &str) -> bool {
    // The pointer to the manifest, or one that was not finished.
    name.starts_with("CURRENT")
        || manifest_file_number(name).is_some()
        || segment_file_number(name).is_some()
        || TableFileId::of_file_name(name).is_some()
}

/// Copies a file, or its first `bytes` and some zeros, and makes the copy durable.
fn copy_file(storage: &dyn Storage, from: &Path, to: &Path, bytes: Option<u64>) -> Result<()> {
    const PIECE_BYTES: u64 = 1 << 20;
    let read = |error| Error::io("read", from, error);
    let write = |error| Error::io("write", to, error);
    let len = match bytes {
        Some(bytes) => bytes,
        None => storage.len(from).map_err(read)?,
    };
    let source = storage.open(from, Access::Buffered).map_err(read)?;
    let mut copy = storage.create(to, Access::Buffered).map_err(write)?;
    let mut at = 0;
    while at < len {
        let mut piece = vec![0; PIECE_BYTES.min(len - at) as usize];
        source.read_at(at, &mut piece).map_err(read)?;
        if at == 0 && bytes.is_some() {
            // It may say of the manifest what has become true since the moment of the copy.
            clear_note(&mut piece);
        }
        copy.append(&piece).map_err(write)?;
        at += piece.len() as u64;
    }
    if bytes.is_some() {
        // The end of a log is told by zeros.
        copy.append(&[0; 64]).map_err(write)?;
    }
    copy.sync().map_err(write)
}
