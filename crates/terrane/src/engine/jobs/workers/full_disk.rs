//! Frees space on a full disk without writing tables.
//!
//! A range that was deleted on a full disk stays in a memtable, because a flush finds no space for its
//! table. The tables that the range covers are therefore dropped before it is flushed, by an edit of the
//! manifest alone, for which the reserve has space.

use std::sync::Arc;

use super::Jobs;
use crate::base::error::Result;
use crate::base::types::SeqNo;
use crate::engine::context::JobKind;
use crate::engine::tree::Tree;

impl Jobs {
    /// While the disk reserve is released, drops the tables that range tombstones in memtables cover. A
    /// failure is noted, and the next call tries again.
    pub(crate) fn free_space(&self) {
        if self.context.health.is_sound() || !self.context.reserve.is_released() {
            return;
        }
        // A snapshot that is taken later sees the tombstones up to here.
        let visible = self.pipeline.visible();
        for tree in self.catalog.trees().values() {
            if let Err(error) = self.drop_covered_by_memtables(tree, visible) {
                self.context.health.set_failure(JobKind::Drop, error);
            }
        }
    }

    fn drop_covered_by_memtables(&self, tree: &Arc<Tree>, visible: SeqNo) -> Result<()> {
        let tables = self.picker.claim_covered_by_memtables(tree, visible);
        if tables.is_empty() {
            return Ok(());
        }
        // A power failure must not lose the tombstones and keep the edit.
        if let Err(error) = self.pipeline.sync_log() {
            tree.jobs().dropping.retain(|table| !tables.contains(table));
            self.context.signals.end_job();
            return Err(error);
        }
        self.drop_tables(tree, &tables)
    }
}
