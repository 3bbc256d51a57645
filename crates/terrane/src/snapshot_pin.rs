//! A pinned moment, which keeps the versions that a snapshot or scan reads.

use std::sync::Arc;

use crate::engine::{AsOf, Engine};
use crate::types::SeqNo;

/// A sequence number and a time, registered with the engine until this is dropped.
#[derive(Debug)]
pub(crate) struct SnapshotPin {
    engine: Arc<Engine>,
    as_of: AsOf,
}

impl SnapshotPin {
    pub(crate) fn new(engine: &Arc<Engine>) -> Arc<Self> {
        let seq = engine.hold_snapshot();
        Self::of_held(engine, seq)
    }

    /// Pins a sequence number that is pinned or kept already; `None` if it is not.
    pub(crate) fn again(engine: &Arc<Engine>, seq: SeqNo) -> Option<Arc<Self>> {
        engine.hold_again(seq).then(|| Self::of_held(engine, seq))
    }

    fn of_held(engine: &Arc<Engine>, seq: SeqNo) -> Arc<Self> {
        let micros = engine.hold_time();
        Arc::new(Self { engine: Arc::clone(engine), as_of: AsOf { seq, micros } })
    }

    pub(crate) fn seq(&self) -> SeqNo {
        self.as_of.seq
    }

    pub(crate) fn as_of(&self) -> AsOf {
        self.as_of
    }
}

impl Drop for SnapshotPin {
    fn drop(&mut self) {
        // The time first, because the release of the number wakes the threads that wait for both.
        self.engine.release_time(self.as_of.micros);
        self.engine.release_snapshot(self.as_of.seq);
    }
}
