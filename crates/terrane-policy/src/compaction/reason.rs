//! Reasons of compactions.

use std::fmt;

use crate::strategy::{Movement, TriggerFinding, TriggerKind};

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
        /// value. See [`TriggerInfo::quantity`](crate::strategy::TriggerInfo::quantity).
        measured: u64,
        /// The value that fires the trigger.
        threshold: u64,
        /// The rule that chose the table; `None` if the whole level or tree is compacted.
        movement: Option<Movement>,
    },
    /// The level holds more runs than its eagerness allows, as after a change of design.
    Repair {
        /// The level.
        level: usize,
        /// Runs found.
        runs: u64,
    },
    /// A caller requested the compaction.
    Manual {
        /// The level that is compacted.
        level: usize,
    },
    /// A flush merges with level 0; see [`crate::flush`].
    Flush,
}

impl Reason {
    /// Returns true if tombstones with nothing left to delete are dropped even from tables that
    /// would otherwise stay where they are.
    pub(super) fn purges(self) -> bool {
        match self {
            Self::Manual { .. } => true,
            Self::Repair { .. } | Self::Flush => false,
            Self::Triggered { trigger, .. } => trigger.info().drops_tombstones,
        }
    }

    /// Returns the reason with the rule that chose the table.
    pub(crate) fn chosen_by(self, rule: Movement) -> Self {
        match self {
            Self::Triggered { trigger, level, measured, threshold, .. } => {
                Self::Triggered { trigger, level, measured, threshold, movement: Some(rule) }
            }
            other => other,
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
                movement.map_or(Ok(()), |rule| write!(f, "; table chosen by {rule}"))
            }
            Self::Repair { level, runs } => {
                write!(f, "repair: level {level} holds {runs} runs and may hold one")
            }
            Self::Manual { level } => write!(f, "manual: level {level} is compacted on request"),
            Self::Flush => f.write_str("flush: the memtable is merged with level 0"),
        }
    }
}
