//! The shared handle of an open database, held by every `Db`, keyspace, snapshot and iterator.

use std::sync::Arc;

use crate::api::transaction::gate::TransactionGate;
use crate::base::fork;
use crate::engine::restart_scan::RestartScans;
use crate::engine::{Engine, Opened};

/// An open database, abandoned without a flush when the last reference is dropped.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) engine: Arc<Engine>,
    pub(crate) opened: Opened,
    pub(crate) scans: RestartScans,
    /// The gate that transaction commits pass.
    pub(crate) gate: TransactionGate,
}

impl Handle {
    pub(crate) fn new(engine: Arc<Engine>, opened: Opened) -> Self {
        Self { engine, opened, scans: RestartScans::default(), gate: TransactionGate::default() }
    }
}

impl Drop for Handle {
    /// Stops the threads and releases the directory, without a flush, which could take long or fail.
    /// The log keeps the contents of memtables, except for writes with
    /// [`Durability::None`](crate::Durability::None).
    ///
    /// A forked process only leaks its copy of the database: the threads do not exist there, another
    /// thread may have held any of the locks, and the files belong to the parent.
    fn drop(&mut self) {
        if self.engine.context.health.is_of_this_process() {
            self.engine.abandon();
        } else {
            fork::leak(Arc::clone(&self.engine));
        }
    }
}
