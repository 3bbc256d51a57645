//! The thread of the log: syncs that are due, and what is made ready before writers need it.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::engine::Engine;

impl Engine {
    /// Syncs the log when that is due, readies what of it will be written to next, and cleans what
    /// will be written again.
    pub(crate) fn log_loop(&self) {
        while !self.work.is_stopping() {
            let mut guard = self.work.lock();
            if let Some(pages) = guard.pages.take() {
                drop(guard);
                pages.make();
                self.pool.prepare();
                continue;
            }
            if let Some(header) = guard.header.take() {
                drop(guard);
                let synced = self.log_sync.sync_header(&header);
                let _ = synced.inspect_err(|error| self.health.fail(error.clone()));
                continue;
            }
            let is_due = guard.sync_due.is_some_and(|due| due <= Instant::now());
            if !is_due && let Some(segment) = guard.unclean.pop() {
                drop(guard);
                self.clean_segment(segment);
                continue;
            }
            let left = guard.sync_due.map(|due| due.saturating_duration_since(Instant::now()));
            match left {
                // Told to stop since this was asked, or not: no one tells it twice.
                _ if self.work.is_stopping() => {}
                None => {
                    let waited = self.work.log_came_up.wait(guard);
                    drop(waited.unwrap_or_else(PoisonError::into_inner));
                }
                Some(Duration::ZERO) => {
                    guard.sync_due = None;
                    drop(guard);
                    self.work.is_sync_due.store(false, Ordering::Release);
                    // A failure is kept where writers find it.
                    let _ = self.sync_log();
                }
                Some(left) => {
                    let waited = self.work.log_came_up.wait_timeout(guard, left);
                    drop(waited.unwrap_or_else(PoisonError::into_inner));
                }
            }
        }
        // No one will be there when it is due.
        let is_owed = self.work.lock().sync_due.take().is_some();
        if is_owed {
            let _ = self.sync_log();
        }
    }

    pub(crate) fn make_spare(&self) {
        let spare = self.work.lock().spare.take();
        if let Some(spare) = spare {
            let made = spare.make(&*self.storage, &self.dir).ok();
            if let Some(log) = &mut self.lock_writer().log {
                log.give_spare(made);
            }
        }
    }
}
