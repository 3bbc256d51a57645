//! An ingest's place in the order of writes.
//!
//! The entries of an ingest all have one sequence number, which its tables contain. They are
//! written while other writers continue, so the number is promised in advance: it is so large that
//! other writers are unlikely to reach it. When the ingest is added, it takes all numbers from the
//! next one up to its own, like a batch with that many operations. The numbers in between remain
//! unused.
//!
//! If other writes have passed the promised number, or an ingest with a larger number came first,
//! the tables are rewritten with another number.
//!
//! From the moment at which the ingest takes its numbers, which is its place in the order of
//! writes:
//!
//! 1. All earlier writes to the tree are in immutable memtables, because the active memtable is
//!    replaced. They are flushed before the tables are added, so levels remain in the order of
//!    recency.
//! 2. Later writes are in the new active memtable and are not visible before the ingest.
//! 3. No window is open, because the ingest counts as a write that waits for a sync.
//! 4. Readers of states without the tables see no write after the ingest
//!    ([`TreeState::readable_to`](crate::engine::tree::TreeState)).

use std::sync::Arc;

use super::rotation::next_active;
use super::{PendingWrite, Pipeline, PipelineState, WrittenKeys};
use crate::base::error::{Error, Result};
use crate::base::event::FlushReason;
use crate::base::types::{Lsn, MAX_SEQ, SeqNo};
use crate::engine::tree::{ImmutableMemtable, Tree};
use crate::files::wal::LogWriter;

/// How many numbers other writers may take before the tables of an ingest must be rewritten. Each
/// ingest uses up at most this many of 2^56, enough for eight years at one ingest per second.
const SEQ_ADVANCE: SeqNo = 1 << 28;

/// Promises a sequence number to an ingest.
pub(crate) fn promise_seq(pipeline: &Pipeline) -> Result<SeqNo> {
    let mut state = pipeline.lock_keeping_window();
    let seq = state.next_seq.max(state.promised_seq).saturating_add(SEQ_ADVANCE);
    if seq > MAX_SEQ {
        return Err(Error::internal("all sequence numbers are used up"));
    }
    state.promised_seq = seq;
    Ok(seq)
}

/// Takes all sequence numbers up to `seq`, which must all be unassigned, for an ingest of `keys`
/// into a tree. Returns the log position that follows all earlier writes.
pub(crate) fn enter_ingest<'a>(
    pipeline: &'a Pipeline,
    state: &mut PipelineState,
    tree: &Arc<Tree>,
    keys: WrittenKeys,
    seq: SeqNo,
) -> (PendingWrite<'a>, Lsn) {
    let position = state.log.as_ref().map_or(Lsn(0), LogWriter::end);
    let last = state.next_seq - 1;
    // Writes with the lock may be logged but not inserted yet.
    let is_inserted = tree.last_seq().min(last) <= pipeline.visible();
    // An empty memtable is also replaced, because its states have no `readable_to` limit. The next
    // write gets a memtable above the new tables.
    let active = next_active(pipeline, state, tree);
    tree.replace(|mut next| {
        let before = next.replace_active(active, &pipeline.context.memtables);
        let may_have_entries = !before.is_unwritten() && !is_inserted;
        if may_have_entries || !before.memtable.is_empty() {
            let reason = FlushReason::Requested;
            let immutable = ImmutableMemtable::new(&before, position, last, reason);
            next.immutables.insert(0, Arc::new(immutable));
        }
        next.readable_to = last;
        next
    });
    pipeline.keep_snapshot(tree, None);
    tree.set_last_seq(seq);
    let pending = pipeline.enter(state, seq - last, None);
    pipeline.note_in_flight(state, || Ok(vec![keys]));
    state.window.await_ingest(seq);
    (pending, position)
}
