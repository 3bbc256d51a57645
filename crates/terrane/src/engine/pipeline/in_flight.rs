//! The keys of writes that have sequence numbers but may not be in memtables yet.
//!
//! A write that took the writer lock releases it before it inserts its operations and waits for a
//! sync. A transaction that commits meanwhile, with the lock, may not find these operations
//! in memtables. So while transactions are open, such writes note their keys here. A commit whose
//! reads do not overlap these keys need not wait for the writes, so the commits of many threads
//! share a sync.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use super::{Pipeline, PipelineState};
use crate::base::error::Result;
use crate::base::types::{KeyspaceId, SeqNo};
use crate::files::batch::{Op, Ops};

/// The keys that a write changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WrittenKeys {
    /// One key.
    One(KeyspaceId, Box<[u8]>),
    /// The keys from the first to the exclusive second, or all from the first on.
    Range(KeyspaceId, Box<[u8]>, Option<Box<[u8]>>),
}

impl WrittenKeys {
    /// Returns the keys of one operation.
    pub(crate) fn of(keyspace: KeyspaceId, op: &Op<'_>) -> Self {
        match *op {
            Op::DeleteRange { start, end } => {
                Self::Range(keyspace, start.into(), end.map(Into::into))
            }
            point => Self::One(keyspace, point.point_key().unwrap_or_default().into()),
        }
    }

    /// Returns the keys of encoded operations.
    pub(crate) fn of_encoded(encoded: &[u8]) -> Vec<Self> {
        Ops::new(encoded).flatten().map(|(keyspace, op)| Self::of(keyspace, &op)).collect()
    }
}

/// The writes that took the writer lock and may not be visible yet.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    /// The last sequence number of each write, and its keys, in the order of the writes.
    writes: VecDeque<(SeqNo, Vec<WrittenKeys>)>,
    /// The last sequence number of the most recent write whose keys were not noted.
    unnoted: SeqNo,
}

/// The writes before a commit that are not visible yet.
pub(crate) enum Earlier {
    /// Their keys are known and do not concern the commit.
    Apart,
    /// The write with this last sequence number concerns the commit.
    Overlap(SeqNo),
    /// The keys of the write with this last sequence number are unknown.
    Unknown(SeqNo),
}

impl Pipeline {
    /// Counts a transaction, before it registers its sequence number.
    pub(crate) fn begin_transaction(&self) {
        // Relaxed: a commit waits for any writer that did not see the transaction and therefore did
        // not note its keys.
        self.transactions.fetch_add(1, Ordering::Relaxed);
    }

    /// Stops counting a transaction that has ended.
    pub(crate) fn end_transaction(&self) {
        self.transactions.fetch_sub(1, Ordering::Relaxed);
    }

    fn has_transactions(&self) -> bool {
        self.transactions.load(Ordering::Relaxed) > 0
    }

    /// Notes the last write that entered, with the writer lock held. Its keys are noted if a
    /// transaction is open.
    pub(crate) fn note_in_flight(
        &self,
        state: &mut PipelineState,
        keys: impl FnOnce() -> Result<Vec<WrittenKeys>>,
    ) {
        let last = state.next_seq - 1;
        match self.has_transactions().then(keys) {
            Some(Ok(keys)) => {
                self.forget_visible(state);
                state.in_flight.writes.push_back((last, keys));
            }
            _ => state.in_flight.unnoted = last,
        }
    }

    fn forget_visible(&self, state: &mut PipelineState) {
        let visible = self.visible();
        let is_visible = |(last, _): &&(SeqNo, _)| *last <= visible;
        let count = state.in_flight.writes.iter().take_while(is_visible).count();
        state.in_flight.writes.drain(..count);
    }

    /// Compares a commit with the writes that are not visible yet.
    pub(crate) fn earlier_writes(
        &self,
        state: &mut PipelineState,
        mut concerns: impl FnMut(&WrittenKeys) -> bool,
    ) -> Earlier {
        self.forget_visible(state);
        let InFlight { writes, unnoted } = &state.in_flight;
        if *unnoted > self.visible() {
            return Earlier::Unknown(*unnoted);
        }
        // The last overlapping write, so that a transaction that runs again after it sees all of
        // them.
        let overlap = writes.iter().rev().find(|(_, keys)| keys.iter().any(&mut concerns));
        overlap.map_or(Earlier::Apart, |(last, _)| Earlier::Overlap(*last))
    }
}
