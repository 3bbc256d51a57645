//! Flushes and merges in progress.

use crate::keys::Content;
use crate::machine::JobCost;
use crate::tree::PlannedCompaction;

/// A flush in progress.
#[derive(Debug, Clone)]
pub(super) struct RunningFlush {
    pub(super) content: Content,
    pub(super) work: JobCost,
    pub(super) seqs: (u64, u64),
    /// The merge that the flush carries out; `None` if the flush creates a run.
    pub(super) merge: Option<PlannedCompaction>,
    pub(super) done: f64,
}

/// A merge in progress.
#[derive(Debug)]
pub(super) struct RunningMerge {
    pub(super) begun: PlannedCompaction,
    /// The completed fraction.
    pub(super) done: f64,
    pub(super) share: f64,
    pub(super) id: u64,
    pub(super) began: f64,
    /// The source level.
    pub(super) level: usize,
    pub(super) refilled: f64,
}

impl RunningMerge {
    /// Returns the input left, in bytes.
    pub(super) fn remaining_bytes(&self) -> u64 {
        ((1.0 - self.done) * self.begun.input_bytes).ceil() as u64
    }
}
