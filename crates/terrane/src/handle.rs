//! What keeps a database open: every handle, snapshot and iterator holds it.

use std::sync::Arc;

use crate::engine::{Engine, Opened};
use crate::restart_scan::RestartScans;

/// An open database, closed when the last holder lets go of it.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) engine: Arc<Engine>,
    pub(crate) opened: Opened,
    pub(crate) scans: RestartScans,
}

impl Drop for Handle {
    /// Ends the threads and lets go of the directory. What is in memtables stays in the log.
    fn drop(&mut self) {
        self.engine.abandon_database();
    }
}
