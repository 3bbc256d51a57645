//! The engine under test.
//!
//! Each engine implements [`Store`]; the [driver](crate::driver) calls it through `&dyn Store` from all
//! client threads concurrently. A visitor borrows values instead of receiving copies, so an engine that
//! can expose its own memory need not copy, and the copies that other engines make are measured.

mod counters;
mod glance;

use crate::error::StoreError;

pub use counters::{StallTime, StoreCounters};
pub use glance::{Glance, RunLimit, STALL_CAUSES_MAX};

/// The direction of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Towards larger keys.
    Forward,
    /// Towards smaller keys.
    Backward,
}

/// An ordered key-value store whose keys are compared byte by byte.
///
/// Unless stated otherwise, a completed write survives the death of the process. Results of an engine
/// that guarantees less must say so.
pub trait Store: Send + Sync {
    /// Sets the value of `key`.
    ///
    /// # Errors
    /// The engine failed.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError>;

    /// Sets the value of `key`, so that it survives a power failure once this returns.
    ///
    /// # Errors
    /// The engine failed.
    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError>;

    /// Sets the values of several keys atomically, even if the process dies.
    ///
    /// # Errors
    /// The engine failed.
    fn write_batch(&self, puts: &[(Vec<u8>, Vec<u8>)]) -> Result<(), StoreError>;

    /// Removes `key` if it exists.
    ///
    /// # Errors
    /// The engine failed.
    fn delete(&self, key: &[u8]) -> Result<(), StoreError>;

    /// Removes all keys from `start` on and before `end`.
    ///
    /// # Errors
    /// The engine failed, or has no such operation.
    fn delete_range(&self, start: &[u8], end: &[u8]) -> Result<(), StoreError> {
        let _ = (start, end);
        Err(StoreError::new("delete a range", "this store has no deletes of ranges"))
    }

    /// Passes the value of `key` to `visit`, and returns whether the key exists.
    ///
    /// # Errors
    /// The engine failed.
    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError>;

    /// Passes the values of the existing `keys` to `visit`, in any order, each with the position of its
    /// key in `keys`; returns their number.
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

    /// Passes at most `limit` entries to `visit` in key order, and returns their number.
    ///
    /// A forward scan begins at the first key >= `start`, a backward scan at the last key <=
    /// `start`. Without `start`, a forward scan begins at the first key and a backward scan at the
    /// last key.
    ///
    /// # Errors
    /// The engine failed. An interrupted scan is an error, never a short result.
    fn scan(
        &self,
        start: Option<&[u8]>,
        direction: Direction,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError>;

    /// Starts or ends the testing phase of the two-phase evaluation. During it, an engine must not
    /// reach a rate by deferring work, because it could not sustain that rate.
    ///
    /// # Errors
    /// The engine failed.
    fn set_testing(&self, is_on: bool) -> Result<(), StoreError> {
        let _ = is_on;
        Ok(())
    }

    /// Passes at most `limit` records to `visit` in the order of the first secondary index,
    /// starting at the secondary key `from`, and returns their number.
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
        Err(StoreError::new("scan an index", "this store has no secondary indexes"))
    }

    /// Flushes memtables, and waits until no background work is due.
    ///
    /// # Errors
    /// The engine failed.
    fn settle(&self) -> Result<(), StoreError>;

    /// Returns the engine's counters since it was opened. This may be slow, so it is not called
    /// during a timed run.
    fn counters(&self) -> StoreCounters {
        StoreCounters::default()
    }

    /// Returns cheap gauges of the engine. This is called several times a second during a timed
    /// run.
    fn glance(&self) -> Glance {
        Glance::default()
    }
}
