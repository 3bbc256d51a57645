//! Replaces the active memtables of trees.

use std::sync::Arc;

use super::{Pipeline, PipelineState};
use crate::base::event::FlushReason;
use crate::base::types::Lsn;
use crate::engine::tree::{ActiveMemtable, ImmutableMemtable, Preparation, Tree};
use crate::files::wal::LogWriter;

/// The memory that a memtable needs for its first entry, approximately.
const MEMTABLE_BYTES_MIN: u64 = 8 << 10;

impl Pipeline {
    /// Replaces the active memtable of a tree with an empty memtable. The replaced memtable is
    /// immutable from now on and is flushed in the background.
    pub(crate) fn rotate(&self, state: &mut PipelineState, tree: &Arc<Tree>, reason: FlushReason) {
        let position = state.log.as_ref().map_or(Lsn(0), LogWriter::end);
        let last_seq = state.next_seq - 1;
        let is_used_next = matches!(reason, FlushReason::Full | FlushReason::MemtableKind);
        let active = match is_used_next {
            true => new_active_memtable(self, state, tree),
            false => next_active(self, state, tree),
        };
        tree.replace(|mut next| {
            let before = next.replace_active(active, &self.context.memtables);
            let immutable = ImmutableMemtable::new(&before, position, last_seq, reason);
            next.immutables.insert(0, Arc::new(immutable));
            next
        });
        self.keep_snapshot(tree, None);
        self.context.signals.wake();
    }
}

/// Gives a tree without entries in memory a memtable for a write.
pub(crate) fn begin_memtable(pipeline: &Pipeline, state: &mut PipelineState, tree: &Arc<Tree>) {
    let active = new_active_memtable(pipeline, state, tree);
    // The memtables of very many trees need much more memory than their entries.
    state.grant_bytes(MEMTABLE_BYTES_MIN, usize::MAX);
    tree.replace(|mut next| {
        next.active = active;
        next
    });
}

/// Returns the memtable that replaces the active one of a tree, which is not full. If that has few
/// entries, the tree is probably written rarely, and gets its next memtable from [`begin_memtable`].
pub(super) fn next_active(
    pipeline: &Pipeline,
    state: &PipelineState,
    tree: &Tree,
) -> Arc<ActiveMemtable> {
    if tree.is_barely_written(&pipeline.context.memtables) {
        ActiveMemtable::unwritten()
    } else {
        new_active_memtable(pipeline, state, tree)
    }
}

fn new_active_memtable(
    pipeline: &Pipeline,
    state: &PipelineState,
    tree: &Tree,
) -> Arc<ActiveMemtable> {
    let position = state.log.as_ref().map_or(Lsn(0), LogWriter::end);
    let preparation =
        if pipeline.context.is_inline() { Preparation::Never } else { Preparation::OnThread };
    let memtable = tree.next_memtable(&pipeline.context.memtables, preparation);
    let in_log = pipeline.context.values_in_log(&tree.design());
    Arc::new(ActiveMemtable::new(memtable, position).noting(in_log))
}
