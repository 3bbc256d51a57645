//! Reports how far a merge has progressed.

use std::time::{Duration, Instant};

use terrane_policy::ScheduledMerge;

use super::Gate;
use crate::engine::tree::JobId;

/// When a merge began, and what it has written since.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    at: Instant,
    total_bytes: u64,
    pub(super) written_bytes: u64,
}

impl Begun {
    pub(super) fn now(merge: &ScheduledMerge) -> Self {
        Self { at: Instant::now(), total_bytes: merge.remaining_bytes, written_bytes: 0 }
    }
}

/// The progress of a merge.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine::jobs) struct MergeProgress {
    pub(in crate::engine::jobs) total_bytes: u64,
    pub(in crate::engine::jobs) remaining_bytes: u64,
    pub(in crate::engine::jobs) written_bytes: u64,
    pub(in crate::engine::jobs) share: f64,
    pub(in crate::engine::jobs) running: Duration,
}

impl Gate {
    /// Returns the progress of a merge; `None` if it has not entered the gate, or has left it.
    pub(in crate::engine::jobs) fn progress(&self, JobId(id): JobId) -> Option<MergeProgress> {
        let state = self.lock();
        let entry = state.merges.iter().find(|entry| entry.merge.id == id)?;
        Some(MergeProgress {
            total_bytes: entry.begun.total_bytes,
            remaining_bytes: entry.merge.remaining_bytes,
            written_bytes: entry.begun.written_bytes,
            share: entry.share,
            running: entry.begun.at.elapsed(),
        })
    }
}
