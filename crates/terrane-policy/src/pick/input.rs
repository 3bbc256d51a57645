//! What a decision depends on.

use super::cursors::Cursors;
use crate::access::Accesses;
use crate::compaction::{Compaction, Reason};
use crate::design::Design;
use crate::shape::{SeqNo, TreeShape};

/// All that a decision depends on.
#[derive(Debug, Clone, Copy)]
pub struct PickInput<'a> {
    /// The tree.
    pub shape: &'a TreeShape,
    /// The design that the tree should follow.
    pub design: &'a Design,
    /// Compactions that are being carried out, and flushes that merge.
    pub in_progress: &'a [Compaction],
    /// How far round-robin movement has come in each level.
    pub cursors: &'a Cursors,
    /// How tables were read.
    pub accesses: &'a Accesses,
    /// The time, in microseconds since the Unix epoch.
    pub now_micros: u64,
    /// The oldest sequence number that a snapshot holds: newer tombstones must stay.
    pub oldest_snapshot: Option<SeqNo>,
    /// The time in which deletes have to be persistent whatever the design says, in microseconds.
    pub delete_persistence_micros: Option<u64>,
}

impl<'a> PickInput<'a> {
    /// A tree and its design, with nothing in progress, at time zero.
    pub fn new(shape: &'a TreeShape, design: &'a Design) -> Self {
        static START: Cursors = Cursors::START;
        static UNREAD: Accesses = Accesses::NONE;
        Self {
            shape,
            design,
            in_progress: &[],
            cursors: &START,
            accesses: &UNREAD,
            now_micros: 0,
            oldest_snapshot: None,
            delete_persistence_micros: None,
        }
    }

    /// Whether something is going on that may leave fewer runs: a flush does not.
    pub(super) fn is_compacting(&self) -> bool {
        self.in_progress.iter().any(|job| job.reason != Reason::Flush)
    }

    /// The deepest level in use.
    pub(super) fn last_level(&self) -> usize {
        self.shape.last_level()
    }
}

/// Whether nothing in progress touches what the compaction would.
pub(crate) fn is_free(input: &PickInput<'_>, compaction: &Compaction) -> bool {
    !input.in_progress.iter().any(|other| other.conflicts_with(compaction))
}
