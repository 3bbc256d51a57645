//! From a running database to files.

use std::sync::{Arc, PoisonError};

use super::assembly::Engine;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::event::FlushReason;
use crate::engine::tree::Tree;
use crate::files::wal::Ending;

impl Engine {
    /// Flushes all memtables, ends the log and releases the directory. From now on no operation is
    /// accepted, regardless of the result.
    ///
    /// # Errors
    /// The first failure. Entries that could not be flushed remain in the log, except those written
    /// with [`Durability::None`](crate::Durability::None).
    pub(crate) fn close(&self) -> Result<()> {
        self.context.health.check_process()?;
        self.context.check_outside_listener("close")?;
        // A second caller waits until the database is closed.
        let _closing = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        let was_writable = self.context.health.check_writable();
        self.context.health.close();
        self.stop_threads();
        self.context.signals.wait_for_callers();
        let mut result = match was_writable {
            Ok(()) => self.flush_for_close(),
            Err(Error::ReadOnly | Error::Closed) => Ok(()),
            Err(error) => Err(error),
        };
        if result.is_ok() {
            self.catalog.save_history();
        }
        // Without the lock, another process may already be using the log files.
        let is_locked = !result.as_ref().is_err_and(Error::is_directory_lost);
        let mut writer = self.pipeline.lock();
        if let Some(log) = writer.log.as_mut().filter(|_| is_locked && !self.pipeline.is_broken()) {
            result = result.and(log.close());
        }
        drop(writer);
        self.release_dir();
        result
    }

    /// Ends the threads and releases the directory, without a flush.
    pub(crate) fn abandon(&self) {
        self.context.health.close();
        self.stop_threads();
        self.release_dir();
    }

    fn stop_threads(&self) {
        self.jobs.stop_threads();
        self.reader.stop();
    }

    /// Releases the directory once no caller works on its files. Jobs that still run in callers'
    /// threads can no longer commit anything, because the files may belong to another opening.
    fn release_dir(&self) {
        // Files that a reader still needs are removed by the next opening.
        self.catalog.retry_removals();
        self.catalog.close();
        self.pipeline.lock().log = None;
        self.context.signals.wait_for_callers();
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Flushes all memtables. The threads have ended, and with them their jobs.
    fn flush_for_close(&self) -> Result<()> {
        self.jobs.resume_for_close();
        let trees: Vec<Arc<Tree>> = self.catalog.trees().values().cloned().collect();
        let is_persistent = self.context.settings.delete_persistence_micros().is_some();
        if is_persistent {
            self.pipeline.end_segment_if(Ending::Aged, |log| log.holds_since().is_some());
        }
        for tree in &trees {
            let mut writer = self.pipeline.lock();
            if !tree.state().active.memtable.is_empty() {
                self.pipeline.rotate(&mut writer, tree, FlushReason::Closing);
            }
        }
        self.jobs.flusher.flush_all(&trees)?;
        match self.catalog.store_idle_positions() {
            Err(error) if error.kind() == ErrorKind::Poisoned => return Err(error),
            _ => {}
        }
        if is_persistent {
            // While the database is closed, nothing would free the log in time.
            self.catalog.release_idle_log();
        }
        Ok(())
    }
}
