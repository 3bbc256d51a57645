//! How far round-robin movement has come in each level.

use std::sync::Arc;

use crate::compaction::{Compaction, Reason};
use crate::strategy::Movement;

/// For each level, the key at which the next turn of round-robin movement starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cursors {
    next: Vec<Option<Arc<[u8]>>>,
}

impl Cursors {
    /// Where the next turn starts in `level`; `None` for the first key.
    pub fn get(&self, level: usize) -> Option<&Arc<[u8]>> {
        self.next.get(level).and_then(Option::as_ref)
    }

    /// Remembers that `compaction` took its turn, if round-robin movement chose it.
    pub fn advance(&mut self, compaction: &Compaction) {
        let Reason::Triggered { level, movement: Some(Movement::RoundRobin), .. } =
            compaction.reason
        else {
            return;
        };
        let Some(table) = compaction.inputs.first().and_then(|input| input.tables.last()) else {
            return;
        };
        if self.next.len() <= level {
            self.next.resize(level + 1, None);
        }
        self.next[level] = table.range.end.clone();
    }
}
