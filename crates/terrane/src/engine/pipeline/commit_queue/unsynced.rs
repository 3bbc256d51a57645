//! Writes that become visible once their records are durable.
//!
//! Such a write is inserted first, and marks its slot as unsynced before it waits for the sync. The
//! baton passes over the slot only if the sync is over. The thread that performed the sync takes the
//! baton, if it rests at such a slot, and so makes all writes of the sync visible at once. Otherwise
//! each writer would have to run, in the order of the sequence numbers, before the next one could
//! continue.
//!
//! Whoever passes over an unsynced slot first claims it, which clears the mark and of several
//! threads succeeds in only one. So also for these writes one thread at a time has the baton.

use std::sync::atomic::Ordering;

use super::{CommitQueue, SLOTS, Slot, Span};
use crate::base::types::SeqNo;

/// The mark of a slot whose write must not become visible before a sync. Sequence numbers are lower.
const UNSYNCED: u64 = 1 << 63;

/// Returns the last sequence number in a marked slot.
pub(super) fn last_of(marked: u64) -> SeqNo {
    marked & !UNSYNCED
}

impl CommitQueue {
    /// Marks a write that is inserted, but must not become visible before its record is durable.
    /// Returns false if it is too far from the visible position; the caller then uses
    /// [`Self::finish`] after the sync.
    pub(super) fn mark_unsynced(&self, write: Span) -> bool {
        let Span { first, last, log_end } = write;
        if self.visible() < first.saturating_sub(SLOTS as u64) {
            return false;
        }
        let slot = self.slot(first);
        // Relaxed: read only after `last`, whose release store follows.
        slot.log_end.store(log_end, Ordering::Relaxed);
        slot.last.store(last | UNSYNCED, Ordering::Release);
        true
    }

    /// Calls `sync` for a write that is inserted, and returns once the write is visible, or false if it
    /// will never become visible because an earlier write broke the queue. After an error, the caller
    /// breaks the queue at this write.
    pub(crate) fn finish_after<E>(
        &self,
        write: Span,
        sync: impl FnOnce() -> Result<(), E>,
    ) -> Result<bool, E> {
        let is_marked = self.mark_unsynced(write);
        sync()?;
        Ok(if is_marked { self.finish_synced(write) } else { self.finish(write) })
    }

    /// Notes that all records before a position of the log are durable, and makes the marked writes
    /// visible for which this was missing.
    pub(crate) fn note_synced(&self, position: u64) {
        // Release: pairs with the acquire in `pass`. No thread depends on seeing this value: each
        // writer claims its slot itself once its sync is over.
        self.synced.fetch_max(position, Ordering::Release);
        let first = self.visible() + 1;
        let slot = self.slot(first);
        let marked = slot.last.load(Ordering::Acquire);
        // The position is loaded again: if it has not moved, the mark is that of the write `first`,
        // because a later write marks this slot only after `first` is visible.
        if marked & UNSYNCED == 0 || last_of(marked) < first || self.visible() + 1 != first {
            return;
        }
        if self.pass(slot, marked) {
            // Relaxed: the claim ensures that no other write has changed it since.
            let log_end = slot.log_end.load(Ordering::Relaxed);
            self.advance(Span { first, last: last_of(marked), log_end });
        }
    }

    /// Returns true if the baton may pass over a slot with this mark, which is claimed if necessary.
    #[inline]
    pub(super) fn pass(&self, slot: &Slot, marked: u64) -> bool {
        marked & UNSYNCED == 0 || self.claim_synced(slot, marked)
    }

    #[cold]
    fn claim_synced(&self, slot: &Slot, marked: u64) -> bool {
        // Relaxed: the load of the mark precedes. A value of a later write is too high, or the claim
        // fails.
        let log_end = slot.log_end.load(Ordering::Relaxed);
        log_end <= self.synced.load(Ordering::Acquire) && Self::claim(slot, last_of(marked))
    }

    /// Takes the baton over from the write that marked the slot. Returns false if another thread has
    /// done so.
    fn claim(slot: &Slot, last: SeqNo) -> bool {
        // Acquire, also on failure: whoever has claimed the slot has seen the insertion.
        let claimed =
            slot.last.compare_exchange(last | UNSYNCED, last, Ordering::AcqRel, Ordering::Acquire);
        claimed.is_ok()
    }

    /// Returns once a write is visible that was marked and whose record is durable, or false if it
    /// will never become visible because an earlier write broke the queue.
    #[must_use = "a write may never become visible"]
    pub(super) fn finish_synced(&self, write: Span) -> bool {
        let Span { first, last, .. } = write;
        self.wait_until(first - 1, |queue| {
            let visible = queue.visible();
            if visible == first - 1 && Self::claim(queue.slot(first), last) {
                queue.advance(write);
                return true;
            }
            visible >= last
        })
    }
}
