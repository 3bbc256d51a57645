//! Keeps memtables within their share of the memory budget, and the log within its limit.

use std::sync::Arc;

use terrane_policy::Admission;

use super::Writer;
use super::space::MEASURE_EVERY_BYTES;
use super::stall::Stop;
use super::target::WriteTarget;
use crate::base::event::FlushReason;
use crate::engine::catalog::Trees;
use crate::engine::pipeline::PipelineState;
use crate::engine::tree::Tree;

impl Writer {
    /// Returns the tree whose flush the write must wait for, if memtables and large writes exceed their
    /// share of the memory budget and a flush will free memory. If the write is large and no flush is due,
    /// first makes those of its trees due that have more than `flush_above` bytes.
    #[inline]
    pub(super) fn check_memory(
        &self,
        state: &mut PipelineState,
        target: &WriteTarget<'_>,
        flush_above: Option<usize>,
    ) -> Option<Stop> {
        if flush_above.is_none() && !self.context.memtables.is_short() {
            return None;
        }
        self.stop_for_memory(state, target, flush_above)
    }

    #[cold]
    fn stop_for_memory(
        &self,
        state: &mut PipelineState,
        target: &WriteTarget<'_>,
        flush_above: Option<usize>,
    ) -> Option<Stop> {
        let memtables = &self.context.memtables;
        let is_flush_due = self.catalog.resize_cache().is_flush_due();
        if !memtables.is_exceeded() {
            return None;
        }
        let trees = self.catalog.trees();
        if !is_flush_due {
            let flush_above = flush_above?;
            for tree in target.trees(&trees) {
                let tree_state = tree.state();
                let is_stopped = matches!(tree_state.admission, Admission::Stop(_));
                if !is_stopped && tree_state.active.memtable.filled_bytes() > flush_above {
                    self.pipeline.rotate(state, tree, FlushReason::Memory);
                }
            }
        }
        if memtables.are_kept() {
            // A flush thread drops replaced states that no reader uses any more.
            self.context.signals.wake();
        }
        let waiting = trees.values().filter(|tree| !tree.state().immutables.is_empty());
        let longest = waiting.max_by_key(|tree| tree.state().immutables.len())?;
        Some(Stop { tree: Arc::clone(longest), pressure: memtables.pressure() })
    }

    /// Keeps memtables and cache within the memory budget, and the log within its limit.
    pub(super) fn keep_to_budget(&self, state: &mut PipelineState) {
        self.catalog.resize_cache();
        let trees = self.catalog.trees();
        let (mut total, mut largest): (usize, Option<(usize, &Arc<Tree>)>) = (0, None);
        for tree in trees.values() {
            let tree_state = tree.state();
            let active = tree_state.active.memtable.filled_bytes();
            total += active;
            let can_rotate = !matches!(tree_state.admission, Admission::Stop(_));
            if can_rotate && largest.is_none_or(|(bytes, _)| bytes < active) {
                largest = Some((active, tree));
            }
        }
        // With several trees, the memtables may exceed the budget before any of them is full.
        let most = self.context.memtables.active_bytes_max();
        if total > most
            && trees.len() > 1
            && let Some((_, tree)) =
                largest.filter(|(bytes, _)| *bytes > MEASURE_EVERY_BYTES.min(most / 8))
        {
            self.pipeline.rotate(state, tree, FlushReason::Memory);
        }
        self.shorten_log(state, &trees);
    }

    /// Flushes the trees that need the oldest part of a log that exceeds its limit.
    fn shorten_log(&self, state: &mut PipelineState, trees: &Trees) {
        let Some(log) = &state.log else { return };
        let end = log.end();
        let limit = self.context.settings.log_bytes_max();
        for tree in trees.values() {
            let begins = tree.state().log_begins();
            if begins.is_some_and(|begins| end.0 - begins.0 > limit) {
                self.pipeline.rotate(state, tree, FlushReason::LogLength);
            }
        }
    }
}
