//! Keeps memtables within their share of the memory budget, and the log within its limit.

use std::cmp::Reverse;
use std::sync::Arc;

use terrane_policy::Admission;

use super::Writer;
use super::stall::Stop;
use super::target::WriteTarget;
use crate::base::event::FlushReason;
use crate::base::types::Lsn;
use crate::engine::pipeline::{MEASURE_EVERY_BYTES, PipelineState};
use crate::engine::tree::Tree;

/// The maximum number of small memtables that are replaced at once, with the writer lock held.
const SMALL_ROTATED_MAX: usize = 512;

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
        if !is_flush_due {
            let flush_above = flush_above?;
            for tree in target.trees(&self.catalog.trees()) {
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
        let trees = self.catalog.trees_with_memtables().into_iter();
        let waiting = trees.filter(|tree| !tree.state().immutables.is_empty());
        let longest = waiting.max_by_key(|tree| tree.state().immutables.len())?;
        Some(Stop { tree: longest, pressure: memtables.pressure() })
    }

    /// Keeps memtables and cache within the memory budget, and the log within its limit.
    pub(super) fn keep_to_budget(&self, state: &mut PipelineState) {
        self.catalog.resize_cache();
        let trees = self.catalog.trees_with_memtables();
        let most = self.context.memtables.active_bytes_max();
        let large_from = MEASURE_EVERY_BYTES.min(most / 8);
        // What readers keep makes memtables smaller; writes between two measurements must not exceed them by much.
        let is_small = most < self.context.memory_plan.memtable_bytes_max();
        let every = if is_small { large_from } else { MEASURE_EVERY_BYTES };
        state.note_measured(trees.len(), every);
        let (mut total, mut large) = (0, Vec::new());
        let (mut small, mut small_bytes) = (Vec::new(), 0);
        for tree in &trees {
            let tree_state = tree.state();
            let memtable = &tree_state.active.memtable;
            let (active, bytes) = (memtable.filled_bytes(), memtable.memory().total_bytes());
            total += bytes;
            if matches!(tree_state.admission, Admission::Stop(_)) || active == 0 {
                continue;
            }
            if bytes > large_from {
                large.push((bytes, tree));
            } else {
                small_bytes += bytes;
                small.push((tree_state.active.begins, tree, bytes));
            }
        }
        // With several trees, the memtables may exceed the budget before any of them is full.
        if self.catalog.trees().len() > 1 {
            if small_bytes > most {
                self.rotate_small(state, small, small_bytes - most / 2);
            } else if total > most {
                self.rotate_large(state, large, total - most);
            }
        }
        self.shorten_log(state, &trees);
    }

    /// Flushes the oldest of very many small memtables, which take more memory than their entries, until
    /// `bytes` bytes are freed.
    fn rotate_small(
        &self,
        state: &mut PipelineState,
        mut small: Vec<(Lsn, &Arc<Tree>, usize)>,
        bytes: usize,
    ) {
        small.sort_unstable_by_key(|(begins, tree, _)| (*begins, tree.id));
        let mut left = bytes;
        for (_, tree, bytes) in small.into_iter().take(SMALL_ROTATED_MAX) {
            if left == 0 {
                break;
            }
            self.pipeline.rotate(state, tree, FlushReason::Memory);
            left = left.saturating_sub(bytes);
        }
    }

    /// Flushes the largest memtables until `bytes` bytes are freed.
    fn rotate_large(
        &self,
        state: &mut PipelineState,
        mut large: Vec<(usize, &Arc<Tree>)>,
        bytes: usize,
    ) {
        large.sort_unstable_by_key(|(bytes, tree)| (Reverse(*bytes), tree.id));
        let mut left = bytes;
        for (bytes, tree) in large {
            if left == 0 {
                break;
            }
            self.pipeline.rotate(state, tree, FlushReason::Memory);
            left = left.saturating_sub(bytes);
        }
    }

    /// Flushes the trees that need the oldest part of a log that exceeds its limit.
    fn shorten_log(&self, state: &mut PipelineState, trees: &[Arc<Tree>]) {
        let Some(log) = &state.log else { return };
        let end = log.end();
        let limit = self.context.settings.log_bytes_max();
        for tree in trees {
            let begins = tree.state().log_begins();
            if begins.is_some_and(|begins| end.0 - begins.0 > limit) {
                self.pipeline.rotate(state, tree, FlushReason::LogLength);
            }
        }
    }
}
