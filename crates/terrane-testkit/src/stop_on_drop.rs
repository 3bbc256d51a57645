//! A guard that stops the other threads of a test.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets a flag when it is dropped, even if the test panics. Threads that loop until the flag is set then
/// end, and the failure is reported.
#[derive(Debug)]
pub struct StopOnDrop<'a>(pub &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
