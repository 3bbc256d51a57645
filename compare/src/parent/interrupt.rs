//! Interruption by SIGINT, SIGTERM or SIGHUP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;

/// Set once SIGINT, SIGTERM or SIGHUP has arrived.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Installs handlers for the signals, which then no longer end the process.
    pub(crate) fn listen() -> Result<Self> {
        let interrupt = Self::default();
        let heard = interrupt.clone();
        // Relaxed: the flag orders no other memory access.
        ctrlc::set_handler(move || heard.0.store(true, Ordering::Relaxed))?;
        Ok(interrupt)
    }

    /// Returns true if a signal has arrived.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
