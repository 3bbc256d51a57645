//! What keeps a database open: every handle, snapshot and iterator holds it.

use std::sync::Arc;

use crate::engine::{Engine, Opened};
use crate::types::SeqNo;

/// An open database, closed when the last holder lets go of it.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) engine: Arc<Engine>,
    pub(crate) opened: Opened,
}

impl Drop for Handle {
    /// Ends the threads and lets go of the directory. What is in memtables stays in the log.
    fn drop(&mut self) {
        self.engine.abandon_database();
    }
}

/// A sequence number that is held for readers.
#[derive(Debug)]
pub(crate) struct HeldSnapshot {
    engine: Arc<Engine>,
    seq: SeqNo,
}

impl HeldSnapshot {
    pub(crate) fn new(engine: &Arc<Engine>) -> Arc<Self> {
        let seq = engine.hold_snapshot();
        Arc::new(Self { engine: Arc::clone(engine), seq })
    }

    pub(crate) fn seq(&self) -> SeqNo {
        self.seq
    }
}

impl Drop for HeldSnapshot {
    fn drop(&mut self) {
        self.engine.release_snapshot(self.seq);
    }
}
