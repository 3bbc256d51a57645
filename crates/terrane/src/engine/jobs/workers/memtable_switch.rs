//! Switches memtables to a kind that better suits the operations, for designs that leave the kind
//! open.
//!
//! A kind is chosen when a memtable is created, and is kept while few keys are written. Readers
//! wake a worker after a number of lookups. Policy sums up the excess cost of these lookups, and
//! this module carries out a change that pays off.

use std::sync::Arc;

use terrane_policy::Admission;
use terrane_policy::memtable_choice::MemtableSelection;
use terrane_policy::memtable_choice::regret::Change;

use super::Jobs;
use crate::base::event::{Event, FlushReason};
use crate::engine::tree::Tree;

impl Jobs {
    /// Sorts or replaces the memtables for which that pays off.
    pub(super) fn switch_memtables(&self) {
        if !self.context.attention.take_memtable_check() {
            return;
        }
        for tree in self.catalog.trees().values() {
            match tree.due_change(&self.context.memtables) {
                None => {}
                Some(Change::Sort(reason)) => {
                    self.emit_choice(tree, reason);
                    // A scan sorts entries.
                    tree.state_arc().active.memtable.cursor().seek_first();
                }
                Some(Change::Replace(selection)) => self.replace_memtable(tree, selection),
            }
        }
    }

    /// Replaces the active memtable of a tree with one of the selected kind, unless writers are
    /// stopped or there is nothing to flush.
    fn replace_memtable(&self, tree: &Arc<Tree>, selection: MemtableSelection) {
        if self.context.health.check_writable().is_err() {
            return;
        }
        let mut writer = self.pipeline.lock();
        let state = tree.state_arc();
        let is_stopped = matches!(state.admission, Admission::Stop(_));
        if !is_stopped && !state.active.memtable.is_empty() && !tree.is_dropped() {
            tree.leave_for(selection);
            self.pipeline.rotate(&mut writer, tree, FlushReason::MemtableKind);
        }
    }

    fn emit_choice(&self, tree: &Tree, reason: String) {
        if let Some(MemtableSelection { kind, .. }) = tree.memtable_choice() {
            let (keyspace, kind) = (tree.name().to_string(), kind.to_string());
            self.context.events.emit(Event::MemtableChosen { keyspace, kind, reason });
        }
    }
}

#[cfg(test)]
mod tests {
    use terrane_policy::memtable_choice::{MemtableOperations, choose};

    use super::*;
    use crate::files::storage::MemoryStorage;
    use crate::{Background, KeyspaceOptions, Options};

    /// A memtable of the previous kind was already prepared. It must not become the active one.
    #[test]
    fn a_memtable_is_replaced_by_one_of_the_selected_kind() {
        let options = Options::new()
            .storage(Arc::new(MemoryStorage::new(1)))
            .background(Background::Inline)
            .design("leveling; buffer=64KiB; memtable=auto".parse().unwrap());
        let db = options.open("db").unwrap();
        let keyspace = db.keyspace("default", KeyspaceOptions::new()).unwrap();
        let (engine, tree) = (&keyspace.handle.engine, &keyspace.tree);
        let selection = |text: &str| {
            let mut selection = choose(&MemtableOperations::default(), None, 1 << 16);
            (selection.kind, selection.reason) = (text.parse().unwrap(), "a test".to_owned());
            selection
        };
        assert!(tree.needs_next_memtable(1, 1));
        tree.prepare_memtable(&engine.context.memtables);
        // Nothing is flushed early if there is nothing to flush.
        engine.jobs.replace_memtable(tree, selection("skiplist"));
        assert_eq!(tree.memtable_choice(), None);
        db.put("key", "value").unwrap();
        for kind in ["skiplist", "hash-vector(buckets=8)"] {
            engine.jobs.replace_memtable(tree, selection(kind));
            let chosen = tree.memtable_choice().unwrap();
            assert_eq!(
                (chosen.kind.to_string().as_str(), chosen.reason.as_str()),
                (kind, "a test")
            );
            let reason = tree.state_arc().immutables[0].reason;
            assert_eq!(reason, FlushReason::MemtableKind);
            db.put("key", kind).unwrap();
            while db.run_background_job().unwrap() {}
        }
        assert_eq!(db.get("key").unwrap().unwrap(), b"hash-vector(buckets=8)");
        let news = |event: &crate::LoggedEvent| matches!(event.event, Event::MemtableChosen { .. });
        assert_eq!(db.events().iter().filter(|event| news(event)).count(), 2);
    }
}
