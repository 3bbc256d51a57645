//! Starts the threads of a database, and ends them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use crate::engine::Engine;
use crate::error::{Error, Result};

/// Compactions that may have begun at the same time, those at rest included, if there are not more
/// threads than that anyway.
const SCHEDULED_MAX: usize = 8;

/// A thread at its work. If a panic ends it, its work is left for ever, and who waits is told.
struct Working<'a> {
    engine: &'a Engine,
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let what = "a thread of the database panicked; see the panic".into();
        self.engine.health.fail(Error::Internal { what });
        self.engine.work.tell_done();
        self.engine.tell_room();
    }
}

impl Engine {
    /// Starts the threads of a database that has them.
    pub(crate) fn start_threads(self: &Arc<Self>) -> Result<()> {
        if self.is_inline() {
            return Ok(());
        }
        self.trees().values().for_each(|tree| tree.retired().keep());
        self.start_thread("terrane-flush".into(), Self::flush_loop)?;
        self.start_thread("terrane-log".into(), Self::log_loop)?;
        for number in 0..self.settings.compaction_threads.max(SCHEDULED_MAX) {
            let run = move |engine: &Engine| engine.compact_loop(number);
            self.start_thread(format!("terrane-compact-{number}"), run)?;
        }
        self.start_drain_threads()
    }

    pub(crate) fn start_thread(
        self: &Arc<Self>,
        name: String,
        run: impl FnOnce(&Engine) + Send + 'static,
    ) -> Result<()> {
        let mut threads = self.work.threads.lock().unwrap_or_else(PoisonError::into_inner);
        // Closing says so before it takes the threads to end them: one that began after that would
        // never be told to end.
        self.health.check_open()?;
        let engine = Arc::clone(self);
        #[allow(clippy::disallowed_methods, reason = "the one place that starts threads")]
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            let _working = Working { engine: &engine };
            run(&engine);
        });
        threads.push(thread.map_err(|error| Error::io("start a thread for", &self.dir, error))?);
        Ok(())
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.work.is_stopping()
    }

    /// Has all threads end, and waits for them. Jobs are given up where they are.
    pub(crate) fn stop_threads(&self) {
        self.work.is_stopping.store(true, Ordering::Release);
        self.work.wake();
        self.work.tell_done();
        self.work.spare_came_up.notify_all();
        self.gate.wake();
        self.work.log_came_up.notify_all();
        self.room.notify_all();
        self.drains.wake_all();
        let threads =
            std::mem::take(&mut *self.work.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A thread that panicked has nothing more to say.
            let _ = thread.join();
        }
        self.trees().values().for_each(|tree| tree.retired().keep_no_more());
        if let Some(pool) = &self.read_pool {
            pool.stop();
        }
    }
}
