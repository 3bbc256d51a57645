//! Reasons of compactions.

use std::fmt;

use crate::shape::ValueFileId;
use crate::strategy::{MergeCause, Movement, TriggerFinding, TriggerKind};
use crate::units::short_micros;

/// Why a compaction was picked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reason {
    /// A trigger fired.
    Triggered {
        /// The trigger.
        trigger: TriggerKind,
        /// The level that acts.
        level: usize,
        /// The measured value, in the unit of the trigger; if several tables fired it, the worst
        /// value; see [`TriggerInfo::quantity`](crate::strategy::TriggerInfo::quantity).
        measured: u64,
        /// The value that fires the trigger.
        threshold: u64,
        /// The rule that chose the table; `None` if the whole level or tree is compacted.
        movement: Option<Movement>,
    },
    /// A size-tiered policy merged adjacent runs.
    SizeTiered {
        /// The policy.
        trigger: TriggerKind,
        /// The number of runs to merge.
        merged: u64,
        /// The number of runs in the tree.
        of: u64,
        /// Why they are merged.
        cause: MergeCause,
    },
    /// The level keeps no run, so that flushes move on as soon as they have written one.
    Passing {
        /// The level's fullness trigger, for which any run makes the level full.
        trigger: TriggerKind,
        /// The level.
        level: usize,
        /// Runs found.
        runs: u64,
    },
    /// The level holds more runs than its eagerness allows, for example after a change of design.
    Repair {
        /// The level.
        level: usize,
        /// Runs found.
        runs: u64,
        /// Runs allowed.
        allowed: u64,
    },
    /// Writers would be delayed or stopped because of runs that no trigger would merge.
    Stall {
        /// The level that is compacted.
        level: usize,
        /// The number of runs that count.
        runs: u64,
        /// The number at which writers wait.
        limit: u64,
        /// The rule that chose the table; `None` if the whole level is compacted.
        movement: Option<Movement>,
    },
    /// A tombstone has been in its level for its share of the time within which deletes must become
    /// persistent.
    Persistence {
        /// The level that acts.
        level: usize,
        /// The age of the oldest such tombstone, in microseconds.
        age_micros: u64,
        /// The age at which tombstones must leave the level, in microseconds.
        limit_micros: u64,
        /// The rule that chose the table; `None` if the whole level is compacted.
        movement: Option<Movement>,
    },
    /// A caller requested the compaction.
    Manual {
        /// The level that is compacted.
        level: usize,
        /// True if tables that would stay in place are also rewritten, for a compaction filter.
        rewrites: bool,
    },
    /// Adjacent tables of the last level are small.
    Join {
        /// The level.
        level: usize,
        /// The number of tables that are joined.
        tables: u64,
    },
    /// A flush merges with level 0; see [`crate::flush`].
    Flush,
    /// Live values of files with much garbage are copied to new files.
    Collection {
        /// The file with the most garbage, or the oldest; the job may relocate values of other
        /// files too.
        file: ValueFileId,
        /// Why the file is collected.
        cause: CollectionCause,
        /// The measured value, in the unit of the cause.
        measured: u64,
        /// The value that makes a collection due.
        threshold: u64,
    },
}

/// Why a value file is collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CollectionCause {
    /// The file's share of garbage reached its limit, in percent.
    Garbage,
    /// The bytes of all value files over the bytes of live values exceed their bound, in percent.
    Space,
    /// The oldest dead value of the file reached its age, in microseconds.
    Age,
    /// The design stores values inline; nothing is measured.
    Inline,
}

impl Reason {
    /// Returns true if tombstones with nothing left to delete are dropped even from tables that
    /// would otherwise stay where they are.
    pub(super) fn purges(self) -> bool {
        match self {
            Self::Manual { .. } => true,
            Self::Persistence { .. } => true,
            Self::SizeTiered { .. }
            | Self::Passing { .. }
            | Self::Repair { .. }
            | Self::Stall { .. }
            | Self::Join { .. }
            | Self::Flush
            | Self::Collection { .. } => false,
            Self::Triggered { trigger, .. } => trigger.info().drops_tombstones,
        }
    }

