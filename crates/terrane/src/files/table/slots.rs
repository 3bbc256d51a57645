//! The slots of a table: one for the index, one for the filter, and one per data block.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::stored::TableFileId;
use crate::files::buffer::Slots;

/// The slot of the index.
pub(super) const INDEX_SLOT: usize = 0;

/// The slot of the filter.
pub(super) const FILTER_SLOT: usize = 1;

/// Returns the slot of a data block.
#[inline]
pub(super) fn data_slot(number: usize) -> usize {
    number + 2
}

/// The slots of tables that were written but are not open yet.
#[derive(Debug, Default)]
pub(crate) struct WarmSlots(Mutex<HashMap<TableFileId, Slots>>);

impl WarmSlots {
    fn lock(&self) -> MutexGuard<'_, HashMap<TableFileId, Slots>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, id: TableFileId, slots: Slots) {
        self.lock().insert(id, slots);
    }

    /// Returns the slots of a table that is being opened or will never be opened.
    pub(crate) fn take(&self, id: TableFileId) -> Option<Slots> {
        self.lock().remove(&id)
    }
}
