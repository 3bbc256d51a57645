//! A pinned sequence number, which keeps the versions that a snapshot or scan reads.

use std::sync::Arc;

use crate::engine::Engine;
use crate::types::SeqNo;

/// A sequence number registered with the engine until this is dropped.
#[derive(Debug)]
pub(crate) struct SnapshotPin {
    engine: Arc<Engine>,
    seq: SeqNo,
}

impl SnapshotPin {
    pub(crate) fn new(engine: &Arc<Engine>) -> Arc<Self> {
        let seq = engine.hold_snapshot();
        Arc::new(Self { engine: Arc::clone(engine), seq })
    }

    /// Pins a sequence number that is pinned or kept already; `None` if it is not.
    pub(crate) fn again(engine: &Arc<Engine>, seq: SeqNo) -> Option<Arc<Self>> {
        engine.hold_again(seq).then(|| Arc::new(Self { engine: Arc::clone(engine), seq }))
    }

    pub(crate) fn seq(&self) -> SeqNo {
        self.seq
    }
}

impl Drop for SnapshotPin {
    fn drop(&mut self) {
        self.engine.release_snapshot(self.seq);
    }
}
