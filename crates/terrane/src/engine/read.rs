//! Point lookups and scans.
//!
//! | module | one line |
//! |---|---|
//! | `lookup`, `multi_get` | point lookups, of one key and of many |
//! | `combine` | lookups of keys with operands |
//! | `overlapped` | lookups that read several runs concurrently |
//! | `resident` | lookups that read no file |
//! | `scan` | cursors over everything that a reader sees |
//! | `collect` | scans that collect their results first |
//! | `explain` | lookups that note every step |
//! | `estimate` | about how many keys and bytes a range has |
//! | `changes` | whether a read would return a different result now |

mod changes;
mod collect;
mod combine;
mod estimate;
mod explain;
mod lookup;
mod multi_get;
mod overlapped;
#[cfg(feature = "async")]
mod resident;
mod scan;

use std::sync::Arc;

use arc_swap::Guard;

use crate::base::expiry::ReadTime;
use crate::base::types::SeqNo;
use crate::engine::context::Context;
use crate::engine::filtering::KeptStates;
use crate::engine::pipeline::Pipeline;
use crate::engine::tree::{Tree, TreeState};

pub(crate) use collect::{Collected, NewerVersions};
pub(crate) use scan::ReadView;

/// The moment as of which a snapshot reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AsOf<'a> {
    /// The snapshot sees the versions up to this sequence number.
    pub(crate) seq: SeqNo,
    /// It sees the values that expire after this time, in microseconds since the Unix epoch.
    pub(crate) micros: u64,
    /// The states that the snapshot keeps, for trees whose current state may lack versions that it
    /// sees.
    pub(crate) kept: &'a KeptStates,
}

/// Reads trees.
#[derive(Debug)]
pub(crate) struct Reader {
    context: Arc<Context>,
    pipeline: Arc<Pipeline>,
}

impl Reader {
    /// Creates a reader.
    pub(crate) fn new(context: &Arc<Context>, pipeline: &Arc<Pipeline>) -> Self {
        Self { context: Arc::clone(context), pipeline: Arc::clone(pipeline) }
    }

    /// Returns the time by which a read decides which values have expired.
    #[inline]
    fn time(&self, at: Option<AsOf<'_>>) -> ReadTime<'_> {
        ReadTime::new(self.pipeline.snapshot_clock(), at.map(|at| at.micros))
    }

    /// Returns the state of a tree from which a read as of `at`, or now, reads.
    #[inline]
    fn state(tree: &Tree, at: Option<AsOf<'_>>) -> Guard<Arc<TreeState>> {
        match at.and_then(|at| at.kept.of(tree)) {
            Some(kept) => Guard::from_inner(Arc::clone(kept)),
            None => tree.state(),
        }
    }

    /// Stops the I/O threads. Reads continue without them.
    pub(crate) fn stop(&self) {
        self.context.tables.io_threads.stop();
    }
}
