//! The tables of a version that can be dropped unread, because newer range tombstones cover them or
//! all of their values expire.

use std::sync::{Arc, Weak};

use terrane_policy::{ExpiringTable, expiring_tables};

use crate::engine::merge::{CoveredTable, covered_tables};
use crate::engine::version::Version;

/// The tables of a version that can be dropped, determined once per version.
#[derive(Debug, Default)]
pub(crate) struct DroppableTables {
    of: Weak<Version>,
    pub(crate) tables: Vec<CoveredTable>,
    pub(crate) expiring: Vec<ExpiringTable>,
}

impl DroppableTables {
    /// Returns true if a version may have such tables.
    pub(crate) fn may_exist(version: &Version) -> bool {
        version.has_range_tombstones() || version.has_expiry()
    }

    /// Returns true if these tables were determined for `version`.
    pub(crate) fn is_of(&self, version: &Arc<Version>) -> bool {
        // Comparing addresses is safe because the weak pointer keeps the address from being reused.
        std::ptr::eq(self.of.as_ptr(), Arc::as_ptr(version))
    }

    /// Finds the tables of a version. This reads the blocks of range tombstones.
    pub(crate) fn find(version: &Arc<Version>) -> Self {
        let fragments_of =
            |id| version.tables().get(&id).map(|table| table.fragments()).transpose();
        // Tombstones that cannot be read cover nothing; a reader that needs them reports the error.
        let tables = covered_tables(version.shape(), fragments_of).unwrap_or_default();
        Self { of: Arc::downgrade(version), tables, expiring: expiring_tables(version.shape()) }
    }
}
