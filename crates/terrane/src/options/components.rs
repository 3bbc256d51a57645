//! The dependencies of a database that a program injects.

use std::sync::Arc;

use super::Background;
use crate::base::clock::{Clock, SystemClock};
use crate::base::compaction_filter::CompactionFilters;
use crate::base::event::Listener;
use crate::base::merge_operator::MergeOperators;
use crate::files::storage::{DiskStorage, Storage};

/// The injected dependencies of a database.
#[derive(Debug, Clone)]
pub(crate) struct Components {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) background: Background,
    pub(crate) listener: Option<Listener>,
    pub(crate) merge_operators: MergeOperators,
    pub(crate) compaction_filters: CompactionFilters,
    /// True if the boot id of the storage does not show whether the files lost unsynced data.
    pub(crate) is_after_power_loss: bool,
    /// True if a new database may share its directory with other files.
    pub(crate) is_among_other_files: bool,
}

impl Default for Components {
    fn default() -> Self {
        Self {
            storage: Arc::new(DiskStorage),
            clock: Arc::new(SystemClock),
            background: Background::Threads,
            listener: None,
            merge_operators: MergeOperators::default(),
            compaction_filters: CompactionFilters::default(),
            is_after_power_loss: false,
            is_among_other_files: false,
        }
    }
}
