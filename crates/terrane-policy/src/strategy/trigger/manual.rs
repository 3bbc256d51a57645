//! `manual`: a level acts only on request.

use super::rule::{Scope, TriggerInfo, TriggerRule, no_argument};
use crate::error::ParseError;

/// Never fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manual;

static INFO: TriggerInfo = TriggerInfo {
    name: "manual",
    scope: Scope::Nothing,
    usual: "manual",
    small: &["manual"],
    looks_at_time: false,
    looks_at_accesses: false,
    drops_tombstones: false,
    consists_of: &[],
    quantity: |value| value.to_string(),
    describe: |finding| format!("level {}", finding.level),
};

impl TriggerRule for Manual {
    fn info() -> &'static TriggerInfo {
        &INFO
    }

    fn parse(argument: Option<&str>, text: &str) -> Result<Self, ParseError> {
        no_argument(argument, text, Self)
    }
}
