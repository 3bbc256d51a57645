//! Changes to a shape, which flushes and compactions make and a manifest records.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::{Run, RunId, TableId, TableInfo, TreeShape, ValueFileId, ValueFileInfo};
use crate::key_range::KeyRange;

/// A table that an edit adds to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedTable {
    /// Index of the level.
    pub level: usize,
    /// The run that takes the table; created if the level does not have it.
    pub run: RunId,
    /// The table.
    pub table: Arc<TableInfo>,
}

/// Tables and value files that leave and enter a shape in one step.
///
/// A table that is in both lists moves without being rewritten.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShapeEdit {
    /// Tables that leave.
    pub removed: Vec<TableId>,
    /// Tables that enter.
    pub added: Vec<AddedTable>,
    /// Value files that leave; no table of the result may refer to them.
    pub removed_value_files: Vec<ValueFileId>,
    /// Value files that enter, or whose properties change.
    pub value_files: Vec<Arc<ValueFileInfo>>,
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
    /// An edit removes a value file that the shape does not have.
    UnknownValueFile(ValueFileId),
    /// A table refers to a value file that the shape does not have.
    DanglingValues(TableId, ValueFileId),
    /// Value files, or the references of a table to them, are not in ascending order.
    ValueFileOrder(ValueFileId),
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(id) => write!(f, "table {id} is not in the tree"),
            Self::Duplicate(id) => write!(f, "table {id} is in the tree twice"),
            Self::Overlap(run, a, b) => write!(f, "tables {a} and {b} of run {run} overlap"),
            Self::EmptyRange(id) => write!(f, "table {id} has an empty key range"),
            Self::RunOrder(level) => write!(f, "runs of level {level} are out of order"),
            Self::UnknownValueFile(id) => write!(f, "value file {id} is not in the tree"),
            Self::DanglingValues(table, id) => {
                write!(f, "table {table} refers to value file {id}, which is not in the tree")
            }
            Self::ValueFileOrder(id) => write!(f, "value file {id} is out of order"),
        }
    }
}

impl std::error::Error for ShapeError {}

impl TreeShape {
    /// Returns the shape after applying `edit`.
    ///
    /// # Errors
    /// Returns an error if the edit removes a table that the shape does not have, or its result
    /// breaks an invariant of [`crate::shape`].
    pub fn apply(&self, edit: &ShapeEdit) -> Result<TreeShape, ShapeError> {
        let mut shape = self.clone();
        shape.remove(&edit.removed)?;
        for added in &edit.added {
            shape.insert(added);
        }
        shape.trim();
        shape.change_value_files(edit)?;
        shape.check_tables()?;
        // Only the edit can create a dangling reference, so the other tables need no check.
        shape.check_value_refs(edit.added.iter().map(|added| &added.table))?;
        if let Some((table, file)) = shape.user_of(&edit.removed_value_files) {
            return Err(ShapeError::DanglingValues(table, file));
        }
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

    fn change_value_files(&mut self, edit: &ShapeEdit) -> Result<(), ShapeError> {
        if !edit.removed_value_files.is_empty() {
            let mut missing: BTreeSet<ValueFileId> =
                edit.removed_value_files.iter().copied().collect();
            self.value_files.retain(|file| !missing.remove(&file.id));
            if let Some(id) = missing.into_iter().next() {
                return Err(ShapeError::UnknownValueFile(id));
            }
        }
        for file in &edit.value_files {
            match self.value_files.binary_search_by_key(&file.id, |other| other.id) {
                Ok(at) => self.value_files[at] = Arc::clone(file),
                Err(at) => self.value_files.insert(at, Arc::clone(file)),
            }
        }
        Ok(())
    }

    /// Returns a table that refers to one of the `gone` files, unless the shape has that file
    /// again.
    fn user_of(&self, gone: &[ValueFileId]) -> Option<(TableId, ValueFileId)> {
        if gone.is_empty() {
            return None;
        }
        let gone: BTreeSet<ValueFileId> =
            gone.iter().copied().filter(|id| self.value_file(*id).is_none()).collect();
        self.tables().find_map(|table| {
            let used = table.value_refs.iter().find(|used| gone.contains(&used.file))?;
            Some((table.id, used.file))
        })
    }

    fn check_value_refs<'a>(
        &self,
        mut tables: impl Iterator<Item = &'a Arc<TableInfo>>,
    ) -> Result<(), ShapeError> {
        tables.try_for_each(|table| {
            let refs = &table.value_refs;
            if let Some(pair) = refs.windows(2).find(|pair| pair[0].file >= pair[1].file) {
                return Err(ShapeError::ValueFileOrder(pair[1].file));
            }
            let missing = refs.iter().find(|used| self.value_file(used.file).is_none());
            missing.map_or(Ok(()), |used| Err(ShapeError::DanglingValues(table.id, used.file)))
        })
    }

    /// Checks the invariants of [`crate::shape`].
    ///
    /// # Errors
    /// Returns the first violation.
    pub fn check(&self) -> Result<(), ShapeError> {
        self.check_tables()?;
        if let Some(pair) = self.value_files.windows(2).find(|pair| pair[0].id >= pair[1].id) {
            return Err(ShapeError::ValueFileOrder(pair[1].id));
        }
        self.check_value_refs(self.tables())
    }

