//! A pinned moment, which keeps the versions that a snapshot or scan reads.

use std::sync::Arc;

use crate::base::fork;
use crate::base::types::SeqNo;
use crate::engine::{AsOf, Engine, KeptStates};

/// A sequence number and a time, registered with the engine until this is dropped, and the states of the
/// trees that were being filtered.
#[derive(Debug)]
pub(crate) struct SnapshotPin {
    engine: Arc<Engine>,
    seq: SeqNo,
    micros: u64,
    kept: KeptStates,
}

impl SnapshotPin {
    pub(crate) fn new(engine: &Arc<Engine>) -> Arc<Self> {
        if !engine.context.health.is_of_this_process() {
            // Nothing can be read there, and the locks may be held for ever.
            let (engine, seq) = (Arc::clone(engine), engine.pipeline.visible());
            return Arc::new(Self { engine, seq, micros: 0, kept: KeptStates::default() });
        }
        let seq = engine.pipeline.hold_snapshot();
        Self::of_held(engine, seq)
    }

    /// Pins a sequence number again; returns `None` unless it is already pinned or kept.
    pub(crate) fn again(engine: &Arc<Engine>, seq: SeqNo) -> Option<Arc<Self>> {
        engine.pipeline.hold_again(seq).then(|| Self::of_held(engine, seq))
    }

    fn of_held(engine: &Arc<Engine>, seq: SeqNo) -> Arc<Self> {
        let (micros, kept) =
            (engine.pipeline.snapshot_clock().hold(), engine.catalog.filtering.states_to_keep());
        Arc::new(Self { engine: Arc::clone(engine), seq, micros, kept })
    }

    pub(crate) fn seq(&self) -> SeqNo {
        self.seq
    }

    pub(crate) fn as_of(&self) -> AsOf<'_> {
        AsOf { seq: self.seq, micros: self.micros, kept: &self.kept }
    }
}

impl Drop for SnapshotPin {
    fn drop(&mut self) {
        if !self.engine.context.health.is_of_this_process() {
            return fork::leak((Arc::clone(&self.engine), std::mem::take(&mut self.kept)));
        }
        // The time first, because releasing the number wakes the threads that wait for both.
        self.engine.pipeline.snapshot_clock().release(self.micros);
        self.engine.pipeline.release_snapshot(self.seq);
    }
}
