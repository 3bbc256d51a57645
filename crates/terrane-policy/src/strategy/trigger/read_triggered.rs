//! `read-triggered(16KiB)`: lookups read a table often (compaction paper §3.1.1, vii; LevelDB's
//! seek compaction).

use super::rule::{Measure, Scope, TableContext, TriggerInfo, TriggerRule, wrong};
use crate::error::ParseError;
use crate::units::{format_bytes, parse_bytes};

/// Fires if the number of lookups that read a table reaches the table's size divided by this many
/// bytes, and older data lies below the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadTriggered(pub u64);

/// The minimum number of reads that fires the trigger, which is LevelDB's minimum number of seeks
/// before a compaction.
const READS_MIN: u64 = 100;

static INFO: TriggerInfo = TriggerInfo {
    name: "read-triggered",
    scope: Scope::Table,
    usual: "read-triggered(16KiB)",
    small: &["read-triggered(100)"],
    looks_at_time: false,
    looks_at_accesses: true,
    drops_tombstones: false,
    consists_of: &[],
    quantity: |value| format!("{value} reads"),
    describe: |found| {
        let (level, reads, limit) = (found.level, found.measured, found.threshold);
        format!("a table of level {level} had {reads} reads, threshold {limit}")
    },
};

impl TriggerRule for ReadTriggered {
    fn info() -> &'static TriggerInfo {
        &INFO
    }

    fn parse(argument: Option<&str>, text: &str) -> Result<Self, ParseError> {
        match parse_bytes(argument.unwrap_or("16KiB"))? {
            0 => Err(wrong(text, "at least 1 byte a read")),
            bytes => Ok(Self(bytes)),
        }
    }

    fn argument(&self) -> Option<String> {
        Some(format_bytes(self.0))
    }

    fn measure_table(&self, table: &TableContext<'_>) -> Option<Measure> {
        Some((table.reads, (table.table.size_bytes / self.0.max(1)).max(READS_MIN)))
    }
}
