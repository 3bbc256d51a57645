//! The snapshots and the filter of a compaction.

use std::sync::Arc;

use crate::base::compaction_filter::KeyspaceFilter;
use crate::base::types::SeqNo;

/// The snapshots and the filter that decide which entries the merges of a compaction keep.
#[derive(Debug)]
pub(super) struct MergeScope {
    /// The sequence numbers of snapshots, in ascending order.
    pub(super) snapshots: Vec<SeqNo>,
    /// The filter, if the keyspace has one that is active. The job is registered as filtering.
    pub(super) filter: Option<Arc<KeyspaceFilter>>,
}
