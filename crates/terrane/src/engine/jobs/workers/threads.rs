//! Starts and ends the threads of a database.

use std::sync::{Arc, PoisonError};

use super::Jobs;
use crate::base::error::{Error, Result};
use crate::base::turns;
use crate::engine::catalog::Catalog;
use crate::engine::context::{CACHE_BYTES_MIN, Context};

/// Fails the database if a panic ends a thread that runs jobs, so that no caller waits for its
/// jobs.
pub(super) struct PanicGuard<'a> {
    context: &'a Context,
    catalog: &'a Catalog,
    what: &'static str,
    /// True if the thread was already unwinding: destructors may use the database.
    was_panicking: bool,
}

impl<'a> PanicGuard<'a> {
    fn of_thread(context: &'a Context, catalog: &'a Catalog) -> Self {
        Self::new(context, catalog, "a thread of the database panicked; see the panic")
    }

    /// Guards a job in a caller's thread.
    pub(super) fn of_caller(context: &'a Context, catalog: &'a Catalog) -> Self {
        Self::new(context, catalog, "a job panicked in the thread of a caller; see the panic")
    }

    fn new(context: &'a Context, catalog: &'a Catalog, what: &'static str) -> Self {
        Self { context, catalog, what, was_panicking: std::thread::panicking() }
    }
}

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if self.was_panicking || !std::thread::panicking() {
            return;
        }
        self.context.health.fail(Error::Internal { what: self.what.into() });
        self.context.signals.notify_done();
        self.catalog.notify_stalled_writers();
    }
}

impl Jobs {
    /// Starts the threads, unless background work is inline.
    pub(crate) fn start_threads(self: &Arc<Self>) -> Result<()> {
        if self.context.is_inline() {
            return Ok(());
        }
        self.catalog.keep_retired();
        for number in 0..self.context.flush_memory.jobs_max() {
            let run = move |jobs: &Self| jobs.run_flush_thread(number);
            self.start_thread(format!("terrane-flush-{number}"), run)?;
        }
        self.start_thread("terrane-log".into(), |jobs| jobs.pipeline.run_log_thread())?;
        for number in 0..self.context.compaction_memory.jobs_max() {
            let run = move |jobs: &Self| jobs.run_compaction_thread(number);
            self.start_thread(format!("terrane-compact-{number}"), run)?;
        }
        let Context { memory_plan, settings, .. } = &*self.context;
        if settings.cache_bytes_max().min(memory_plan.usable_bytes as u64) >= CACHE_BYTES_MIN {
            self.start_thread("terrane-memory".into(), Self::run_memory_thread)?;
        }
        self.start_drain_threads()
    }

    pub(super) fn start_thread(
        self: &Arc<Self>,
        name: String,
        run: impl FnOnce(&Self) + Send + 'static,
    ) -> Result<()> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        // This is checked with the lock. Closing first marks the database closed and then takes the
        // list of threads to join them, so a thread that starts here is joined.
        self.context.health.check_open()?;
        let jobs = Arc::clone(self);
        #[allow(clippy::disallowed_methods, reason = "the one place that starts threads")]
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            let _guard = PanicGuard::of_thread(&jobs.context, &jobs.catalog);
            turns::take_short_turns();
            run(&jobs);
        });
        let dir = &self.context.dir;
        threads.push(thread.map_err(|error| Error::io("start a thread for", dir, error))?);
        Ok(())
    }

    /// Stops all threads and waits for them. Jobs that are running are abandoned.
    pub(crate) fn stop_threads(&self) {
        self.context.signals.stop();
        self.gate.wake();
        self.context.memory_pressure.stop();
        self.pipeline.stop();
        self.context.signals.drains.wake_all();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // An event listener may drop the last handle in the thread that calls it. That thread
            // ends with its job, which fails because the manifest is closed.
            if thread.thread().id() != std::thread::current().id() {
                // If the thread panicked, the database has failed already.
                let _ = thread.join();
            }
        }
        self.catalog.keep_no_retired();
    }
}
