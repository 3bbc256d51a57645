//! Tables that a compaction could not read.
//!
//! They are left where they are: reads of what they hold say so, the rest of the tree goes on, and
//! compactions that would take them are not picked. What waits for such a compaction would wait for
//! ever, and is told of the damage instead.

use std::sync::Arc;

use terrane_policy::{Compaction, TableId};

use crate::engine::tree::TreeJobs;
use crate::engine::{Engine, Tree};
use crate::error::Error;
use crate::table::TableFileId;

impl TreeJobs {
    /// A compaction failed by `error`; what it could not read is left alone from now on.
    pub(crate) fn leave_alone(&mut self, compaction: &Compaction, error: &Error) {
        let Error::Corruption(place) = error else { return };
        let name = place.path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        let damaged = TableFileId::of_file_name(name).map(|file| TableId(file.number));
        let tables: Vec<_> = match damaged.filter(|table| compaction.takes(*table)) {
            Some(table) => vec![table],
            // Which one it was cannot be told; the same compaction must not be picked again.
            None => compaction.tables().map(|table| table.id).collect(),
        };
        for table in tables {
            self.unreadable.entry(table).or_insert_with(|| error.clone());
        }
    }

    /// Why `compaction` cannot be done: what is wrong with a table of it, or, if it takes none that
    /// is damaged, with one that is in its way.
    pub(crate) fn damage_to(&self, compaction: &Compaction) -> Option<Error> {
        let mut taken = self.unreadable.iter().filter(|(table, _)| compaction.takes(**table));
        taken.next().or_else(|| self.unreadable.iter().next()).map(|(_, error)| error.clone())
    }
}

impl Engine {
    /// The damage by which a tree is stuck: an unreadable table is in the way of what would make
    /// room in it, and nothing that is going on, or could be, would change that.
    pub(crate) fn stuck_by(&self, tree: &Arc<Tree>) -> Option<Error> {
        if tree.jobs().unreadable.is_empty() {
            return None;
        }
        let jobs = self.lock_jobs_with_covered(tree);
        if !self.is_quiet(tree, &jobs) || self.next_compaction(tree, &jobs).is_some() {
            return None;
        }
        // With nothing to be done for it, waiting would be for nothing whatever is in the way.
        let damage = self.wanted_compaction(tree, &jobs).and_then(|wanted| jobs.damage_to(&wanted));
        damage.or_else(|| jobs.unreadable.values().next().cloned())
    }

    /// What was found wrong with tables of any tree.
    pub(crate) fn damage(&self) -> Option<Error> {
        let trees = self.trees();
        trees.values().find_map(|tree| tree.jobs().unreadable.values().next().cloned())
    }
}
