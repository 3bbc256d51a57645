//! Flushes and merges in progress.

use terrane_policy::Compaction;
use terrane_policy::admission::mean_nanos_per_byte;

use crate::keys::Content;
use crate::machine::JobCost;
use crate::tree::PlannedCompaction;

/// Returns the lowest-numbered input level of a compaction.
pub(super) fn source(compaction: &Compaction) -> usize {
    compaction.inputs.iter().map(|input| input.level).min().unwrap_or(compaction.output.level)
}

/// A flush in progress.
#[derive(Debug, Clone)]
pub(super) struct RunningFlush {
    pub(super) content: Content,
    pub(super) work: JobCost,
    pub(super) seqs: (u64, u64),
    /// The merge that the flush carries out; `None` if the flush creates a run.
    pub(super) merge: Option<PlannedCompaction>,
    pub(super) done: f64,
    pub(super) began: f64,
}

/// A merge in progress.
#[derive(Debug)]
pub(super) struct RunningMerge {
    pub(super) begun: PlannedCompaction,
    /// The completed fraction.
    pub(super) done: f64,
    pub(super) share: f64,
    /// The share that the scheduler gave it last, which a trace shows.
    pub(super) shown: f64,
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

/// The mean time per byte of the jobs of a tree that have ended, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct JobTimes {
    pub(super) flush: f64,
    /// By the source level.
    merges: Vec<f64>,
}

impl JobTimes {
    /// Notes that a flush of `bytes` took `seconds`.
    pub(super) fn note_flush(&mut self, seconds: f64, bytes: u64) {
        self.flush = mean_nanos_per_byte(self.flush, seconds * 1e9, bytes);
    }

    /// Notes that a merge of `bytes` out of a level took `seconds`.
    pub(super) fn note_merge(&mut self, level: usize, seconds: f64, bytes: f64) {
        if self.merges.len() <= level {
            self.merges.resize(level + 1, 0.0);
        }
        self.merges[level] =
            mean_nanos_per_byte(self.merges[level], seconds * 1e9, bytes.max(1.0) as u64);
    }

    /// Returns the time of merges out of a level; 0 if none has ended.
    pub(super) fn of_merge(&self, level: usize) -> f64 {
        self.merges.get(level).copied().unwrap_or(0.0)
    }
}
