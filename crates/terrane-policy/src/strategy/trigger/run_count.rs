//! `run-count`: a level holds more sorted runs than allowed (compaction paper §3.1.1, ii).
//!
//! The strategy's eagerness determines how many runs a level may hold; [`crate::pick`] counts them.

use super::rule::{Scope, TriggerInfo, TriggerRule, level_holds, no_argument, runs};
use crate::error::ParseError;

/// Fires if a level holds more sorted runs than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunCount;

static INFO: TriggerInfo = TriggerInfo {
    name: "run-count",
    scope: Scope::LevelRuns,
    usual: "run-count",
    small: &["run-count"],
    looks_at_time: false,
    looks_at_accesses: false,
    drops_tombstones: false,
    consists_of: &[],
    quantity: runs,
    describe: |finding| level_holds(finding, runs),
};

impl TriggerRule for RunCount {
    fn info() -> &'static TriggerInfo {
        &INFO
    }

    fn parse(argument: Option<&str>, text: &str) -> Result<Self, ParseError> {
        no_argument(argument, text, Self)
    }
}
