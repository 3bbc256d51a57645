//! Lets a transaction that failed often go first.
//!
//! Among optimistic transactions, short ones win: a long one can conflict with a new short one in each
//! attempt. So a transaction that failed several times takes the gate, and the commits of others wait.
//! They wait for a bounded time, because the function of the transaction that goes first may itself wait
//! for one of them.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time after which a commit stops waiting.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// The gate that commits pass.
#[derive(Debug, Default)]
pub(crate) struct TransactionGate(Arc<GateState>);

#[derive(Debug, Default)]
struct GateState {
    is_taken: Mutex<bool>,
    opened: Condvar,
}

/// The right to go first, until it is dropped.
#[derive(Debug)]
pub(crate) struct GatePass(Arc<GateState>);

impl TransactionGate {
    /// Waits while another transaction goes first, for a bounded time.
    pub(crate) fn wait(&self) {
        self.0.wait();
    }

    /// Takes the gate; `None` if others hold it for too long.
    pub(crate) fn take(&self) -> Option<GatePass> {
        self.0
            .wait_and(|is_taken| !std::mem::replace(is_taken, true))
            .then(|| GatePass(Arc::clone(&self.0)))
    }
}

impl GateState {
    fn wait(&self) {
        self.wait_and(|is_taken| !*is_taken);
    }

    /// Waits until `pass` returns true. Returns false after `WAIT_MAX`.
    fn wait_and(&self, mut pass: impl FnMut(&mut bool) -> bool) -> bool {
        let mut is_taken = self.is_taken.lock().unwrap_or_else(PoisonError::into_inner);
        if pass(&mut is_taken) {
            return true;
        }
        let until = Instant::now() + WAIT_MAX;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.opened.wait_timeout(is_taken, left);
            is_taken = waited.unwrap_or_else(PoisonError::into_inner).0;
            if pass(&mut is_taken) {
                return true;
            }
        }
    }
}

impl Drop for GatePass {
    fn drop(&mut self) {
        *self.0.is_taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.opened.notify_all();
    }
}
