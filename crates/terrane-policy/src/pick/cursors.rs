//! How far movement has come in each level.

use std::sync::Arc;

use crate::compaction::{Compaction, Reason};

/// For each level, the key behind the tables that moved last: where the next turn of round-robin
/// movement starts, and the tables that all other rules prefer among equals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cursors {
    next: Vec<Option<Arc<[u8]>>>,
}

impl Cursors {
    /// At the first key of every level.
    pub(super) const START: Self = Self { next: Vec::new() };

    /// Where the next turn starts in `level`; `None` for the first key.
    pub fn get(&self, level: usize) -> Option<&Arc<[u8]>> {
        self.next.get(level).and_then(Option::as_ref)
    }

    /// Remembers where `compaction` was in its level, if its tables were chosen.
    pub fn advance(&mut self, compaction: &Compaction) {
        let Reason::Triggered { level, movement: Some(_), .. } = compaction.reason else { return };
        let moved = compaction.inputs.iter().filter(|input| input.level == level);
        let ends = moved.filter_map(|input| input.tables.last()).map(|table| &table.range.end);
        // An end that is not there is after all others: the next turn starts over.
        let Some(end) = ends.max_by_key(|end| (end.is_none(), end.as_deref())) else { return };
        if self.next.len() <= level {
            self.next.resize(level + 1, None);
        }
        self.next[level] = end.clone();
    }
}
