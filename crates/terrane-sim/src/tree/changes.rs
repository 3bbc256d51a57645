//! Records the tables that enter and leave a tree, for a trace.

use terrane_policy::{RunId, TableId, TableInfo};

use super::{END, SimulatedTree, bounds};
use crate::trace::{TableChange, TracedTable};

/// Returns a table as a trace describes it.
fn traced(level: usize, run: RunId, table: &TableInfo) -> TracedTable {
    let (start, end) = bounds(&table.range);
    let part = |position: u64| position as f64 / END as f64;
    TracedTable {
        table: table.id,
        run,
        level,
        start: part(start),
        end: part(end),
        bytes: table.size_bytes,
        entries: table.entries,
    }
}

impl SimulatedTree {
    /// Returns all tables, by level and recency of their runs, and records all later changes.
    pub(crate) fn record_changes(&mut self) -> Vec<TracedTable> {
        self.changes = Some(Vec::new());
        let runs = self.shape.levels.iter().enumerate();
        let runs =
            runs.flat_map(|(level, content)| content.runs.iter().map(move |run| (level, run)));
        runs.flat_map(|(level, run)| {
            run.tables.iter().map(move |table| traced(level, run.id, table))
        })
        .collect()
    }

    /// Returns the changes since the last call.
    pub(crate) fn take_changes(&mut self) -> Vec<TableChange> {
        self.changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Returns the tree, which records no changes any more.
    pub(crate) fn without_recording(self) -> Self {
        Self { changes: None, ..self }
    }

    pub(super) fn note_added(&mut self, level: usize, run: RunId, table: &TableInfo) {
        if let Some(changes) = &mut self.changes {
            changes.push(TableChange::Added(traced(level, run, table)));
        }
    }

    pub(super) fn note_removed(&mut self, tables: &[TableId]) {
        if let Some(changes) = &mut self.changes {
            changes.extend(tables.iter().map(|table| TableChange::Removed(*table)));
        }
    }
}
