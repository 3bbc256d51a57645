//! States of a tree that were replaced while a reader or a writer may have been using them.
//!
//! Whoever is the last to let go of a state frees its memtables and removes tables that are not
//! needed any more. On a disk that is told of what it need not keep that takes a tenth of a second
//! for a table, and a write should not take that long because it happened to look at the tree when a
//! compaction ended. So the threads of a database keep what was replaced until no one uses it, and
//! are the last themselves.

use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::tree::TreeState;

/// What was replaced and not yet let go of.
#[derive(Debug, Default)]
pub(crate) struct Retired {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// There are threads that will let go of what is kept.
    is_kept: bool,
    states: Vec<Arc<TreeState>>,
}

impl Retired {
    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on there are threads that call [`Retired::let_go`].
    pub(crate) fn keep(&self) {
        self.lock().is_kept = true;
    }

    /// There are no such threads any more.
    pub(crate) fn keep_no_more(&self) {
        let states = {
            let mut kept = self.lock();
            kept.is_kept = false;
            std::mem::take(&mut kept.states)
        };
        drop(states);
    }

    /// A state that no one can come to use any more.
    pub(crate) fn add(&self, state: Arc<TreeState>) {
        let mut kept = self.lock();
        if kept.is_kept {
            kept.states.push(state);
        }
    }

    /// Lets go of what no one uses any more. True if there is something that someone does.
    pub(crate) fn let_go(&self) -> bool {
        let (unused, is_left) = {
            let mut kept = self.lock();
            // Uses only become fewer. What this thread is the last to use it frees.
            let all = std::mem::take(&mut kept.states).into_iter();
            let (unused, used): (Vec<_>, _) = all.partition(|state| Arc::strong_count(state) == 1);
            kept.states = used;
            (unused, !kept.states.is_empty())
        };
        drop(unused);
        is_left
    }
}
