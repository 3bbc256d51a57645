//! A recording of a system's actions on a tree.

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
    /// The number of decisions omitted before the first event.
    pub skipped: usize,
    /// The initial tree: tables by level; level 0 newest first.
    pub start: Vec<Vec<Arc<TableInfo>>>,
    /// The initial base level; see [`Event::Base`].
    pub base: usize,
    /// For each level, the last key that moved out of it, for systems that move tables round-robin.
    pub cursors: Vec<(usize, Vec<u8>)>,
    /// The events, in order.
    pub events: Vec<Event>,
}

/// An event of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A flush created a table.
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
    /// From now on, the system compacts level 0 into this level, and the levels in between are
    /// empty (RocksDB's dynamic level bytes). In designs this is level 1.
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
    /// The outputs; `None` if the inputs moved unchanged.
    pub outputs: Option<Vec<Arc<TableInfo>>>,
}

impl SystemCompaction {
    /// The numbers of all inputs.
    pub fn input_ids(&self) -> impl Iterator<Item = TableId> {
        self.inputs.iter().flat_map(|(_, tables)| tables).copied()
    }
}

impl Event {
    /// Returns true if the event is a decision: what to compact, or that nothing is due.
    pub fn is_decision(&self) -> bool {
        matches!(self, Self::Compaction(_) | Self::Rest)
    }
}

impl Trace {
    /// Returns the recording reduced to its last decisions: earlier events become part of the
    /// initial tree.
    ///
    /// # Errors
    /// Returns an error if an event does not fit the tree.
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
