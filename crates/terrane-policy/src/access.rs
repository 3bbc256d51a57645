//! Read counts of tables. The engine maintains them; triggers and movement rules look at them.

use std::collections::BTreeMap;

use crate::shape::TableId;

/// The reads of one table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableAccess {
    /// Lookups that read it.
    pub reads: u64,
    /// The time of the last read, in microseconds since the Unix epoch.
    pub last_micros: u64,
}

/// The reads of the tables of one tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableAccesses {
    tables: BTreeMap<TableId, TableAccess>,
}

impl TableAccesses {
    /// A tree of which no table was read.
    pub(crate) const NONE: Self = Self { tables: BTreeMap::new() };

    /// Returns the reads of a table.
    pub fn get(&self, table: TableId) -> TableAccess {
        self.tables.get(&table).copied().unwrap_or_default()
    }
}

impl FromIterator<(TableId, TableAccess)> for TableAccesses {
    fn from_iter<I: IntoIterator<Item = (TableId, TableAccess)>>(tables: I) -> Self {
        Self { tables: tables.into_iter().collect() }
    }
}
