//! Releases a snapshot.

use super::Pipeline;
use crate::base::types::SeqNo;

/// A snapshot that is released on drop.
#[derive(Debug)]
pub(crate) struct SnapshotGuard<'a> {
    pipeline: &'a Pipeline,
    pub(crate) seq: SeqNo,
}

impl Drop for SnapshotGuard<'_> {
    fn drop(&mut self) {
        self.pipeline.release_snapshot(self.seq);
    }
}

impl Pipeline {
    /// Holds the newest visible sequence number until the guard is dropped.
    pub(crate) fn snapshot(&self) -> SnapshotGuard<'_> {
        SnapshotGuard { pipeline: self, seq: self.hold_snapshot() }
    }
}
