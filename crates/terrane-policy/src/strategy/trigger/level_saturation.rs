//! `level-saturation`: a level holds more bytes than its capacity (compaction paper §3.1.1, i).

use super::rule::{
    LevelContext, Measure, Scope, TriggerFinding, TriggerInfo, TriggerRule, no_argument,
};
use crate::error::ParseError;
use crate::units::short_bytes;

/// Fires if a level holds more bytes than its capacity.
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
    quantity: short_bytes,
    describe: |&TriggerFinding { level, measured, threshold }| {
        let (held, capacity) = (short_bytes(measured), short_bytes(threshold));
        if held == capacity && measured != threshold {
            return format!("level {level} holds {measured} of {threshold} bytes");
        }
        format!("level {level} holds {held} of {capacity}")
    },
};

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
