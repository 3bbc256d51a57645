//! The engine under test.
//!
//! Implemented once for each engine; called by the [driver](crate::driver) through `&dyn Store`
//! from all client threads at once. Values are lent to a visitor rather than returned, so that an
//! engine that can show its own memory need not copy, and one that cannot copies on its side,
//! where the copy counts.

mod counters;
mod glance;

use crate::error::StoreError;

pub use counters::{StallTime, StoreCounters};
pub use glance::Glance;

/// Which way a scan goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Towards larger keys.
    Forward,
    /// Towards smaller keys.
    Backward,
}

/// An ordered key-value store whose keys are compared byte by byte.
///
/// What a write promises unless it says otherwise is that it survives the death of the process;
/// an engine that promises less must say so where its results are shown.
pub trait Store: Send + Sync {
    /// Sets the value of `key`.
    ///
    /// # Errors
    /// The engine failed.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError>;

    /// Sets the value of `key`, which survives the loss of power when this returns.
    ///
    /// # Errors
    /// The engine failed.
    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError>;

    /// Sets the values of several keys: all of them or, if the process dies, none.
    ///
    /// # Errors
    /// The engine failed.
    fn write_batch(&self, puts: &[(Vec<u8>, Vec<u8>)]) -> Result<(), StoreError>;

    /// Removes `key`, if it is there.
    ///
    /// # Errors
    /// The engine failed.
    fn delete(&self, key: &[u8]) -> Result<(), StoreError>;

    /// Shows the value of `key` to `visit` and answers whether there was one.
    ///
    /// # Errors
    /// The engine failed.
    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError>;

    /// Shows the values of those of `keys` that are there to `visit`, each with the position of
    /// its key in `keys`, in any order; answers how many there were.
    ///
    /// # Errors
    /// The engine failed.
    fn multi_get(
        &self,
        keys: &[Vec<u8>],
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<usize, StoreError> {
        let mut found = 0;
        for (position, key) in keys.iter().enumerate() {
            found += usize::from(self.get(key, &mut |value| visit(position, value))?);
        }
        Ok(found)
    }

    /// Shows at most `limit` entries to `visit` in key order and answers how many there were.
    ///
    /// Forward begins at the first key that is `start` or above, backward at the last key that is
    /// `start` or below; without `start`, at the end of the store that `direction` comes from.
    ///
    /// # Errors
    /// The engine failed. A scan that could not go on is an error, never a short answer.
    fn scan(
        &self,
        start: Option<&[u8]>,
        direction: Direction,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError>;

    /// What follows is the testing phase of the two-phase evaluation, if `is_on`, and otherwise it is
    /// over: an engine that can show a greater rate than it can hold must not do so meanwhile.
    ///
    /// # Errors
    /// The engine failed.
    fn set_testing(&self, is_on: bool) -> Result<(), StoreError> {
        let _ = is_on;
        Ok(())
    }

    /// Shows at most `limit` records to `visit` by the first secondary index, from a secondary key on,
    /// and answers how many there were.
    ///
    /// # Errors
    /// The engine failed, or there is no index.
    fn scan_index(
        &self,
        from: u64,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        let _ = (from, limit, visit);
        Err(StoreError::new("scan an index", "records have no secondary keys here"))
    }

    /// Writes buffers out and waits until no background work is left to do.
    ///
    /// # Errors
    /// The engine failed.
    fn settle(&self) -> Result<(), StoreError>;

    /// What the engine counted since it was opened. May be slow; not called while a run is timed.
    fn counters(&self) -> StoreCounters {
        StoreCounters::default()
    }

    /// What the engine can tell at a glance. Called several times a second while a run is timed.
    fn glance(&self) -> Glance {
        Glance::default()
    }
}
