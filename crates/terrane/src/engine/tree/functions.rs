//! The application functions that a tree uses.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;

use crate::base::compaction_filter::KeyspaceFilter;
use crate::base::merge_operator::MergeOperator;

/// The functions of a tree.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    merge_operator: OnceLock<Arc<dyn MergeOperator>>,
    compaction_filter: ArcSwapOption<KeyspaceFilter>,
}

impl Functions {
    /// The merge operator, once the keyspace has one. It is never replaced.
    #[inline]
    pub(crate) fn merge_operator(&self) -> &OnceLock<Arc<dyn MergeOperator>> {
        &self.merge_operator
    }

    /// The compaction filter, whether or not it is applied.
    pub(crate) fn compaction_filter(&self) -> Option<Arc<KeyspaceFilter>> {
        self.compaction_filter.load_full()
    }

    /// The filter for compactions that begin now.
    pub(crate) fn active_filter(&self) -> Option<Arc<KeyspaceFilter>> {
        self.compaction_filter().filter(|filter| filter.inactive_reason().is_none())
    }

    pub(crate) fn set_compaction_filter(&self, filter: Option<KeyspaceFilter>) {
        self.compaction_filter.store(filter.map(Arc::new));
    }
}
