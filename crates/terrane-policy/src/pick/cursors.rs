//! How far movement has come in each level.

use std::sync::Arc;

use crate::compaction::{Compaction, Reason};
use crate::shape::{Level, TreeShape};

/// For each level, the key behind the tables that moved last: where the next turn of round-robin
/// movement starts, and the tables that all other rules prefer among equals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cursors {
    next: Vec<Option<Arc<[u8]>>>,
}

impl Cursors {
    /// At the first key of every level.
    pub(super) const START: Self = Self { next: Vec::new() };

    /// About where movement was in a tree that is opened again: what moved last from a level is the
    /// newest table of the next one, or ends with it. Cursors are not stored, and a turn that began
    /// anew at each opening would move the first tables of every level again and again.
    pub fn resumed(shape: &TreeShape) -> Self {
        let newest = |level: &Level| {
            let tables = level.runs.iter().flat_map(|run| &run.tables);
            tables.max_by_key(|table| table.id).and_then(|table| table.range.end.clone())
        };
        // Level 0 gives up all that it has.
        let next = (1..shape.levels.len()).map(|level| newest(shape.level(level + 1)));
        Self { next: std::iter::once(None).chain(next).collect() }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_that_is_opened_again_goes_on_behind_what_moved_last() {
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
