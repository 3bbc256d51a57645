//! Describes the expiring values of a tree in one line.

use std::fmt::Write;

use terrane::TreeView;
use terrane::policy::Expiry;

use crate::time::utc;
use terrane_lab::output::human::{bytes, count, counted};

/// Reports the number of entries in tables whose values expire, the first and the last expiry time,
/// and the tables that have expired as a whole at `now_micros`; `None` without such entries.
pub(crate) fn expiry(view: &TreeView, now_micros: u64) -> Option<String> {
    let levels = view.shape.levels.iter();
    let tables = levels.flat_map(|level| &level.runs).flat_map(|run| run.tables.iter());
    let (mut all, mut entries, mut with_expiry, mut expired, mut expired_bytes) =
        (None, 0, 0, 0, 0);
    for table in tables {
        entries += table.entries;
        with_expiry += u64::from(table.expiry.is_some());
        all = Expiry::combined(all, table.expiry);
        if table.last_value_micros().is_some_and(|last| last <= now_micros) {
            expired += 1;
            expired_bytes += table.size_bytes;
        }
    }
    let all = all?;
    let (expiring, of) = (count(all.entries), counted(entries, "entry"));
    let (from, until) = (utc(all.first_micros), utc(all.last_micros));
    let mut text = format!(
        "values that expire: {expiring} of {of}, in {}\n  from {from} until {until}",
        counted(with_expiry, "table")
    );
    if expired > 0 {
        let (expired, bytes) = (counted(expired, "table"), bytes(expired_bytes));
        // Writing to a String cannot fail.
        let _ = write!(text, "\n  expired as a whole: {expired}, {bytes}");
    }
    Some(text)
}
