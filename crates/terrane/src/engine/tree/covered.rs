//! The tables of a version that newer range tombstones cover.

use std::sync::{Arc, Weak};

use crate::merge::{CoveredTable, covered_tables};
use crate::version::Version;

/// The covered tables of a version, determined once per version.
#[derive(Debug, Default)]
pub(crate) struct CoveredTables {
    of: Weak<Version>,
    pub(crate) tables: Vec<CoveredTable>,
}

impl CoveredTables {
    /// Returns true if these are the covered tables of `version`.
    pub(crate) fn is_of(&self, version: &Arc<Version>) -> bool {
        // Comparing addresses is safe because the weak pointer keeps the address from being reused.
        std::ptr::eq(self.of.as_ptr(), Arc::as_ptr(version))
    }

    /// Finds the covered tables of a version. This reads the blocks of range tombstones.
    pub(crate) fn find(version: &Arc<Version>) -> Self {
        let fragments_of =
            |id| version.tables().get(&id).map(|table| table.fragments()).transpose();
        // Tombstones that cannot be read cover nothing; a reader that needs them reports the error.
        let tables = covered_tables(version.shape(), fragments_of).unwrap_or_default();
        Self { of: Arc::downgrade(version), tables }
    }
}
