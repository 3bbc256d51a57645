//! Point lookups and scans.
//!
//! | module | one line |
//! |---|---|
//! | `pool` | threads that search several runs at the same time for one reader |
//! | `lookup`, `multi_get` | point lookups, of one key and of many |
//! | `parallel` | lookups and first positions of scans with the help of the pool |
//! | `scan` | cursors over everything that a reader sees |

mod lookup;
mod multi_get;
mod parallel;
mod pool;
mod scan;

use std::sync::Arc;

use crate::engine::context::Context;
use crate::engine::pipeline::Pipeline;
use crate::error::{Error, Result};
use pool::ReadPool;

pub(crate) use scan::ReadView;

/// Reads trees.
#[derive(Debug)]
pub(crate) struct Reader {
    context: Arc<Context>,
    pipeline: Arc<Pipeline>,
    /// Threads that help readers; `None` if `read_threads` is 0.
    pool: Option<Arc<ReadPool>>,
}

impl Reader {
    /// Creates a reader, and starts the threads of its pool.
    pub(crate) fn new(context: &Arc<Context>, pipeline: &Arc<Pipeline>) -> Result<Self> {
        let pool = match context.settings.read_threads {
            0 => None,
            count => Some(
                ReadPool::start(count)
                    .map_err(|error| Error::io("start a thread for", &context.dir, error))?,
            ),
        };
        Ok(Self { context: Arc::clone(context), pipeline: Arc::clone(pipeline), pool })
    }

    /// Ends the threads of the pool. Reads continue without them.
    pub(crate) fn stop(&self) {
        self.context.tables.io_threads.stop();
        if let Some(pool) = &self.pool {
            pool.stop();
        }
    }
}
