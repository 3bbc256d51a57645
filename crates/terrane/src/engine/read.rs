//! Point lookups and scans.
//!
//! | module | one line |
//! |---|---|
//! | `lookup`, `multi_get` | point lookups, of one key and of many |
//! | `overlapped` | lookups that read several runs at the same time |
//! | `scan` | cursors over everything that a reader sees |
//! | `collect` | scans that collect their results first |
//! | `estimate` | how many keys and bytes a range has, about |
//! | `changes` | whether a read would return something else now |

mod changes;
mod collect;
mod estimate;
mod lookup;
mod multi_get;
mod overlapped;
mod scan;

use std::sync::Arc;

use crate::engine::context::Context;
use crate::engine::pipeline::Pipeline;

pub(crate) use collect::{Collected, NewerVersions};
pub(crate) use estimate::Estimate;
pub(crate) use scan::ReadView;

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

    /// Ends the threads that read for readers. Reads continue without them.
    pub(crate) fn stop(&self) {
        self.context.tables.io_threads.stop();
    }
}
