//! From a running database to files.

use std::sync::{Arc, PoisonError};

use crate::engine::{Engine, Tree};
use crate::error::{Error, Result};
use crate::event::FlushReason;
use crate::io_budget::IoBudget;

impl Engine {
    /// Flushes everything, ends the log in order and lets go of the directory. No operation is
    /// accepted any more, whatever the outcome.
    ///
    /// # Errors
    /// The first failure; what could not be flushed is in the log, as far as its durability says.
    pub(crate) fn close(&self) -> Result<()> {
        let was_writable = self.health.check_writable();
        self.health.close();
        self.stop_threads();
        self.work.wait_for_helpers();
        let mut result = match was_writable {
            Ok(()) => self.flush_for_close(),
            Err(Error::ReadOnly | Error::Closed) => Ok(()),
            Err(error) => Err(error),
        };
        if result.is_ok() {
            self.keep_operations();
        }
        if let Some(log) = &mut self.lock_writer().log {
            result = result.and(log.close());
        }
        self.let_go();
        result
    }

    /// Ends threads and lets go of the directory, without flushing anything.
    pub(crate) fn abandon_database(&self) {
        self.health.close();
        self.stop_threads();
        self.let_go();
    }

    /// Lets go of the directory, once no caller is at its files. What still goes on in threads of
    /// callers can keep nothing from here on: the files may be another opening's.
    fn let_go(&self) {
        *self.lock_manifest() = None;
        self.lock_writer().log = None;
        self.work.wait_for_helpers();
        self.release_lock();
    }

    fn release_lock(&self) {
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Threads have ended, and with them whatever they were doing.
    fn flush_for_close(&self) -> Result<()> {
        self.work.resume();
        // No one is there any more whom a budget would protect.
        self.gate.set_budget(IoBudget::Unlimited);
        let trees: Vec<Arc<Tree>> = self.trees().values().cloned().collect();
        let is_persistent = self.settings.delete_persistence_micros().is_some();
        if is_persistent {
            self.end_segment_if(|log| log.holds_since().is_some());
        }
        for tree in trees {
            {
                let mut writer = self.lock_writer();
                if !tree.state().active.memtable.is_empty() {
                    self.rotate(&mut writer, &tree, FlushReason::Closing);
                }
            }
            while !tree.state().full.is_empty() {
                self.flush_oldest(&tree)?;
            }
        }
        if let Err(error @ Error::Poisoned(_)) = self.keep_idle_positions() {
            return Err(error);
        }
        if is_persistent {
            // No one will be there when it is due.
            self.let_go_of_log();
        }
        Ok(())
    }
}
