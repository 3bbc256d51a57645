//! How the choice of a system differs from that of a design, by rule.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::compaction::Compaction;
use crate::pick::{Cursors, PickContext, pick};
use crate::shape::{TableId, TableInfo, TreeShape};
use crate::strategy::Movement;

/// How the choice of a system differs from that of a design.
///
/// `between` tries the variants in a fixed order; the first that applies is the difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Difference {
    /// The design would choose the same if tombstones counted for more than their bytes, as in
    /// RocksDB, where each tombstone beyond half of a table's entries counts as two more values.
    Deletes,
    /// The system compacts, but the design has nothing to do.
    Rests,
    /// The design compacts, but the system has nothing to do.
    Acts,
    /// The system merges tables of level 0 into level 0.
    WithinLevel0,
    /// The system compacts another level.
    Level,
    /// The system takes only some of the runs, of level 0 or of the list, that the design takes.
    FewerRuns,
    /// The system takes other runs of level 0 or of the list.
    Runs,
    /// The same tables, and more of their level that overlap no additional tables of the next
    /// level.
    Expanded,
    /// The same tables, and others next to them, move without being rewritten.
    MovedTogether,
    /// The same tables of the level, and more.
    MoreTables,
    /// Only some of the tables of the level.
    FewerTables,
    /// Another table, which the design's rule ranks equal: it would move if it were that table's
    /// turn.
    Tie,
    /// Another table: the turns of round-robin movement begin elsewhere.
    Turn,
    /// Another table.
    Table,
    /// The same tables of the level, merged with others of the next level.
    Target,
}

impl Difference {
    /// All differences, in the order in which reports list them.
    pub const ALL: [Self; 15] = [
        Self::Deletes,
        Self::Rests,
        Self::Acts,
        Self::WithinLevel0,
        Self::Level,
        Self::FewerRuns,
        Self::Runs,
        Self::Expanded,
        Self::MovedTogether,
        Self::MoreTables,
        Self::FewerTables,
        Self::Tie,
        Self::Turn,
        Self::Table,
        Self::Target,
    ];

    /// A name of a few words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deletes => "deletes count for more",
            Self::Rests => "design rests",
            Self::Acts => "design acts",
            Self::WithinLevel0 => "within level 0",
            Self::Level => "other level",
            Self::FewerRuns => "fewer runs",
            Self::Runs => "other runs",
            Self::Expanded => "expanded inputs",
            Self::MovedTogether => "moved together",
            Self::MoreTables => "more tables",
            Self::FewerTables => "fewer tables",
            Self::Tie => "tie",
            Self::Turn => "other turn",
            Self::Table => "other table",
            Self::Target => "other tables of the next level",
        }
    }

    /// The rule that detects the difference.
    pub fn rule(self) -> &'static str {
        match self {
            Self::Deletes => {
                "the design chooses the same once tombstones beyond half of a table's entries count for two values each"
            }
            Self::Rests => "the system compacts, and the design has nothing to do",
            Self::Acts => "the system has nothing to do, and the design compacts",
            Self::WithinLevel0 => "the system merges tables of level 0 into level 0",
            Self::Level => "the system compacts another level",
            Self::FewerRuns => "the system takes some of the runs that the design takes",
            Self::Runs => "the system takes other runs of level 0, or of the list of runs",
            Self::Expanded => {
                "the same tables and more of their level, which need no further tables of the next level"
            }
            Self::MovedTogether => {
                "the same tables and more of their level, and none of them is rewritten"
            }
            Self::MoreTables => "the same tables and more of their level, for another reason",
            Self::FewerTables => "some of the tables of the level that the design takes",
            Self::Tie => {
                "another table, which the design takes as well once its turn comes: the rule ranks both equal"
            }
            Self::Turn => {
                "another table under round-robin, which the design takes once the turns begin there"
            }
            Self::Table => "another table of the same level",
            Self::Target => "the same tables of the level with others of the next level",
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The inputs and the output of a compaction, in the levels of the design.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    /// The level that gives up tables.
    level: usize,
    /// Its tables.
    own: BTreeSet<TableId>,
    /// The tables of deeper levels.
    next: BTreeSet<TableId>,
    output: usize,
}

