//! `tombstone-ttl(1h)`: tombstones have been in a level for too long (compaction paper §3.1.1, v;
//! Lethe §4.1).

use super::rule::{
    Measure, Scope, TableContext, TriggerInfo, TriggerRule, format_times, parse_times,
};
use crate::design::PerLevel;
use crate::error::ParseError;
use crate::units::{format_micros, short_micros};

/// Fires if a table's oldest tombstone is older than this, in microseconds, or its first entry
/// expired longer ago. A single value is the time for the whole tree, of which each level gets a
/// share; a list gives the age for each level.
#[derive(Debug, Clone, PartialEq)]
pub struct TombstoneTtl(pub PerLevel<u64>);

static INFO: TriggerInfo = TriggerInfo {
    name: "tombstone-ttl",
    scope: Scope::Table,
    usual: "tombstone-ttl(1h)",
    small: &["tombstone-ttl(500ms)", "tombstone-ttl(100ms,200ms,400ms)"],
    looks_at_time: true,
    looks_at_accesses: false,
    drops_tombstones: true,
    consists_of: &[],
    quantity: format_micros,
    describe: |found| {
        let (age, limit) = (short_micros(found.measured), short_micros(found.threshold));
        format!("a tombstone of level {} is {age} old, limit {limit}", found.level)
    },
};

impl TriggerRule for TombstoneTtl {
    fn info() -> &'static TriggerInfo {
        &INFO
    }

    fn parse(argument: Option<&str>, text: &str) -> Result<Self, ParseError> {
        parse_times(argument, text).map(Self)
    }

    fn argument(&self) -> Option<String> {
        Some(format_times(&self.0))
    }

    fn measure_table(&self, table: &TableContext<'_>) -> Option<Measure> {
        let since = table.table.dead_since(table.oldest_snapshot_micros)?;
        Some((table.now_micros.saturating_sub(since), table.tombstone_deadline?))
    }

    fn tombstone_times(&self) -> Option<&PerLevel<u64>> {
        Some(&self.0)
    }
}
