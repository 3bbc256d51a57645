//! Cursors over everything that a reader sees.

use std::sync::Arc;

use super::{Engine, Tree, TreeState};
use crate::error::Result;
use crate::iter::{DeletedRanges, MergeCursor, RunCursor, Source, VisibleCursor};
use crate::stats::Counter;
use crate::types::SeqNo;

/// A tree at a sequence number, kept as it is for as long as someone reads it.
#[derive(Debug, Clone)]
pub(crate) struct ReadView {
    state: Arc<TreeState>,
    seq: SeqNo,
}

impl Engine {
    /// What a reader sees of a tree as of `seq`, or now.
    pub(crate) fn view(&self, tree: &Tree, seq: Option<SeqNo>) -> Result<ReadView> {
        self.health.check_open()?;
        // The state first: then nothing that is visible can have left it.
        let state = tree.state_arc();
        let seq = seq.unwrap_or_else(|| self.visible());
        self.counters.add(Counter::Scans, 1);
        Ok(ReadView { state, seq })
    }
}

impl ReadView {
    /// A cursor on no entry yet.
    pub(crate) fn cursor(&self) -> Result<VisibleCursor> {
        let TreeState { version, .. } = &*self.state;
        let memtables = self.state.memtables().filter(|memtable| !memtable.is_empty());
        let mut sources: Vec<Source> =
            memtables.map(|memtable| Source::Memtable(memtable.cursor())).collect();
        let runs = version.runs().iter().map(|run| Source::Run(RunCursor::new(Arc::clone(run))));
        sources.extend(runs);
        let deleted = DeletedRanges::new(self.state.memtables(), version, self.seq)?;
        Ok(VisibleCursor::new(MergeCursor::new(sources), self.seq, deleted))
    }

    pub(crate) fn seq(&self) -> SeqNo {
        self.seq
    }
}
