//! Maintenance that Ctrl-C ends.
//!
//! Python records a signal and handles it when the main thread asks for it. A separate thread does the work, so that
//! the calling thread can ask meanwhile. The calling thread returns only after the work has ended, so an
//! interrupted call leaves nothing running.

use std::panic;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use terrane::{Db, Maintenance, Result};

use crate::errors;

/// How often the calling thread looks for signals. A person does not notice the delay, and asking takes the
/// interpreter's lock, for which other threads may have to wait.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(50);

/// Runs maintenance. If a signal handler raises an exception, like the one for Ctrl-C, the work is cancelled.
///
/// # Errors
/// The handler's exception, even if the work ended before it was cancelled; otherwise the error of the work.
pub(crate) fn run(
    py: Python<'_>,
    db: &Db,
    work: impl FnOnce(&Maintenance) -> Result<()> + Send,
) -> PyResult<()> {
    let maintenance = &Maintenance::of(db);
    py.detach(|| {
        thread::scope(|scope| {
            // The channel closes when the work ends, even if it panics.
            let (working, ended) = mpsc::channel::<()>();
            let worker = scope.spawn(move || {
                let _working = working;
                work(maintenance)
            });
            let mut interrupted = Ok(());
            while ended.recv_timeout(BETWEEN_SIGNALS) == Err(RecvTimeoutError::Timeout) {
                if interrupted.is_ok() {
                    interrupted = Python::attach(|py| {
                        py.check_signals().inspect_err(|_| maintenance.cancel())
                    });
                }
            }
            let worked = worker.join().unwrap_or_else(|payload| panic::resume_unwind(payload));
            interrupted.and(worked.map_err(errors::from_engine))
        })
    })
}
