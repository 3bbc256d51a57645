//! What a system did to a tree.

use std::sync::Arc;

use super::replay::ReplayError;
use super::tree::SystemTree;
use crate::shape::{TableId, TableInfo};

/// A recording of one run of a system. The module `text` has its text form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// The system and its version.
    pub system: String,
    /// The options that the system ran with.
    pub options: String,
    /// The load.
    pub load: String,
    /// The design that stands for the system, as text.
    pub design: String,
    /// Decisions that were left out before the first event.
    pub skipped: usize,
    /// The tree at the beginning: tables by level; those of level 0 with the newest first.
    pub start: Vec<Vec<Arc<TableInfo>>>,
    /// The base level at the beginning; see [`Event::Base`].
    pub base: usize,
    /// For each level, the last key that moved out of it, for systems that move tables round-robin.
    pub cursors: Vec<(usize, Vec<u8>)>,
    /// What happened, in order.
    pub events: Vec<Event>,
}

/// An event of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A flush made a table.
    Flush {
        /// The level that took the table.
        level: usize,
        /// The table.
        table: Arc<TableInfo>,
    },
    /// The system chose a compaction and carried it out.
    Compaction(SystemCompaction),
    /// The system had no compaction to do.
    Rest,
    /// From here on, the system compacts level 0 into this level, and the levels between them are
    /// empty (RocksDB's dynamic level bytes). A design calls this level 1.
    Base(usize),
}

/// A compaction of a system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemCompaction {
    /// The reason that the system gave, or `-`.
    pub reason: String,
    /// The inputs, by level.
    pub inputs: Vec<(usize, Vec<TableId>)>,
    /// The level of the outputs.
    pub level: usize,
    /// The outputs; `None` if the inputs moved as they are.
    pub outputs: Option<Vec<Arc<TableInfo>>>,
}

impl SystemCompaction {
    /// The numbers of all inputs.
    pub fn input_ids(&self) -> impl Iterator<Item = TableId> {
        self.inputs.iter().flat_map(|(_, tables)| tables).copied()
    }
}

impl Event {
    /// Returns true if the system decided something: what to compact, or that nothing is due.
    pub fn is_decision(&self) -> bool {
        matches!(self, Self::Compaction(_) | Self::Rest)
    }
}

impl Trace {
    /// Returns the same recording without all but the last decisions: the events before them become
    /// part of the tree at the beginning.
    ///
    /// # Errors
    /// An event does not fit the tree.
    pub fn last(&self, decisions: usize) -> Result<Self, ReplayError> {
        let all = self.events.iter().filter(|event| event.is_decision()).count();
        let mut left_out = all.saturating_sub(decisions);
        let mut tree = SystemTree::start(self)?;
        let mut rest = self.events.as_slice();
        let skipped = self.skipped + left_out;
        while let Some((event, others)) = rest.split_first().filter(|_| left_out > 0) {
            tree.apply(event)?;
            left_out -= usize::from(event.is_decision());
            rest = others;
        }
        Ok(Self {
            skipped,
            start: tree.levels(),
            base: tree.base(),
            cursors: tree.cursors(),
            events: rest.to_vec(),
            ..self.clone()
        })
    }
}
