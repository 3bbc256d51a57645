//! Replaces the state of a tree, and registers the tree for the background work that may follow.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use terrane_policy::{Violation, admit_with};

use super::pace::nanos_per_write;
use super::state::NextState;
use super::{DroppableTables, Tree, TreeState, pressure_of};
use crate::engine::context::{Attention, TreeSet};

impl Tree {
    /// Replaces the state with the result of `change`, and updates admission.
    pub(crate) fn replace(&self, change: impl FnOnce(NextState) -> NextState) {
        let _replacing = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.state.load();
        let next = change(NextState {
            active: Arc::clone(&current.active),
            immutables: current.immutables.clone(),
            version: Arc::clone(&current.version),
            readable_to: current.readable_to,
        });
        let design = self.design.load();
        let shape = next.version.shape();
        // Counting visits all tables, so it is skipped if possible: writers replace memtables with
        // the writer lock held.
        let has_changed = !Arc::ptr_eq(&next.version, &current.version);
        let settled_values = if self.counts_values.swap(false, Ordering::Relaxed) || has_changed {
            self.jobs().collectable(shape).settled_values()
        } else {
            current.settled_values
        };
        let admission = admit_with(shape, settled_values, next.immutables.len(), &design);
        let stalled_since = pressure_of(&admission).map(|pressure| {
            let before = pressure_of(&current.admission);
            let continues = before.is_some_and(|before| before.cause == pressure.cause);
            current.stalled_since.filter(|_| continues).unwrap_or_else(Instant::now)
        });
        let NextState { active, immutables, version, readable_to } = next;
        let number = current.number + 1;
        let state = TreeState {
            active,
            immutables,
            version,
            admission,
            settled_values,
            stalled_since,
            nanos_per_write: nanos_per_write(&design),
            spreads: design.constraint.violation == Violation::Spread,
            usage: Arc::clone(&self.usage),
            readable_to,
            number,
        };
        let is_kept = self.retired.add(self.state.swap(Arc::new(state)));
        // A thread that looked at the previous state must not undo this registration, so it follows
        // the new state.
        self.register(&self.state());
        if is_kept {
            self.attention.retired.add(self.id);
        }
        // Release pairs with the acquire in `refresh`.
        self.newest.store(number, Ordering::Release);
    }

    /// Registers the tree for compactions although its state stays the same.
    pub(crate) fn register_for_compactions(&self) {
        self.attention.compactions.add(self.id);
        // A tree is marked as dropped before its state is replaced, which ends its registration.
        if self.is_dropped() {
            self.attention.compactions.remove(self.id);
        }
    }

    /// Registers the tree for the background work that its next state may need. No thread works for a
    /// tree that was dropped, so it would stay registered.
    pub(super) fn register(&self, state: &TreeState) {
        let Attention { memtables, flushes, compactions, drops, .. } = &*self.attention;
        let set = |set: &TreeSet, is_due: bool| set.set(self.id, is_due && !self.is_dropped());
        let has_immutables = !state.immutables.is_empty();
        set(flushes, has_immutables);
        set(memtables, has_immutables || !state.active.is_unwritten());
        set(drops, DroppableTables::may_exist(&state.version));
        // A tree without tables needs no compaction.
        set(compactions, !state.version.runs().is_empty());
    }
}
