//! The interface of movement rules, and their input.

use std::sync::Arc;

use crate::access::TableAccesses;
use crate::shape::{Run, TableInfo, TreeShape};
use crate::strategy::TombstoneWeight;

/// A table of a run, with its index in the run.
pub(crate) type TableChoice<'a> = (usize, &'a Arc<TableInfo>);

/// The data that a rule may use.
pub(crate) struct MovementContext<'a> {
    pub(crate) shape: &'a TreeShape,
    pub(crate) accesses: &'a TableAccesses,
    /// The level that gives up a table.
    pub(crate) level: usize,
    /// The run from which the table is chosen.
    pub(crate) run: &'a Run,
    /// The key at which the next turn starts; `None` for the first key.
    pub(crate) cursor: Option<&'a Arc<[u8]>>,
    /// The weight of tombstones in table sizes.
    pub(crate) weight: TombstoneWeight,
    pub(crate) now_micros: u64,
    /// When the oldest snapshot was taken, if there is one.
    pub(crate) oldest_snapshot_micros: Option<u64>,
    /// The argument of the rule; 0 for rules without one.
    pub(crate) seed: u64,
    /// The age at which tombstones must leave the level, if a trigger sets one.
    pub(crate) tombstone_deadline: Option<u64>,
    /// The percentage of tombstones at which a trigger marks a table of the level; 0 without one.
    pub(crate) dense_percent: u64,
}

/// The properties of a rule. Each has a file, and a line in the list of [`super::Movement`].
#[derive(Debug)]
#[non_exhaustive]
pub struct MovementInfo {
    /// The name in text forms.
    pub name: &'static str,
    /// Other accepted names.
    pub aliases: &'static [&'static str],
    /// Whether the rule ranks every table, so that rules after it are never consulted.
    pub ranks_all: bool,
    /// Whether the rule depends on how tables were read.
    pub looks_at_accesses: bool,
    /// Drops the tables that the rule does not rank, and sorts the rest, the table to move first.
    /// The sort must be stable, because the initial order breaks ties.
    pub(crate) order: fn(&MovementContext<'_>, &mut Vec<TableChoice<'_>>),
}