    /// Returns true if tables that would otherwise stay where they are must be rewritten.
    pub(super) fn rewrites(self) -> bool {
        matches!(self, Self::Manual { rewrites: true, .. })
    }

    /// Returns true if tables that share no keys are merged as well.
    pub(super) fn joins(self) -> bool {
        matches!(self, Self::Join { .. })
    }

    /// Returns the reason with the rule that chose the table.
    pub(crate) fn chosen_by(self, rule: Movement) -> Self {
        match self {
            Self::Triggered { trigger, level, measured, threshold, .. } => {
                Self::Triggered { trigger, level, measured, threshold, movement: Some(rule) }
            }
            Self::Persistence { level, age_micros, limit_micros, .. } => {
                Self::Persistence { level, age_micros, limit_micros, movement: Some(rule) }
            }
            Self::Stall { level, runs, limit, .. } => {
                Self::Stall { level, runs, limit, movement: Some(rule) }
            }
            other => other,
        }
    }

    /// Returns the level from which a rule chose tables; `None` if the whole level is compacted.
    pub(crate) fn chosen_level(self) -> Option<usize> {
        match self {
            Self::Triggered { level, movement: Some(_), .. }
            | Self::Stall { level, movement: Some(_), .. }
            | Self::Persistence { level, movement: Some(_), .. } => Some(level),
            _ => None,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Triggered { trigger, level, measured, threshold, movement } => {
                let (level, measured, threshold) = (*level, *measured, *threshold);
                let finding = TriggerFinding { level, measured, threshold };
                write!(f, "{trigger}: {}", (trigger.info().describe)(&finding))?;
                by_rule(f, *movement)
            }
            Self::SizeTiered { trigger, merged, of, cause } => {
                write!(f, "{trigger}: {cause}; merges {merged} of {of} runs")
            }
            Self::Passing { trigger, level, runs } => {
                let runs =
                    if *runs == 1 { "1 run moves".into() } else { format!("{runs} runs move") };
                write!(f, "{trigger}: level {level} keeps no run, so its {runs} on")
            }
            Self::Repair { level, runs, allowed } => {
                write!(f, "repair: level {level} holds {runs} runs, limit {allowed}")
            }
            Self::Stall { level, runs, limit, movement } => {
                write!(f, "stall: writers would wait at {limit} runs, and there are {runs}; ")?;
                write!(f, "level {level} is compacted")?;
                by_rule(f, *movement)
            }
            Self::Persistence { level, age_micros, limit_micros, movement } => {
                let (age, limit) = (short_micros(*age_micros), short_micros(*limit_micros));
                write!(f, "delete-persistence: a tombstone of level {level} is {age} old, ")?;
                write!(f, "limit {limit}")?;
                by_rule(f, *movement)
            }
            Self::Manual { level, .. } => {
                write!(f, "manual: level {level} is compacted on request")
            }
            Self::Join { level, tables } => {
                write!(f, "join: {tables} adjacent tables of level {level} are small")
            }
            Self::Flush => f.write_str("flush: the memtable is merged with level 0"),
            Self::Collection { file, cause, measured, threshold } => {
                f.write_str("collection: ")?;
                match cause {
                    CollectionCause::Garbage => {
                        write!(
                            f,
                            "{measured} % of value file {file} is garbage, limit {threshold} %"
                        )
                    }
                    CollectionCause::Space => write!(
                        f,
                        "value files take {measured} % of the bytes of live values, limit {threshold} %"
                    ),
                    CollectionCause::Age => {
                        let (age, limit) = (short_micros(*measured), short_micros(*threshold));
                        write!(f, "a dead value of file {file} is {age} old, limit {limit}")
                    }
                    CollectionCause::Inline => {
                        write!(f, "the design stores the values of file {file} inline")
                    }
                }
            }
        }
    }
}

fn by_rule(f: &mut fmt::Formatter<'_>, movement: Option<Movement>) -> fmt::Result {
    movement.map_or(Ok(()), |rule| write!(f, "; table chosen by {rule}"))
}
