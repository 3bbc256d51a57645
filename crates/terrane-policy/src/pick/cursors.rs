//! How far movement has progressed in each level.

use std::sync::Arc;

use crate::compaction::Compaction;
use crate::shape::{Level, TreeShape};

/// For each level, the end of the tables that moved last. Round-robin movement continues there, and
/// all other rules break ties in favour of the tables after it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cursors {
    next: Vec<Option<Arc<[u8]>>>,
}

impl Cursors {
    /// Returns cursors at the first key of every level.
    pub(super) const START: Self = Self { next: Vec::new() };

    /// Estimates the cursors of a reopened tree: the tables that moved last out of a level are, or
    /// end with, the newest table of the next level. Cursors are not stored, and starting over at
    /// each opening would keep moving the first tables of every level.
    pub fn resumed(shape: &TreeShape) -> Self {
        let newest = |level: &Level| {
            let tables = level.runs.iter().flat_map(|run| &run.tables);
            tables.max_by_key(|table| table.id).and_then(|table| table.range.end.clone())
        };
        // Level 0 gives up all of its runs, so it needs no cursor.
        let next = (1..shape.levels.len()).map(|level| newest(shape.level(level + 1)));
        Self { next: std::iter::once(None).chain(next).collect() }
    }

    /// Returns the key at which the next turn starts in `level`; `None` for the first key.
    pub fn get(&self, level: usize) -> Option<&Arc<[u8]>> {
        self.next.get(level).and_then(Option::as_ref)
    }

    /// Sets the key at which the next turn starts in `level`; `None` for the first key.
    pub(crate) fn set(&mut self, level: usize, next: Option<Arc<[u8]>>) {
        if self.next.len() <= level {
            self.next.resize(level + 1, None);
        }
        self.next[level] = next;
    }

    /// Records how far `compaction` progresses in its level, if a rule chose its tables.
    pub fn advance(&mut self, compaction: &Compaction) {
        let Some(level) = compaction.reason.chosen_level() else { return };
        let moved = compaction.inputs.iter().filter(|input| input.level == level);
        let ends = moved.filter_map(|input| input.tables.last()).map(|table| &table.range.end);
        // A missing end sorts after all others: the next round starts over.
        let Some(end) = ends.max_by_key(|end| (end.is_none(), end.as_deref())) else { return };
        self.set(level, end.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reopened_tree_continues_behind_the_tables_that_moved_last() {
        let shape: TreeShape = "L0 r9: 12=a..z:1KiB\n\
                                L1 r1: 1=a..c:1KiB 2=d..f:1KiB 11=g..i:1KiB\n\
                                L2 r2: 5=a..c:1KiB 7=d..f:1KiB 3=g..i:1KiB"
            .parse()
            .unwrap();
        let cursors = Cursors::resumed(&shape);
        assert_eq!(cursors.get(0), None);
        assert_eq!(cursors.get(1).map(|key| &key[..]), Some(&b"f"[..]));
        assert_eq!(cursors.get(2), None);
        assert_eq!(Cursors::resumed(&TreeShape::default()), Cursors { next: vec![None] });
    }
}
