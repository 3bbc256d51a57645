//! `level-saturation`: a level holds more bytes than its capacity (compaction paper §3.1.1, i).

use super::rule::{
    LevelContext, Measure, Scope, TriggerInfo, TriggerRule, level_holds, no_argument,
};
use crate::error::ParseError;

/// A level holds more bytes than its capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelSaturation;

static INFO: TriggerInfo = TriggerInfo {
    name: "level-saturation",
    scope: Scope::LevelSize,
    usual: "level-saturation",
    small: &["level-saturation"],
    looks_at_time: false,
    looks_at_accesses: false,
    drops_tombstones: false,
    consists_of: &[],
    quantity: bytes,
    describe: |finding| level_holds(finding, bytes),
};

fn bytes(value: u64) -> String {
    format!("{value} bytes")
}

impl TriggerRule for LevelSaturation {
    fn info() -> &'static TriggerInfo {
        &INFO
    }

    fn parse(argument: Option<&str>, text: &str) -> Result<Self, ParseError> {
        no_argument(argument, text, Self)
    }

    fn measure_level(&self, level: &LevelContext<'_>) -> Option<Measure> {
        Some((level.bytes, level.capacity_bytes))
    }
}
