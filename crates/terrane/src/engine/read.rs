//! Point lookups and scans.
//!
//! | module | one line |
//! |---|---|
//! | `lookup`, `multi_get` | point lookups, of one key and of many |
//! | `combine` | lookups of keys with operands |
//! | `overlapped` | lookups that read several runs at the same time |
//! | `scan` | cursors over everything that a reader sees |
//! | `collect` | scans that collect their results first |
//! | `estimate` | how many keys and bytes a range has, about |
//! | `changes` | whether a read would return something else now |

mod changes;
mod collect;
mod combine;
mod estimate;
mod lookup;
mod multi_get;
mod overlapped;
mod scan;

use std::sync::Arc;

use crate::engine::context::Context;
use crate::engine::pipeline::Pipeline;
use crate::expiry::ReadTime;
use crate::types::SeqNo;

pub(crate) use collect::{Collected, NewerVersions};
pub(crate) use estimate::Estimate;
pub(crate) use scan::ReadView;

/// The moment as of which a snapshot reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AsOf {
    /// The snapshot sees the versions up to this sequence number.
    pub(crate) seq: SeqNo,
    /// It sees the values that end after this time, in microseconds since the Unix epoch.
    pub(crate) micros: u64,
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

    /// Returns the time as of which a read sees values that end.
    #[inline]
    fn time(&self, at: Option<AsOf>) -> ReadTime<'_> {
        ReadTime::new(self.pipeline.times(), at.map(|at| at.micros))
    }

    /// Ends the threads that read for readers. Reads continue without them.
    pub(crate) fn stop(&self) {
        self.context.tables.io_threads.stop();
    }
}
