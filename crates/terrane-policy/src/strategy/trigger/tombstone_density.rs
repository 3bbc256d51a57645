//! `tombstone-density(50)`: a large part of a table consists of tombstones (compaction paper
//! §3.1.1, vi; Table 2, TSD).

use super::rule::{Measure, Scope, TableContext, TriggerInfo, TriggerRule, parse_percent, percent};
use crate::error::ParseError;

/// Fires if at least this percentage of a table's entries are tombstones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TombstoneDensity(pub u32);

static INFO: TriggerInfo = TriggerInfo {
    name: "tombstone-density",
    scope: Scope::Table,
    usual: "tombstone-density(50)",
    small: &["tombstone-density(30)"],
    looks_at_time: false,
    looks_at_accesses: false,
    drops_tombstones: true,
    consists_of: &[],
    quantity: percent,
    describe: |found| {
        let (has, limit) = (percent(found.measured), percent(found.threshold));
        format!("a table of level {} has {has} tombstones, threshold {limit}", found.level)
    },
};

impl TriggerRule for TombstoneDensity {
    fn info() -> &'static TriggerInfo {
        &INFO
    }

    fn parse(argument: Option<&str>, text: &str) -> Result<Self, ParseError> {
        argument.map_or(Ok(50), |percent| parse_percent(percent, 100, text)).map(Self)
    }

    fn argument(&self) -> Option<String> {
        Some(self.0.to_string())
    }

    fn measure_table(&self, table: &TableContext<'_>) -> Option<Measure> {
        let table = table.table;
        table.has_tombstones().then(|| (table.tombstone_percent(), u64::from(self.0)))
    }
}
