//! The tree of a system while its recording is played.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::replay::ReplayError;
use super::trace::{Event, SystemCompaction, Trace};
use crate::key_range::successor;
use crate::pick::Cursors;
use crate::shape::{Level, Run, RunId, TableId, TableInfo, TreeShape};

/// A system's levels, and the last keys that moved out of them.
pub(super) struct SystemTree {
    /// The sorted runs of level 0, newest first; the tables of a run are in key order.
    level0: Vec<Vec<Arc<TableInfo>>>,
    /// Level 1 and so on, in key order.
    deeper: Vec<Vec<Arc<TableInfo>>>,
    base: usize,
    /// The last key that moved out of each level.
    cursors: BTreeMap<usize, Vec<u8>>,
}

impl SystemTree {
    pub(super) fn start(trace: &Trace) -> Result<Self, ReplayError> {
        let level0 = trace.start.first().into_iter().flatten();
        let tree = Self {
            level0: level0.map(|table| vec![Arc::clone(table)]).collect(),
            deeper: trace.start.iter().skip(1).cloned().collect(),
            base: trace.base,
            cursors: trace.cursors.iter().cloned().collect(),
        };
        tree.checked()
    }

    /// Returns the tables by level; level 0 lists the newest run first.
    pub(super) fn levels(&self) -> Vec<Vec<Arc<TableInfo>>> {
        let level0 = self.level0.iter().flatten().cloned().collect();
        std::iter::once(level0).chain(self.deeper.iter().cloned()).collect()
    }

    pub(super) fn base(&self) -> usize {
        self.base
    }

    pub(super) fn cursors(&self) -> Vec<(usize, Vec<u8>)> {
        self.cursors.iter().map(|(level, key)| (*level, key.clone())).collect()
    }

    /// Returns the design's level that corresponds to a level of the system.
    pub(super) fn design_level(&self, level: usize, is_list: bool) -> usize {
        if is_list { 0 } else { level.saturating_sub(self.base.max(1) - 1) }
    }

    /// Returns the tree as a design sees it. If the design treats all runs as one list, so does the
    /// shape.
    pub(super) fn shape(&self, is_list: bool) -> TreeShape {
        let mut levels: Vec<Level> = vec![Level::default()];
        let runs: usize = self.level0.len() + self.deeper.len();
        let mut newest = runs as u64 + 1;
        let mut add = |level: usize, tables: &Vec<Arc<TableInfo>>| {
            levels.resize_with(levels.len().max(level + 1), Level::default);
            newest -= 1;
            if !tables.is_empty() {
                levels[level].runs.push(Run { id: RunId(newest), tables: tables.clone() });
            }
        };
        self.level0.iter().for_each(|tables| add(0, tables));
        for (index, tables) in self.deeper.iter().enumerate() {
            add(self.design_level(index + 1, is_list), tables);
        }
        let used = levels.iter().rposition(|level| !level.runs.is_empty());
        levels.truncate(used.map_or(0, |last| last + 1));
        TreeShape { levels, ..TreeShape::default() }
    }

    /// Returns the cursors as a design sees them.
    pub(super) fn design_cursors(&self, is_list: bool) -> Cursors {
        let mut cursors = Cursors::default();
        for (level, key) in &self.cursors {
            cursors.set(self.design_level(*level, is_list), Some(successor(key)));
        }
        cursors
    }

    /// Applies the system's action.
    pub(super) fn apply(&mut self, event: &Event) -> Result<(), ReplayError> {
        match event {
            Event::Rest => return Ok(()),
            Event::Base(level) => self.base = *level,
            Event::Flush { level: 0, table } => self.level0.insert(0, vec![Arc::clone(table)]),
            Event::Flush { level, table } => self.add(*level, vec![Arc::clone(table)]),
            Event::Compaction(compaction) => self.carry_out(compaction)?,
        }
        self.check()
    }

    fn carry_out(&mut self, compaction: &SystemCompaction) -> Result<(), ReplayError> {
        let mut missing: BTreeSet<TableId> = compaction.input_ids().collect();
        let mut taken: Vec<Arc<TableInfo>> = Vec::new();
        let mut take = |tables: &mut Vec<Arc<TableInfo>>| {
            tables.retain(|table| {
                let stays = !missing.remove(&table.id);
                if !stays {
                    taken.push(Arc::clone(table));
                }
                stays
            });
        };
        self.level0.iter_mut().for_each(&mut take);
        self.deeper.iter_mut().for_each(&mut take);
        if let Some(id) = missing.first() {
            return Err(ReplayError::Unknown(*id));
        }
        // A merge within level 0 takes the place of its newest input.
        let place = self.level0.iter().position(Vec::is_empty).unwrap_or(0);
        self.level0.retain(|run| !run.is_empty());
        self.advance(compaction, &taken);
        let outputs = compaction.outputs.clone().unwrap_or(taken);
        if compaction.level > 0 {
            self.add(compaction.level, outputs);
        } else if !outputs.is_empty() {
            self.level0.insert(place.min(self.level0.len()), outputs);
        }
        Ok(())
    }

    /// Records how far a compaction progressed in the level from which it took tables.
    fn advance(&mut self, compaction: &SystemCompaction, taken: &[Arc<TableInfo>]) {
        let Some((level, ids)) = compaction.inputs.first().filter(|(level, _)| *level > 0) else {
            return;
        };
        let moved = taken.iter().filter(|table| ids.contains(&table.id));
        let last = moved.filter_map(|table| match table.range.end.as_deref() {
            Some([last @ .., 0]) => Some(last.to_vec()),
            _ => None,
        });
        if let Some(last) = last.max() {
            self.cursors.insert(*level, last);
        }
    }

    fn add(&mut self, level: usize, tables: Vec<Arc<TableInfo>>) {
        let index = level - 1;
        self.deeper.resize_with(self.deeper.len().max(index + 1), Vec::new);
        self.deeper[index].extend(tables);
        self.deeper[index].sort_by(|a, b| a.range.start.cmp(&b.range.start));
    }

    fn checked(self) -> Result<Self, ReplayError> {
        self.check().map(|()| self)
    }

    fn check(&self) -> Result<(), ReplayError> {
        self.shape(false).check().map_err(ReplayError::Shape)
    }
}
