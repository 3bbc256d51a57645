//! Where the edits of a manifest are kept.
//!
//! [`ManifestStore`] asks for little, so that it can also be met by an object store: the edit of a
//! version is kept *if there is none of that version yet*. Two writers that both believe to own a
//! database cannot both succeed.

use std::fmt;

use crate::error::Result;

/// An edit of some version, or a snapshot of the state at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Versioned {
    pub(crate) version: u64,
    pub(crate) bytes: Vec<u8>,
}

/// What became of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It is durable.
    Yes,
    /// Another writer has kept an edit of this version.
    VersionExists,
}

/// Keeps the edits of one database.
pub(crate) trait ManifestStore: Send + fmt::Debug {
    /// Keeps an edit as version `edit.version`, if there is none of it.
    ///
    /// # Errors
    /// It may or may not be kept. Before anything that it mentions is undone,
    /// [`ManifestStore::rewrite`] must succeed.
    fn keep(&mut self, edit: &Versioned) -> Result<Kept>;

    /// Replaces everything up to and including `snapshot.version` by the snapshot.
    ///
    /// # Errors
    /// As for [`ManifestStore::keep`].
    fn rewrite(&mut self, snapshot: &Versioned) -> Result<()>;

    /// Bytes kept since the last snapshot, and of that snapshot: what a rewrite would save.
    fn sizes(&self) -> (u64, u64);

    /// Bytes written since the store was opened.
    fn bytes_written(&self) -> u64;
}
