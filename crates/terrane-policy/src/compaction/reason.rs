//! Why a compaction was picked.

use std::fmt;

use crate::strategy::{Movement, TriggerKind};

/// Why a compaction was picked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reason {
    /// A trigger fired.
    Triggered {
        /// The trigger.
        trigger: TriggerKind,
        /// The level that acts.
        level: usize,
        /// What was found, in the unit of the trigger: see [`TriggerKind::quantity`]. Of several
        /// tables, that of the worst.
        measured: u64,
        /// What fires the trigger.
        threshold: u64,
        /// The rule that chose the table; `None` where there was nothing to choose.
        movement: Option<Movement>,
    },
    /// The level holds more runs than its eagerness ever lets it, as after a change of design.
    Repair {
        /// The level.
        level: usize,
        /// Runs found.
        runs: u64,
    },
    /// Someone asked for it.
    Manual {
        /// The level that moves.
        level: usize,
    },
    /// A flush merges with level 0; see [`crate::flush`].
    Flush,
}

impl Reason {
    /// Whether tombstones that have nothing left to delete are to go even from tables that would
    /// otherwise stay as they are.
    pub(super) fn purges(self) -> bool {
        match self {
            Self::Manual { .. } => true,
            Self::Repair { .. } | Self::Flush => false,
            Self::Triggered { trigger, .. } => {
                matches!(trigger, TriggerKind::TombstoneTtl | TriggerKind::TombstoneDensity)
            }
        }
    }

    /// The same reason, with the rule that chose the table.
    pub(crate) fn chosen_by(self, rule: Movement) -> Self {
        match self {
            Self::Triggered { trigger, level, measured, threshold, .. } => {
                Self::Triggered { trigger, level, measured, threshold, movement: Some(rule) }
            }
            other => other,
        }
    }
}

impl TriggerKind {
    /// Says what was found, as a part of a sentence.
    fn tell(self, f: &mut fmt::Formatter<'_>, level: usize, found: u64, limit: u64) -> fmt::Result {
        match self {
            Self::LevelSaturation | Self::RunCount | Self::FileCount => {
                write!(f, "{self}: level {level} holds {found} of {}", self.quantity(limit))
            }
            Self::Prefix | Self::Concurrent => {
                write!(f, "{self}: {found} neighbours of {} belong together", self.quantity(limit))
            }
            Self::SpaceAmplification => {
                write!(
                    f,
                    "{self}: newer runs hold {} of the oldest, more than {limit}",
                    self.quantity(found)
                )
            }
            Self::TombstoneDensity => write!(
                f,
                "{self}: a table of level {level} has {} tombstones, {limit} are enough",
                self.quantity(found)
            ),
            Self::TombstoneTtl | Self::FileStaleness => {
                let what = if self == Self::TombstoneTtl { "a tombstone" } else { "a table" };
                let (age, limit) = (self.quantity(found), self.quantity(limit));
                write!(f, "{self}: {what} of level {level} is {age} old, {limit} are allowed")
            }
            Self::ReadTriggered => {
                let found = self.quantity(found);
                write!(f, "{self}: a table of level {level} had {found}, {limit} are enough")
            }
            Self::Manual => write!(f, "{self}: level {level}"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Triggered { trigger, level, measured, threshold, movement } => {
                trigger.tell(f, *level, *measured, *threshold)?;
                movement.map_or(Ok(()), |rule| write!(f, "; table chosen by {rule}"))
            }
            Self::Repair { level, runs } => {
                write!(f, "repair: level {level} holds {runs} runs and may hold one")
            }
            Self::Manual { level } => write!(f, "manual: level {level} moves on request"),
            Self::Flush => f.write_str("flush: the memtable is merged with level 0"),
        }
    }
}
