//! Table sizes in which tombstones count for more than their bytes.

use crate::shape::{TableInfo, TreeShape};

/// Computes the weight of a table if a design gives tombstones a weight; otherwise its bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TombstoneWeight {
    /// How many bytes each tombstone beyond half of its table's entries counts as.
    tombstone_bytes: u64,
}

impl TombstoneWeight {
    /// Returns the weight of tombstones in a tree in which a tombstone counts for `weight` values.
    pub(crate) fn of(shape: &TreeShape, weight: u32) -> Self {
        if weight == 0 {
            return Self::default();
        }
        let (mut bytes, mut values, mut largest) = (0u64, 0u64, 0u64);
        for table in shape.tables() {
            bytes = bytes.saturating_add(table.size_bytes);
            values = values.saturating_add(table.entries.saturating_sub(table.tombstones));
            largest = largest.max(table.size_bytes / table.entries.max(1));
        }
        // The bytes include tombstones. If nearly all entries are tombstones, the quotient is far
        // above the size of a value, and the tree would seem many levels too small.
        let value_bytes = bytes.checked_div(values).unwrap_or(0).min(largest.saturating_mul(4));
        Self { tombstone_bytes: value_bytes.saturating_mul(weight.into()) }
    }

    /// Tombstones up to the number of other entries do not count, because a steady load of
    /// overwrites leaves that many behind.
    pub(crate) fn bytes(self, table: &TableInfo) -> u64 {
        let beyond = table.tombstones.saturating_mul(2).saturating_sub(table.entries);
        table.size_bytes.saturating_add(beyond.saturating_mul(self.tombstone_bytes))
    }
}
