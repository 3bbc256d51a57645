//! Changes of a shape: what a flush or a compaction does to it, and what a manifest records.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::{Run, RunId, TableId, TableInfo, TreeShape};
use crate::key_range::KeyRange;

/// A table that an edit puts into a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedTable {
    /// Index of the level.
    pub level: usize,
    /// The run that takes the table; created if the level does not have it.
    pub run: RunId,
    /// The table.
    pub table: Arc<TableInfo>,
}

/// Tables that leave a shape and tables that enter it, in one step.
///
/// A table that is in both lists moves without being rewritten.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShapeEdit {
    /// Tables that leave.
    pub removed: Vec<TableId>,
    /// Tables that enter.
    pub added: Vec<AddedTable>,
}

/// Why an edit does not fit a shape, or a shape breaks its invariants.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShapeError {
    /// An edit removes a table that the shape does not have.
    Unknown(TableId),
    /// A table would occur twice.
    Duplicate(TableId),
    /// Two tables of one run overlap.
    Overlap(RunId, TableId, TableId),
    /// A table's range holds no key.
    EmptyRange(TableId),
    /// Runs of a level are not ordered newest first.
    RunOrder(usize),
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(id) => write!(f, "table {id} is not in the tree"),
            Self::Duplicate(id) => write!(f, "table {id} is in the tree twice"),
            Self::Overlap(run, a, b) => write!(f, "tables {a} and {b} of run {run} overlap"),
            Self::EmptyRange(id) => write!(f, "table {id} has an empty key range"),
            Self::RunOrder(level) => write!(f, "runs of level {level} are out of order"),
        }
    }
}

impl std::error::Error for ShapeError {}

impl TreeShape {
    /// Returns the shape after `edit`.
    ///
    /// # Errors
    /// The edit removes a table that the shape does not have, or its result breaks an invariant of
    /// [`crate::shape`].
    pub fn apply(&self, edit: &ShapeEdit) -> Result<TreeShape, ShapeError> {
        let mut shape = self.clone();
        shape.remove(&edit.removed)?;
        for added in &edit.added {
            shape.insert(added);
        }
        shape.trim();
        shape.check()?;
        Ok(shape)
    }

    fn remove(&mut self, removed: &[TableId]) -> Result<(), ShapeError> {
        let mut missing: BTreeSet<TableId> = removed.iter().copied().collect();
        for run in self.levels.iter_mut().flat_map(|level| &mut level.runs) {
            run.tables.retain(|table| !missing.remove(&table.id));
        }
        missing.into_iter().next().map_or(Ok(()), |id| Err(ShapeError::Unknown(id)))
    }

    fn insert(&mut self, added: &AddedTable) {
        if self.levels.len() <= added.level {
            self.levels.resize_with(added.level + 1, Default::default);
        }
        let runs = &mut self.levels[added.level].runs;
        let at = runs.partition_point(|run| run.id > added.run);
        if runs.get(at).is_none_or(|run| run.id != added.run) {
            runs.insert(at, Run { id: added.run, tables: Vec::new() });
        }
        let tables = &mut runs[at].tables;
        let at = tables.partition_point(|table| table.range.start < added.table.range.start);
        tables.insert(at, added.table.clone());
    }

    /// Drops runs without tables, and empty levels at the end.
    fn trim(&mut self) {
        for level in &mut self.levels {
            level.runs.retain(|run| !run.tables.is_empty());
        }
        let used = self.levels.iter().rposition(|level| !level.runs.is_empty());
        self.levels.truncate(used.map_or(0, |last| last + 1));
    }

    /// Checks the invariants of [`crate::shape`].
    ///
    /// # Errors
    /// The first violation.
    pub fn check(&self) -> Result<(), ShapeError> {
        let mut seen = BTreeSet::new();
        for (index, level) in self.levels.iter().enumerate() {
            if !level.runs.is_sorted_by(|newer, older| newer.id > older.id) {
                return Err(ShapeError::RunOrder(index));
            }
            for run in &level.runs {
                run.check_order()?;
                if let Some(twice) = run.tables.iter().find(|table| !seen.insert(table.id)) {
                    return Err(ShapeError::Duplicate(twice.id));
                }
            }
        }
        Ok(())
    }
}

impl Run {
    fn check_order(&self) -> Result<(), ShapeError> {
        if let Some(empty) = self.tables.iter().find(|table| table.range.is_empty()) {
            return Err(ShapeError::EmptyRange(empty.id));
        }
        let ends_before = |a: &KeyRange, b: &KeyRange| !b.starts_before_end_of(a);
        for pair in self.tables.windows(2) {
            if !ends_before(&pair[0].range, &pair[1].range) {
                return Err(ShapeError::Overlap(self.id, pair[0].id, pair[1].id));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> TreeShape {
        text.parse().unwrap()
    }

    fn add(level: usize, run: u64, id: u64, range: (&str, &str)) -> AddedTable {
        let range = KeyRange::inclusive(range.0.as_bytes(), range.1.as_bytes());
        AddedTable { level, run: RunId(run), table: Arc::new(TableInfo::new(id, range, 1)) }
    }

    #[test]
    fn flush_lands_as_the_newest_run() {
        let edit = ShapeEdit { removed: vec![], added: vec![add(0, 3, 9, ("a", "z"))] };
        let after = shape("L0 r2: 1=b..=c:1").apply(&edit).unwrap();
        assert_eq!(after, shape("L0 r3: 9=a..=z:1\nL0 r2: 1=b..=c:1"));
    }

    #[test]
    fn emptied_runs_and_levels_vanish() {
        let before = shape("L0 r2: 1=b..=c:1\nL2 r1: 2=a..=z:1");
        let edit = ShapeEdit { removed: vec![TableId(1), TableId(2)], added: vec![] };
        assert_eq!(before.apply(&edit).unwrap(), TreeShape::default());
    }

    #[test]
    fn edits_that_do_not_fit_are_refused() {
        let before = shape("L1 r2: 1=b..=d:1");
        let remove = ShapeEdit { removed: vec![TableId(7)], added: vec![] };
        assert_eq!(before.apply(&remove), Err(ShapeError::Unknown(TableId(7))));
        let overlap = ShapeEdit { removed: vec![], added: vec![add(1, 2, 9, ("d", "e"))] };
        let error = ShapeError::Overlap(RunId(2), TableId(1), TableId(9));
        assert_eq!(before.apply(&overlap), Err(error));
        let twice = ShapeEdit { removed: vec![], added: vec![add(0, 5, 1, ("x", "z"))] };
        assert_eq!(before.apply(&twice), Err(ShapeError::Duplicate(TableId(1))));
        let empty = ShapeEdit { removed: vec![], added: vec![add(0, 5, 3, ("x", "b"))] };
        assert_eq!(before.apply(&empty), Err(ShapeError::EmptyRange(TableId(3))));
    }
}
