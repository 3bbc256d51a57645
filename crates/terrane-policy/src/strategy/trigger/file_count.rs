//! `file-count`, `file-count(4,40)`: a level holds too many tables (compaction paper §3.1.1, i′).

use super::rule::{LevelContext, Measure, Scope, TriggerInfo, TriggerRule, level_holds, wrong};
use crate::design::PerLevel;
use crate::error::ParseError;

/// Fires if a level holds more tables than the number given for it or, if no numbers are given,
/// more tables than fit its capacity. Below the last level given, the number grows by the size
/// ratio, so that the tree has room for all data.
#[derive(Debug, Clone, PartialEq)]
pub struct FileCount(pub Option<PerLevel<u32>>);

static INFO: TriggerInfo = TriggerInfo {
    name: "file-count",
    scope: Scope::LevelSize,
    usual: "file-count",
    small: &["file-count", "file-count(2,5)"],
    looks_at_time: false,
    looks_at_accesses: false,
    drops_tombstones: false,
    consists_of: &[],
    quantity: tables,
    describe: |finding| level_holds(finding, tables),
};

fn tables(value: u64) -> String {
    format!("{value} tables")
}

impl TriggerRule for FileCount {
    fn info() -> &'static TriggerInfo {
        &INFO
    }

    fn parse(argument: Option<&str>, text: &str) -> Result<Self, ParseError> {
        let Some(argument) = argument else { return Ok(Self(None)) };
        let expected = |_| wrong(text, "tables by level, as in 'file-count(4,40)'");
        let counts: PerLevel<u32> = argument.parse().map_err(expected)?;
        if counts.values().contains(&0) {
            return Err(wrong(text, "at least 1 table"));
        }
        Ok(Self(Some(counts)))
    }

    fn argument(&self) -> Option<String> {
        self.0.as_ref().map(ToString::to_string)
    }

    fn measure_level(&self, level: &LevelContext<'_>) -> Option<Measure> {
        let Some(counts) = &self.0 else {
            let fit = level.capacity_bytes.div_ceil(level.table_bytes.max(1)).max(1);
            return Some((level.tables, fit));
        };
        let ratios = (counts.values().len().max(1)..=level.level).map(level.ratio);
        let allowed = ratios.fold(u64::from(counts.get(level.level)), u64::saturating_mul);
        Some((level.tables, allowed))
    }
}