    fn check_tables(&self) -> Result<(), ShapeError> {
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
    use crate::shape::ValueRef;

    fn shape(text: &str) -> TreeShape {
        text.parse().unwrap()
    }

    fn add(level: usize, run: u64, id: u64, range: (&str, &str)) -> AddedTable {
        let range = KeyRange::inclusive(range.0.as_bytes(), range.1.as_bytes());
        AddedTable { level, run: RunId(run), table: Arc::new(TableInfo::new(id, range, 1)) }
    }

    #[test]
    fn flush_lands_as_the_newest_run() {
        let edit = ShapeEdit {
            removed: vec![],
            added: vec![add(0, 3, 9, ("a", "z"))],
            ..ShapeEdit::default()
        };
        let after = shape("L0 r2: 1=b..=c:1").apply(&edit).unwrap();
        assert_eq!(after, shape("L0 r3: 9=a..=z:1\nL0 r2: 1=b..=c:1"));
    }

    #[test]
    fn emptied_runs_and_levels_vanish() {
        let before = shape("L0 r2: 1=b..=c:1\nL2 r1: 2=a..=z:1");
        let edit = ShapeEdit {
            removed: vec![TableId(1), TableId(2)],
            added: vec![],
            ..ShapeEdit::default()
        };
        assert_eq!(before.apply(&edit).unwrap(), TreeShape::default());
    }

    #[test]
    fn edits_that_do_not_fit_are_refused() {
        let before = shape("L1 r2: 1=b..=d:1");
        let remove = ShapeEdit { removed: vec![TableId(7)], added: vec![], ..ShapeEdit::default() };
        assert_eq!(before.apply(&remove), Err(ShapeError::Unknown(TableId(7))));
        let overlap = ShapeEdit {
            removed: vec![],
            added: vec![add(1, 2, 9, ("d", "e"))],
            ..ShapeEdit::default()
        };
        let error = ShapeError::Overlap(RunId(2), TableId(1), TableId(9));
        assert_eq!(before.apply(&overlap), Err(error));
        let twice = ShapeEdit {
            removed: vec![],
            added: vec![add(0, 5, 1, ("x", "z"))],
            ..ShapeEdit::default()
        };
        assert_eq!(before.apply(&twice), Err(ShapeError::Duplicate(TableId(1))));
        let empty = ShapeEdit {
            removed: vec![],
            added: vec![add(0, 5, 3, ("x", "b"))],
            ..ShapeEdit::default()
        };
        assert_eq!(before.apply(&empty), Err(ShapeError::EmptyRange(TableId(3))));
    }

    #[test]
    fn value_files_enter_change_and_leave_with_their_tables() {
        let before = shape("L0 r2: 1=a..=z:1,values=4:90/3\nV 4: 100\nV 6: 20");
        let mut table = TableInfo::new(2, KeyRange::inclusive(b"a", b"z"), 1);
        table.value_refs = [ValueRef { file: ValueFileId(7), bytes: 90, values: 3 }].into();
        let added = AddedTable { level: 0, run: RunId(2), table: Arc::new(table) };
        let mut edit =
            ShapeEdit { removed: vec![TableId(1)], added: vec![added], ..ShapeEdit::default() };
        let unknown = ShapeError::DanglingValues(TableId(2), ValueFileId(7));
        assert_eq!(before.apply(&edit), Err(unknown));
        edit.value_files =
            vec![Arc::new(ValueFileInfo::new(7, 90)), Arc::new(ValueFileInfo::new(6, 30))];
        edit.removed_value_files = vec![ValueFileId(4)];
        let after = before.apply(&edit).unwrap();
        assert_eq!(after, shape("L0 r2: 2=a..=z:1,values=7:90/3\nV 6: 30\nV 7: 90"));
        assert_eq!(after.check(), Ok(()));
    }

    #[test]
    fn a_shape_that_breaks_an_invariant_is_refused() {
        let good = shape("L0 r3: 3=a..=z:1\nL0 r2: 1=a..=c:1,values=4:9/1+5:9/1\nV 4: 90\nV 5: 90");
        assert_eq!(good.check(), Ok(()));
        let broken = |change: &dyn Fn(&mut TreeShape)| {
            let mut shape = good.clone();
            change(&mut shape);
            shape.check()
        };
        let order = |shape: &mut TreeShape| shape.levels[0].runs[0].id = RunId(2);
        assert_eq!(broken(&order), Err(ShapeError::RunOrder(0)));
        let twice = |shape: &mut TreeShape| shape.value_files[1] = shape.value_files[0].clone();
        assert_eq!(broken(&twice), Err(ShapeError::ValueFileOrder(ValueFileId(4))));
        let same_file = |shape: &mut TreeShape| {
            let table = Arc::make_mut(&mut shape.levels[0].runs[1].tables[0]);
            table.value_refs = [table.value_refs[0], table.value_refs[0]].into();
        };
        assert_eq!(broken(&same_file), Err(ShapeError::ValueFileOrder(ValueFileId(4))));
        assert_eq!(ShapeError::RunOrder(0).to_string(), "runs of level 0 are out of order");
    }

    #[test]
    fn a_value_file_in_use_may_be_replaced() {
        let before = shape("L1 r2: 1=a..=z:1,values=4:90/3\nV 4: 100");
        let edit = ShapeEdit {
            removed_value_files: vec![ValueFileId(4)],
            value_files: vec![Arc::new(ValueFileInfo::new(4, 95))],
            ..ShapeEdit::default()
        };
        let after = before.apply(&edit).unwrap();
        assert_eq!(after, shape("L1 r2: 1=a..=z:1,values=4:90/3\nV 4: 95"));
    }

    #[test]
    fn value_files_in_use_or_unknown_are_not_removed() {
        let before = shape("L1 r2: 1=a..=z:1,values=4:90/3\nV 4: 100");
        let remove =
            |id| ShapeEdit { removed_value_files: vec![ValueFileId(id)], ..ShapeEdit::default() };
        let used = ShapeError::DanglingValues(TableId(1), ValueFileId(4));
        assert_eq!(before.apply(&remove(4)), Err(used));
        assert_eq!(before.apply(&remove(5)), Err(ShapeError::UnknownValueFile(ValueFileId(5))));
    }
}
