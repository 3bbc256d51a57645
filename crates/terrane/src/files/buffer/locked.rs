//! The lock of a pool.

use std::ops::{Deref, DerefMut};
use std::sync::MutexGuard;

use super::memory::Memory;
use super::pool::State;

/// The locked state. Memory that the lock's owner no longer needs returns to the operating system
/// after the lock is released, because that is slow.
pub(super) struct Locked<'a> {
    // Dropped first: fields are dropped in the order in which they are declared.
    state: MutexGuard<'a, State>,
    garbage: Vec<Memory>,
}

impl<'a> Locked<'a> {
    pub(super) fn new(state: MutexGuard<'a, State>) -> Self {
        Self { state, garbage: Vec::new() }
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.garbage = std::mem::take(&mut self.state.garbage);
    }
}

impl Deref for Locked<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}
