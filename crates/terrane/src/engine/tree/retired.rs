//! Replaced states of a tree that readers or writers may still be using.
//!
//! Dropping the last reference to a state frees its memtables and deletes obsolete tables. On a
//! disk with TRIM, deleting a table takes about 100 ms. A write must not pay for that only because
//! it used the state when a compaction ended. So a background thread keeps every replaced state
//! until the thread has the only reference, and then drops it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::state::TreeState;

/// Writers and most lookups use a replaced state for no longer than this.
const BRIEFLY: Duration = Duration::from_millis(2);

/// The replaced states of a tree.
#[derive(Debug, Default)]
pub(crate) struct RetiredStates {
    list: Mutex<RetiredList>,
}

#[derive(Debug, Default)]
struct RetiredList {
    /// Some thread calls [`RetiredStates::drop_unused`]; otherwise states are not kept.
    is_kept: bool,
    /// Each with the time at which it was replaced.
    states: Vec<(Instant, Arc<TreeState>)>,
}

impl RetiredStates {
    fn lock(&self) -> std::sync::MutexGuard<'_, RetiredList> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to keep replaced states, because a thread calls [`Self::drop_unused`] from now on.
    pub(crate) fn keep(&self) {
        self.lock().is_kept = true;
    }

    /// Drops all states and keeps no further states, because the thread has ended.
    pub(crate) fn keep_no_more(&self) {
        let states = {
            let mut list = self.lock();
            list.is_kept = false;
            std::mem::take(&mut list.states)
        };
        drop(states);
    }

    /// Adds a replaced state, which gains no new users. Returns true if it is kept.
    pub(super) fn add(&self, state: Arc<TreeState>) -> bool {
        let mut list = self.lock();
        if list.is_kept {
            list.states.push((Instant::now(), state));
        }
        list.is_kept
    }

    /// Returns true if a state was replaced some time ago and is still used, so that flushes do not free its
    /// memtables.
    pub(crate) fn are_used(&self) -> bool {
        let is_used = |(since, state): &(Instant, Arc<TreeState>)| {
            Arc::strong_count(state) > 1 && since.elapsed() >= BRIEFLY
        };
        self.lock().states.iter().any(is_used)
    }

    /// Drops the states that are no longer used. Returns true if some are still in use.
    pub(crate) fn drop_unused(&self) -> bool {
        let (unused, is_left) = {
            let mut list = self.lock();
            // The number of references to a retired state only falls, so a state with one reference
            // has no other user.
            let all = std::mem::take(&mut list.states).into_iter();
            let (unused, used): (Vec<_>, _) =
                all.partition(|(_, state)| Arc::strong_count(state) == 1);
            list.states = used;
            (unused, !list.states.is_empty())
        };
        drop(unused);
        is_left
    }
}
