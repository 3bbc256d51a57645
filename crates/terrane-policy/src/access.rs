//! How tables were read: the engine counts, and rules about reads look at the counts.

use std::collections::BTreeMap;

use crate::shape::TableId;

/// How a table was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableAccess {
    /// Lookups that read it.
    pub reads: u64,
    /// When it was read last, in microseconds since the Unix epoch.
    pub last_micros: u64,
}

/// How the tables of a tree were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableAccesses {
    tables: BTreeMap<TableId, TableAccess>,
}

impl TableAccesses {
    /// No table was read.
    pub(crate) const NONE: Self = Self { tables: BTreeMap::new() };

    /// How a table was read.
    pub fn get(&self, table: TableId) -> TableAccess {
        self.tables.get(&table).copied().unwrap_or_default()
    }
}

impl FromIterator<(TableId, TableAccess)> for TableAccesses {
    fn from_iter<I: IntoIterator<Item = (TableId, TableAccess)>>(tables: I) -> Self {
        Self { tables: tables.into_iter().collect() }
    }
}
