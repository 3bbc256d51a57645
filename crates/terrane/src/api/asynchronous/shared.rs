//! The parts that all asynchronous handles of a database share.

use std::sync::Arc;

use super::lane::Lane;
use super::limits::AsyncLimits;
use super::operation::Operation;
use crate::api::db::Db;
use crate::base::error::Result;

/// The threads of asynchronous handles: reads do not wait for writes that are stalled or syncing.
#[derive(Debug)]
pub(super) struct Lanes {
    pub(super) reads: Arc<Lane>,
    pub(super) writes: Arc<Lane>,
}

impl Lanes {
    pub(super) fn new(limits: AsyncLimits) -> Self {
        let reads = Lane::new("terrane-read", limits.reads);
        Self { reads, writes: Lane::new("terrane-write", limits.writes) }
    }
}

/// A handle of the database, and the threads.
///
/// Asynchronous handles, snapshots, iterators and running operations drop this after their own parts of
/// the database, so none of them drops the last reference to the database: that joins threads, which
/// an executor must not wait for.
#[derive(Debug)]
pub(super) struct Shared {
    /// Present until the drop.
    db: Option<Db>,
    pub(super) lanes: Lanes,
}

impl Shared {
    pub(super) fn new(db: Db, lanes: Lanes) -> Arc<Self> {
        Arc::new(Self { db: Some(db), lanes })
    }

    /// Returns an operation for a read thread. It drops `this` after its own parts of the database.
    pub(super) fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Operation<T> {
        let this = Arc::clone(self);
        Operation::new(&self.lanes.reads, move || {
            let result = read();
            drop(this);
            result
        })
    }

    /// Returns an operation for a write thread.
    pub(super) fn write<T: Send + 'static>(
        self: &Arc<Self>,
        write: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Operation<T> {
        let this = Arc::clone(self);
        Operation::new(&self.lanes.writes, move || {
            let result = write();
            drop(this);
            result
        })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.lanes.writes.is_of_this_process() {
            // There are no threads, and the handle is not released there.
            return;
        }
        if let Some(db) = self.db.take() {
            // Without a thread, the handle is dropped here.
            let _ = self.lanes.writes.submit(Box::new(move || drop(db)));
        }
        self.lanes.reads.close();
        self.lanes.writes.close();
    }
}
