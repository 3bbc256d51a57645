//! Finds the tables whose values all expire. Once the last value has expired, the table can be dropped
//! unread.
//!
//! A table hides older versions of its keys until it is dropped. To keep these hidden, all values of the
//! older tables that overlap it must have expired as well. Entries of the same keys in newer sources
//! remain.

use crate::shape::{TableId, TableInfo, TreeShape};

/// A table that can be dropped after a certain time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpiringTable {
    /// The table.
    pub id: TableId,
    /// The time at which its last value and those below it expire, in microseconds since the Unix epoch.
    pub from_micros: u64,
}

/// Returns all tables that can eventually be dropped if the tree does not change.
pub fn expiring_tables(shape: &TreeShape) -> Vec<ExpiringTable> {
    let mut runs: Vec<_> = shape.levels.iter().flat_map(|level| &level.runs).collect();
    let mut found = Vec::new();
    // Proceeds from new to old, so that `runs` contains only older runs.
    while !runs.is_empty() {
        let run = runs.remove(0);
        for table in &run.tables {
            let older = runs.iter().flat_map(|run| run.overlapping(&table.range));
            let all = older.chain([table]).map(|table| expiry_of(table));
            // If a value never expires, the result is `None`, and the table is never dropped.
            let times = all.collect::<Option<Vec<u64>>>();
            let last = times.and_then(|times| times.into_iter().max());
            found.extend(last.map(|from_micros| ExpiringTable { id: table.id, from_micros }));
        }
    }
    found
}

/// Returns when a table's last value expires; `None` if one never does, or if the table deletes ranges,
/// because tombstones must outlive the data below them.
fn expiry_of(table: &TableInfo) -> Option<u64> {
    table.last_value_micros().filter(|_| table.range_tombstones == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expiring(shape: &str) -> Vec<(u64, u64)> {
        let shape: TreeShape = shape.parse().unwrap();
        expiring_tables(&shape).into_iter().map(|table| (table.id.0, table.from_micros)).collect()
    }

    #[test]
    fn a_table_waits_for_the_older_ones_below_it() {
        let tree = "L0 r3: 5=a..=c:1KiB,entries=2,expiring=2@5-9\n\
                    L1 r2: 3=a..=b:1KiB,entries=1,expiring=1@30-30 4=x..=z:1KiB,entries=1";
        assert_eq!(expiring(tree), [(5, 30), (3, 30)]);
        let below = format!("{tree}\nL2 r1: 2=b..=d:1KiB,entries=1");
        assert_eq!(expiring(&below), []);
        let beside = format!("{tree}\nL2 r1: 2=d..=x:1KiB,entries=9");
        assert_eq!(expiring(&beside), [(5, 30), (3, 30)]);
    }

    #[test]
    fn tables_with_lasting_values_or_deleted_ranges_stay() {
        let one = |facts: &str| expiring(&format!("L0 r1: 5=a..=c:1KiB,{facts}"));
        assert_eq!(one("entries=2,expiring=1@5-9"), []);
        assert_eq!(one("entries=2,tombstones=1,expiring=1@5-9"), [(5, 9)]);
        assert_eq!(one("entries=1,range-tombstones=1,expiring=1@5-9"), []);
        assert_eq!(one("entries=1,tombstones=1"), []);
    }
}
