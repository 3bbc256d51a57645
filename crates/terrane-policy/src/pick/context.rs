//! The inputs of a decision.

use super::cursors::Cursors;
use crate::access::TableAccesses;
use crate::compaction::{Compaction, Reason};
use crate::design::Design;
use crate::shape::{SeqNo, TreeShape};

/// Everything that a decision depends on.
#[derive(Debug, Clone, Copy)]
pub struct PickContext<'a> {
    /// The tree.
    pub shape: &'a TreeShape,
    /// The design that the tree should follow.
    pub design: &'a Design,
    /// Running compactions and merging flushes.
    pub in_progress: &'a [Compaction],
    /// How far round-robin movement has progressed in each level.
    pub cursors: &'a Cursors,
    /// How often and when tables were read.
    pub accesses: &'a TableAccesses,
    /// The time, in microseconds since the Unix epoch.
    pub now_micros: u64,
    /// The oldest sequence number that a snapshot pins; newer tombstones must be kept.
    pub oldest_snapshot: Option<SeqNo>,
    /// When the oldest snapshot was taken, in microseconds since the Unix epoch: entries that expire
    /// later must be kept for it.
    pub oldest_snapshot_micros: Option<u64>,
    /// The time within which deletes must become persistent, whatever the design, in microseconds.
    pub delete_persistence_micros: Option<u64>,
    /// The most bytes that a join of small tables takes, if less than the size of a table: a join of more
    /// left as many tables as before.
    pub join_bytes_max: Option<u64>,
}

impl<'a> PickContext<'a> {
    /// Returns the context of a tree and its design, without running jobs, at time zero.
    pub fn new(shape: &'a TreeShape, design: &'a Design) -> Self {
        static START: Cursors = Cursors::START;
        static UNREAD: TableAccesses = TableAccesses::NONE;
        Self {
            shape,
            design,
            in_progress: &[],
            cursors: &START,
            accesses: &UNREAD,
            now_micros: 0,
            oldest_snapshot: None,
            oldest_snapshot_micros: None,
            delete_persistence_micros: None,
            join_bytes_max: None,
        }
    }

    /// Returns true if a running job may reduce the number of runs; flushes do not.
    pub(super) fn is_compacting(&self) -> bool {
        self.in_progress.iter().any(|job| job.reason != Reason::Flush)
    }

    /// Returns the time within which tombstones must reach the entries that they delete. If values
    /// are stored separately, the rest of the persistence time is for the collection of their
    /// files.
    pub(super) fn tombstone_micros(&self) -> Option<u64> {
        let has_files =
            !self.shape.value_files.is_empty() || self.design.values.separation().is_some();
        let apart = |micros: u64| if has_files { micros - micros / 4 } else { micros };
        self.delete_persistence_micros.map(apart)
    }

    /// Returns the deepest level in use.
    pub(super) fn last_level(&self) -> usize {
        self.shape.last_level()
    }
}

/// Returns true if the compaction conflicts with no running job.
pub(crate) fn is_free(input: &PickContext<'_>, compaction: &Compaction) -> bool {
    !input.in_progress.iter().any(|other| other.conflicts_with(compaction))
}
