//! Makes a checkpoint complete: its tables and its log together contain every write up to the last
//! sequence number in the copy.
//!
//! A follower begins with a checkpoint and continues after its last sequence number, so it would
//! lose any earlier write that the copy lacks. Two kinds of write are not in the log:
//!
//! 1. Writes with [`Durability::None`]. While a [`CheckpointLog`] exists, they are logged as well.
//!    Earlier ones are visible once it is created, so a flush that begins later includes them.
//! 2. Ingests. An ingest adds its tables some time after it has taken its numbers. While the gate
//!    ([`IngestGate`]) is closed, no ingest is between these two steps.

use super::ingest_gate::IngestGate;
use super::{Pipeline, PipelineState, broken};
use crate::base::durability::Durability;
use crate::base::error::Result;

impl PipelineState {
    /// Returns whether a write with this durability is logged. Changes only with the writer lock
    /// held.
    pub(crate) fn is_logged(&self, durability: Durability) -> bool {
        durability != Durability::None || self.checkpoints > 0
    }
}

/// Makes every write logged, whatever its durability, until it is dropped.
pub(crate) struct CheckpointLog<'a>(&'a Pipeline);

impl<'a> CheckpointLog<'a> {
    /// Returns once all earlier writes are visible, and therefore in memtables.
    ///
    /// # Errors
    /// An earlier write panicked, or its sync failed.
    pub(crate) fn begin(pipeline: &'a Pipeline) -> Result<Self> {
        let mut state = pipeline.lock();
        state.checkpoints += 1;
        let last = state.next_seq - 1;
        drop(state);
        let complete = Self(pipeline);
        if pipeline.wait_visible(last) { Ok(complete) } else { Err(broken(&pipeline.context)) }
    }
}

impl Drop for CheckpointLog<'_> {
    fn drop(&mut self) {
        self.0.lock().checkpoints -= 1;
    }
}

impl Pipeline {
    /// The gate that ingests pass.
    pub(crate) fn ingests(&self) -> &IngestGate {
        &self.ingests
    }
}
