//! The manifest: the durable record of which tables make up which tree.
//!
//! A manifest is a snapshot of the state followed by edits. Every change of a tree is one edit,
//! which becomes durable before readers see its effect. A crash therefore leaves the state before
//! the edit or the state after it.
//!
//! | module | one line |
//! |---|---|
//! | `edit` | changes and their encoding |
//! | `value_file_record` | value files in the manifest |
//! | `keyspaces` | the keyspaces in the state |
//! | `state` | the state that edits produce |
//! | `job` | the history of compactions |
//! | `store` | the interface to durable storage of edits |
//! | `file` | its implementation in files |
//! | `shared` | reads the files alongside a writer |
//! | `load` | finds the manifest of a directory |

mod edit;
mod file;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod job;
mod keyspaces;
mod load;
mod shared;
mod state;
mod store;
mod value_file_record;

pub(crate) use edit::{Change, Edit, TableRecord};
pub(crate) use file::{
    CURRENT, CURRENT_NEW, FileManifest, LoadedManifest, manifest_file_number, read_manifest,
};
pub(crate) use job::{JobRecord, describe};
pub(crate) use keyspaces::KeyspaceState;
pub(crate) use load::{CHECKPOINT, load, remove_interrupted_creation};
pub(crate) use shared::load_shared;
pub(crate) use state::ManifestState;
pub(crate) use store::{ManifestStore, PutResult, Versioned};
pub(crate) use value_file_record::ValueFileRecord;

use std::path::Path;

use crate::base::error::{Error, ErrorKind, Result};

/// The manifest is rewritten as a snapshot once its edits are larger than this, and more than
/// [`REWRITE_RATIO`] times as large as the snapshot.
const REWRITE_BYTES: u64 = 256 << 10;
const REWRITE_RATIO: u64 = 4;

/// No counter of a database reaches this number. A larger number in a manifest is damage, and
/// incrementing it could overflow.
const COUNT_MAX: u64 = 1 << 62;

/// The state of a database and its durable store, changed together.
#[derive(Debug)]
pub(crate) struct Manifest {
    state: ManifestState,
    version: u64,
    epoch: u64,
    store: Box<dyn ManifestStore>,
    /// True if a failed edit may nevertheless be durable. A rewrite must then succeed before the
    /// next edit.
    is_doubtful: bool,
    /// The error of a failed sync or a lost lock, after which no edit can be promised to be durable.
    poisoned: Option<Error>,
}

/// The state read from disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecoveredState {
    pub(crate) state: ManifestState,
    pub(crate) version: u64,
    pub(crate) epoch: u64,
    /// The number of damaged frames whose copies were intact.
    pub(crate) healed: u64,
}

/// Applies the loaded edits in order.
pub(crate) fn replay(loaded: &LoadedManifest, dir: &Path) -> Result<RecoveredState> {
    let path = loaded.path.as_deref().unwrap_or(dir);
    let mut found = RecoveredState { healed: loaded.healed, ..RecoveredState::default() };
    for versioned in &loaded.edits {
        let corrupt = |detail: String| {
            let detail = format!("edit {}: {detail}", versioned.version);
            Error::corruption(path, None, "manifest", detail)
        };
        let edit = Edit::decode(&versioned.bytes).map_err(|error| error.of_file(path, corrupt))?;
        if edit.version.max(edit.epoch) > COUNT_MAX {
            return Err(corrupt("its version or epoch is out of range".into()));
        }
        if edit.epoch < found.epoch {
            return Err(corrupt("its epoch is lower than that of the edit before".into()));
        }
        found.state.apply(&edit.changes).map_err(corrupt)?;
        found.version = edit.version;
        found.epoch = edit.epoch;
    }
    Ok(found)
}

impl Manifest {
    /// Starts a new epoch from a recovered state: applies `changes` and writes a snapshot.
    pub(crate) fn begin(
        found: RecoveredState,
        changes: &[Change],
        store: Box<dyn ManifestStore>,
    ) -> Result<Self> {
        let mut manifest = Self {
            state: found.state,
            version: found.version,
            epoch: found.epoch + 1,
            store,
            is_doubtful: true,
            poisoned: None,
        };
        manifest.state.apply(changes).map_err(Error::internal)?;
        manifest.settle()?;
        Ok(manifest)
    }

