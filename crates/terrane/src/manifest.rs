//! The manifest: which tables make up which tree, durably.
//!
//! A manifest is a snapshot of the state and the edits since. Every change of any tree is one
//! edit, kept before anyone sees its effect; what a crash leaves is the state before or after it.
//!
//! | module | one line |
//! |---|---|
//! | `edit` | changes and their encoding |
//! | `state` | what the edits add up to |
//! | `store` | the little that is asked of a home for edits |
//! | `file` | that home in files |

mod edit;
mod file;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod job;
mod state;
mod store;

pub(crate) use edit::{Change, Edit, TableRecord};
pub(crate) use file::{FileManifest, Loaded, load, manifest_file_number, read_manifest};
pub(crate) use job::{JobRecord, describe};
pub(crate) use state::{KeyspaceState, ManifestState};
pub(crate) use store::{Kept, ManifestStore, Versioned};

use std::path::Path;

use crate::error::{Error, Result};

/// A rewrite is due once the edits take this much, and more than a few times the snapshot.
const REWRITE_BYTES: u64 = 256 << 10;
const REWRITE_RATIO: u64 = 4;

/// No database counts as far as this. Numbers beyond it are damage, and counting on from them could
/// overflow.
const COUNT_MAX: u64 = 1 << 62;

/// The state of a database and its durable home, changed together.
#[derive(Debug)]
pub(crate) struct Manifest {
    state: ManifestState,
    version: u64,
    epoch: u64,
    store: Box<dyn ManifestStore>,
    /// An edit may or may not have been kept: a rewrite must settle that first.
    is_doubtful: bool,
    /// Since a sync failed, nothing is promised any more.
    poisoned: Option<Error>,
}

/// The state that was found on disk.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) state: ManifestState,
    pub(crate) version: u64,
    pub(crate) epoch: u64,
    /// Broken frames whose copies were whole.
    pub(crate) healed: u64,
}

/// Adds up what was loaded.
pub(crate) fn replay(loaded: &Loaded, dir: &Path) -> Result<Found> {
    let path = loaded.path.as_deref().unwrap_or(dir);
    let mut found = Found { healed: loaded.healed, ..Found::default() };
    for versioned in &loaded.edits {
        let corrupt = |detail: String| {
            let detail = format!("edit {}: {detail}", versioned.version);
            Error::corruption(path, None, "manifest", detail)
        };
        let edit = Edit::decode(&versioned.bytes).map_err(|error| error.of_file(path, corrupt))?;
        if edit.version.max(edit.epoch) > COUNT_MAX {
            return Err(corrupt("a number that counts up is out of range".into()));
        }
        if edit.epoch < found.epoch {
            return Err(corrupt("it is of an earlier writer than the one before".into()));
        }
        found.state.apply(&edit.changes).map_err(corrupt)?;
        found.version = edit.version;
        found.epoch = edit.epoch;
    }
    Ok(found)
}

impl Manifest {
    /// Takes over a state as a new writer, and keeps a snapshot of it with `changes`.
    pub(crate) fn begin(
        found: Found,
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

    pub(crate) fn bytes_written(&self) -> u64 {
        self.store.bytes_written()
    }

    /// Gives out a table number. It is not kept; the next edit that mentions the table does that.
    pub(crate) fn take_table_number(&mut self) -> u64 {
        self.state.next_table += 1;
        self.state.next_table - 1
    }

    /// Gives out a run number.
    pub(crate) fn take_run_number(&mut self) -> u64 {
        self.state.next_run += 1;
        self.state.next_run - 1
    }

    /// Whether an earlier edit is in doubt, so that files that it mentions must not be removed.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.is_doubtful
    }

    /// Makes changes, durably.
    ///
    /// # Errors
    /// The changes are not made; whether they will be after a crash is in doubt until the next
    /// commit succeeds. A failed sync is final.
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
            Ok(Kept::Yes) => {}
            Ok(Kept::VersionExists) => {
                return Err(Error::internal("another writer has changed the manifest"));
            }
            Err(error) => return Err(self.doubt(error)),
        }
        self.state = next;
        self.version = version;
        let (edits, snapshot) = self.store.sizes();
        if edits > REWRITE_BYTES.max(snapshot.saturating_mul(REWRITE_RATIO)) {
            // The edit is kept; that the file could not be made shorter only matters next time.
            let _ = self.settle();
        }
        Ok(())
    }

    /// Keeps a snapshot of the state in a file of its own.
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
        if matches!(error, Error::Poisoned(_)) {
            self.poisoned = Some(error.clone());
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{put_slice, put_varint};
    use crate::error::ErrorKind;

    /// It was called damage, for which `terrane repair` would have been the wrong remedy.
    #[test]
    fn a_manifest_of_a_newer_library_is_unsupported_and_not_damaged() {
        let mut bytes = Edit { version: 1, epoch: 1, changes: Vec::new() }.encode();
        put_varint(&mut bytes, 1001);
        put_slice(&mut bytes, b"from a later day");
        let edits = vec![Versioned { version: 1, bytes }];
        let loaded = Loaded { edits, path: Some("db/MANIFEST-000001".into()), healed: 0 };
        let error = replay(&loaded, Path::new("db")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        let text = error.to_string();
        assert!(text.contains("MANIFEST-000001") && text.contains("1001"), "{text}");
    }
}
