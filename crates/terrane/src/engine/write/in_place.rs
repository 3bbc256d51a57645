//! Reclaims the versions that writes hide in memtables that overwrite in place.

use terrane_memtable::{InsertOutcome, Memtable};

use super::Writer;
use super::target::{WriteTarget, batch_operations};
use crate::base::stats::Counter;
use crate::base::types::SeqNo;
use crate::files::batch::Op;

impl Writer {
    /// Makes memtables reclaim the versions that a write hides, now that it is visible.
    pub(super) fn reclaim_hidden(&self, target: &WriteTarget<'_>, first: SeqNo) {
        let reclaim = |op: &Op<'_>, seq: SeqNo, memtable: &Memtable| {
            let (Some(key), Some(front)) = (op.point_key(), memtable.front_level()) else { return };
            memtable.reclaim_hidden(key, seq, self.pipeline.readers());
            let overwritten = front.take_overwritten() as u64;
            self.context.counters.add_some(Counter::UpdatesInPlace, overwritten);
        };
        match target {
            WriteTarget::One { op, state, .. } => reclaim(op, first, &state.active.memtable),
            WriteTarget::Batch { batch, trees } => {
                let encoded = batch.checked().unwrap_or_default();
                for (seq, op, (_, state)) in batch_operations(encoded, trees, first) {
                    reclaim(&op, seq, &state.active.memtable);
                }
            }
        }
    }

    /// Counts an insertion into a FloDB memtable, and wakes a drain thread if the memtable needs to
    /// be drained.
    pub(super) fn count_inserted(&self, inserted: InsertOutcome) {
        if inserted.is_in_membuffer {
            self.context.counters.add(Counter::MembufferWrites, 1);
        }
        if inserted.reclaimed > 0 {
            self.context.counters.add(Counter::UpdatesInPlace, u64::from(inserted.reclaimed));
        }
        if inserted.needs_drain {
            self.context.signals.drains.wake();
        }
    }
}
