//! Segments of the log that are value files of a tree, and in which it may have further values.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::Tree;
use crate::files::manifest::ValueFileRecord;

/// A segment of the log that is a value file of a tree as well.
#[derive(Debug, Clone)]
pub(crate) struct ValueSegment {
    /// The name of the file in the log.
    pub(crate) path: PathBuf,
    pub(crate) record: ValueFileRecord,
}

/// The segments that are not settled yet. Only one flush of a tree runs at a time, and replaces them.
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
    /// The segments of the log that are value files, and may get further values.
    pub(crate) fn value_segments(&self) -> &ValueSegments {
        &self.value_segments
    }
}
