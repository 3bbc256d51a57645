//! Sizes of tables in which tombstones count for more than their bytes.

use crate::shape::{TableInfo, TreeShape};

/// What a table weighs when a design gives tombstones a weight; its bytes otherwise.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TombstoneWeight {
    /// The bytes that a tombstone counts for, beyond the half of the entries of its table.
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
        // The bytes include those of tombstones. If nearly all entries are tombstones, that is not the
        // size of a value, and the tree would seem many levels too small.
        let value_bytes = bytes.checked_div(values).unwrap_or(0).min(largest.saturating_mul(4));
        Self { tombstone_bytes: value_bytes.saturating_mul(weight.into()) }
    }

    /// As many tombstones as other entries are what a steady load of overwrites leaves behind, and
    /// do not count.
    pub(crate) fn bytes(self, table: &TableInfo) -> u64 {
        let beyond = table.tombstones.saturating_mul(2).saturating_sub(table.entries);
        table.size_bytes.saturating_add(beyond.saturating_mul(self.tombstone_bytes))
    }
}
