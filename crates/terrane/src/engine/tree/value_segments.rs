//! Log segments that are value files of a tree and may receive more of its values.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::Tree;
use crate::files::manifest::ValueFileRecord;

/// A log segment that is also a value file of a tree.
#[derive(Debug, Clone)]
pub(crate) struct ValueSegment {
    /// The segment's path as a log file.
    pub(crate) path: PathBuf,
    pub(crate) record: ValueFileRecord,
}

/// The segments that are not settled yet. They are replaced by flushes, of which a tree runs only
/// one at a time.
#[derive(Debug, Default)]
pub(crate) struct ValueSegments(Mutex<Vec<ValueSegment>>);

impl ValueSegments {
    pub(crate) fn list(&self) -> Vec<ValueSegment> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn replace(&self, segments: Vec<ValueSegment>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = segments;
    }
}

impl Tree {
    /// The log segments that are value files and may receive more values.
    pub(crate) fn value_segments(&self) -> &ValueSegments {
        &self.value_segments
    }
}