    pub(crate) fn state(&self) -> &ManifestState {
        &self.state
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Returns the length of the manifest; `None` while its end is unknown after a failed edit.
    pub(crate) fn len_bytes(&self) -> Option<u64> {
        self.store.sizes().map(|(edits, snapshot)| edits + snapshot)
    }

    pub(crate) fn bytes_written(&self) -> u64 {
        self.store.bytes_written()
    }

    /// Allocates a table number. The allocation becomes durable with the edit that adds the table.
    pub(crate) fn take_table_number(&mut self) -> u64 {
        self.state.next_table += 1;
        self.state.next_table - 1
    }

    /// Allocates a run number.
    pub(crate) fn take_run_number(&mut self) -> u64 {
        self.state.next_run += 1;
        self.state.next_run - 1
    }

    /// Returns true if a failed edit may be durable. Files that the edit mentions must then not be
    /// removed.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.is_doubtful
    }

    /// Applies changes and makes them durable.
    ///
    /// # Errors
    /// The state is unchanged. After a crash the changes may nevertheless be applied, unless a later
    /// commit succeeds. A failed sync and a lost lock are final.
    pub(crate) fn commit(&mut self, changes: Vec<Change>) -> Result<()> {
        if let Some(error) = &self.poisoned {
            return Err(error.clone());
        }
        let mut next = self.state.clone();
        next.apply(&changes).map_err(Error::internal)?;
        if self.is_doubtful {
            self.settle()?;
        }
        let version = self.version + 1;
        let edit = Edit { version, epoch: self.epoch, changes };
        let versioned = Versioned { version, bytes: edit.encode() };
        match self.store.keep(&versioned) {
            Ok(PutResult::Durable) => {}
            Ok(PutResult::VersionExists) => {
                return Err(Error::internal("another writer changed the manifest"));
            }
            Err(error) => return Err(self.doubt(error)),
        }
        self.state = next;
        self.version = version;
        let is_long = |(edits, snapshot): (u64, u64)| {
            edits > REWRITE_BYTES.max(snapshot.saturating_mul(REWRITE_RATIO))
        };
        if self.store.sizes().is_some_and(is_long) {
            // The edit is durable. If the rewrite fails, the next commit retries it.
            let _ = self.settle();
        }
        Ok(())
    }

    /// Writes a snapshot of the state to a new file, which resolves a doubtful edit.
    fn settle(&mut self) -> Result<()> {
        let version = self.version + 1;
        let changes = self.state.snapshot();
        let edit = Edit { version, epoch: self.epoch, changes };
        let snapshot = Versioned { version, bytes: edit.encode() };
        match self.store.rewrite(&snapshot) {
            Ok(()) => {
                self.version = version;
                self.is_doubtful = false;
                Ok(())
            }
            Err(error) => Err(self.doubt(error)),
        }
    }

    fn doubt(&mut self, error: Error) -> Error {
        self.is_doubtful = true;
        if error.kind() == ErrorKind::Poisoned {
            self.poisoned = Some(error.clone());
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::codec::{put_slice, put_varint};

    /// Such a manifest was reported as corrupt, although `terrane repair` is the wrong remedy.
    #[test]
    fn a_manifest_of_a_newer_library_is_unsupported_and_not_damaged() {
        let mut bytes = Edit { version: 1, epoch: 1, changes: Vec::new() }.encode();
        put_varint(&mut bytes, 1001);
        put_slice(&mut bytes, b"from a later day");
        let edits = vec![Versioned { version: 1, bytes }];
        let loaded = LoadedManifest { edits, path: Some("db/MANIFEST-000001".into()), healed: 0 };
        let error = replay(&loaded, Path::new("db")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        let text = error.to_string();
        assert!(text.contains("MANIFEST-000001") && text.contains("1001"), "{text}");
    }
}