impl Choice {
    pub(super) fn new(shape: &TreeShape, ids: BTreeSet<TableId>, output: usize) -> Self {
        let level_of = |id: TableId| {
            let mut places = shape.places();
            places.find(|place| place.table.id == id).map_or(0, |place| place.level)
        };
        let level = ids.iter().map(|id| level_of(*id)).min().unwrap_or(0);
        let (own, next) = ids.into_iter().partition(|id| level_of(*id) == level);
        Self { level, own, next, output }
    }

    fn of(shape: &TreeShape, job: &Compaction) -> Self {
        Self::new(shape, job.tables().map(|table| table.id).collect(), job.output.level)
    }
}

/// Compares two choices for the tree of `context`; returns `None` if they are equal. A choice of
/// `None` means no compaction.
pub(super) fn between(
    context: &PickContext<'_>,
    system: Option<&Choice>,
    design: Option<&Choice>,
) -> Option<Difference> {
    if system == design {
        return None;
    }
    if with_deletes(context).is_some_and(|choice| choice.as_ref() == system) {
        return Some(Difference::Deletes);
    }
    Some(match (system, design) {
        (Some(system), Some(design)) => of_compactions(context, system, design),
        (None, _) => Difference::Acts,
        (_, None) => Difference::Rests,
    })
}

fn of_compactions(context: &PickContext<'_>, system: &Choice, design: &Choice) -> Difference {
    let is_list = context.design.strategy.size_tiered().is_some();
    if !is_list && system.level == 0 && system.output == 0 {
        return Difference::WithinLevel0;
    }
    if system.level != design.level {
        return Difference::Level;
    }
    let (more, fewer) = (system.own.is_superset(&design.own), system.own.is_subset(&design.own));
    match (more, fewer) {
        (true, true) => Difference::Target,
        (false, true) if system.level == 0 => Difference::FewerRuns,
        _ if system.level == 0 => Difference::Runs,
        (true, false) if system.next.is_empty() => Difference::MovedTogether,
        (true, false) if system.next == design.next => Difference::Expanded,
        (true, false) => Difference::MoreTables,
        (false, true) => Difference::FewerTables,
        (false, false) => other_table(context, system),
    }
}

/// Starts a turn at each table that the system took. If the design then takes that table, its rule
/// did not prefer another.
fn other_table(context: &PickContext<'_>, system: &Choice) -> Difference {
    let rules = context.design.strategy.movement.at(system.level);
    let is_turn =
        |rule: &&Movement| matches!(rule, Movement::RoundRobin | Movement::RoundRobinWithin);
    let in_turns = rules.first().filter(is_turn).is_some();
    let tables = context.shape.tables().filter(|table| system.own.contains(&table.id));
    let takes = |table: &Arc<TableInfo>| {
        let mut cursors: Cursors = context.cursors.clone();
        cursors.set(system.level, Some(Arc::clone(&table.range.start)));
        let job = pick(&PickContext { cursors: &cursors, ..*context });
        job.is_some_and(|job| job.takes(table.id) && job.from_level() == system.level)
    };
    match tables.into_iter().any(takes) {
        true if in_turns => Difference::Turn,
        true => Difference::Tie,
        false => Difference::Table,
    }
}

/// Returns the design's choice if tombstones counted for more than their bytes; `None` if they
/// already do, or if this changes no size.
fn with_deletes(context: &PickContext<'_>) -> Option<Option<Choice>> {
    if context.design.strategy.tombstone_weight > 0 {
        return None;
    }
    let (mut bytes, mut values) = (0u64, 0u64);
    for table in context.shape.tables() {
        bytes += table.size_bytes;
        values += table.entries.saturating_sub(table.tombstones);
    }
    let value = bytes.checked_div(values)?;
    let mut shape = context.shape.clone();
    let mut changed = false;
    let runs = shape.levels.iter_mut().flat_map(|level| &mut level.runs);
    for table in runs.flat_map(|run| &mut run.tables) {
        let beyond = (table.tombstones * 2).saturating_sub(table.entries);
        if beyond > 0 {
            changed = true;
            Arc::make_mut(table).size_bytes += beyond * value * DELETION_WEIGHT;
        }
    }
    if !changed {
        return None;
    }
    let job = pick(&PickContext { shape: &shape, ..*context });
    Some(job.map(|job| Choice::of(&shape, &job)))
}

/// How many values RocksDB adds for each tombstone beyond half of the entries.
const DELETION_WEIGHT: u64 = 2;
