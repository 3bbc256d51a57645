//! `file-staleness(1d,7d)`: a table has been in its level for too long (compaction paper §3.1.1,
//! iii).

use super::rule::{
    Measure, Scope, TableContext, TriggerInfo, TriggerRule, format_times, parse_times,
};
use crate::design::PerLevel;
use crate::error::ParseError;
use crate::units::{format_micros, short_micros};

/// Fires if a table of a level is older than this, in microseconds, and older data lies below it.
#[derive(Debug, Clone, PartialEq)]
pub struct FileStaleness(pub PerLevel<u64>);

static INFO: TriggerInfo = TriggerInfo {
    name: "file-staleness",
    scope: Scope::Table,
    usual: "file-staleness(1d)",
    small: &["file-staleness(300ms,600ms)"],
    looks_at_time: true,
    looks_at_accesses: false,
    drops_tombstones: false,
    consists_of: &[],
    quantity: format_micros,
    describe: |found| {
        let (age, limit) = (short_micros(found.measured), short_micros(found.threshold));
        format!("a table of level {} is {age} old, limit {limit}", found.level)
    },
};

impl TriggerRule for FileStaleness {
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
        let age = table.now_micros.saturating_sub(table.table.created_micros);
        Some((age, self.0.get(table.level)))
    }
}
