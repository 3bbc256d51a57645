//! Interruption by SIGINT or SIGTERM.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;

/// Set once SIGINT, SIGTERM or SIGHUP has arrived.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Begins to listen for the signals, which then do not end the process any more.
    pub(crate) fn listen() -> Result<Self> {
        let interrupt = Self::default();
        let heard = interrupt.clone();
        // Relaxed: a flag that carries nothing with it.
        ctrlc::set_handler(move || heard.0.store(true, Ordering::Relaxed))?;
        Ok(interrupt)
    }

    /// Whether a signal has arrived.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
