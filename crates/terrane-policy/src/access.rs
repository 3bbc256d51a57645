//! Read counts of tables. The engine maintains them; triggers and movement rules read them.

use std::collections::BTreeMap;

use crate::shape::TableId;

/// How often and when one table was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableAccess {
    /// The number of lookups that read the table.
    pub reads: u64,
    /// The time of the last read, in microseconds since the Unix epoch.
    pub last_micros: u64,
}

/// How often and when each table of one tree was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableAccesses {
    tables: BTreeMap<TableId, TableAccess>,
}

impl TableAccesses {
    /// The read counts of a tree whose tables have never been read.
    pub(crate) const NONE: Self = Self { tables: BTreeMap::new() };

    /// Returns the read counts of a table.
    pub fn get(&self, table: TableId) -> TableAccess {
        self.tables.get(&table).copied().unwrap_or_default()
    }
}

impl FromIterator<(TableId, TableAccess)> for TableAccesses {
    fn from_iter<I: IntoIterator<Item = (TableId, TableAccess)>>(tables: I) -> Self {
        Self { tables: tables.into_iter().collect() }
    }
}
