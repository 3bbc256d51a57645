//! The values of a tree that end, in a line.

use std::fmt::Write;

use terrane::TreeView;
use terrane::policy::Expiry;

use crate::time::utc;
use terrane_lab::output::human::{bytes, count, counted};

/// Says how many entries of tables have a value that ends, from when until when, and which tables have
/// ended as a whole at `now_micros`; `None` if there are no such entries.
pub(crate) fn ends(view: &TreeView, now_micros: u64) -> Option<String> {
    let levels = view.shape.levels.iter();
    let tables = levels.flat_map(|level| &level.runs).flat_map(|run| run.tables.iter());
    let (mut all, mut entries, mut with_ends, mut ended, mut ended_bytes) = (None, 0, 0, 0, 0);
    for table in tables {
        entries += table.entries;
        with_ends += u64::from(table.expiry.is_some());
        all = Expiry::combined(all, table.expiry);
        if table.last_value_micros().is_some_and(|last| last <= now_micros) {
            ended += 1;
            ended_bytes += table.size_bytes;
        }
    }
    let all = all?;
    let (ending, of) = (count(all.entries), counted(entries, "entry"));
    let (from, until) = (utc(all.first_micros), utc(all.last_micros));
    let mut text = format!(
        "values that end: {ending} of {of}, in {}\n  from {from} until {until}",
        counted(with_ends, "table")
    );
    if ended > 0 {
        let (ended, bytes) = (counted(ended, "table"), bytes(ended_bytes));
        // Writing to a String cannot fail.
        let _ = write!(text, "\n  ended as a whole: {ended}, {bytes}");
    }
    Some(text)
}
