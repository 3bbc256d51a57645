//! The interface to durable storage of manifest edits.
//!
//! [`ManifestStore`] needs only put-if-absent, which object stores provide as well: an edit is
//! stored *unless its version exists*. If two writers both believe that they own a database, only
//! one succeeds. Files alone cannot do that between processes, so the implementation in files also
//! checks the lock of the directory before it acknowledges an edit.

use std::fmt;

use crate::base::error::Result;

/// An encoded edit or snapshot with its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Versioned {
    pub(crate) version: u64,
    pub(crate) bytes: Vec<u8>,
}

/// The result of storing an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PutResult {
    /// The edit is durable.
    Durable,
    /// Another writer stored an edit of this version.
    VersionExists,
}

/// Stores the edits of one database.
pub(crate) trait ManifestStore: Send + fmt::Debug {
    /// Stores an edit unless its version exists.
    ///
    /// # Errors
    /// The edit may or may not be durable. [`ManifestStore::rewrite`] must succeed before the caller
    /// removes a file that the edit mentions.
    fn keep(&mut self, edit: &Versioned) -> Result<PutResult>;

    /// Replaces everything up to and including `snapshot.version` by the snapshot.
    ///
    /// # Errors
    /// As for [`ManifestStore::keep`].
    fn rewrite(&mut self, snapshot: &Versioned) -> Result<()>;

    /// Returns the bytes of the edits after the last snapshot, and the bytes of that snapshot; `None` after
    /// an edit that may not be durable, and before the first snapshot.
    fn sizes(&self) -> Option<(u64, u64)>;

    /// Returns the bytes written since the store was opened.
    fn bytes_written(&self) -> u64;
}
