//! The threads that compact.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use terrane_policy::Compaction;

use crate::engine::jobs::gate::Pass;
use crate::engine::jobs::workers::priority::give_way;
use crate::engine::{Engine, JobKind, Tree};

impl Engine {
    /// As many threads as there are places look for compactions; a further one does when all before
    /// it are at one, as that may come to rest for the sake of a smaller one.
    pub(crate) fn compact_loop(&self, number: usize) {
        give_way();
        let mut failures = 0;
        while !self.work.is_stopping() {
            let seen = self.work.lock().changes;
            let is_spare = number >= self.settings.compaction_threads;
            if is_spare && self.work.compacting.load(Ordering::Relaxed) < number {
                self.work.sleep_on(&self.work.spare_came_up, seen, None);
                continue;
            }
            match self.find_compaction() {
                Some((tree, compaction, pass)) => {
                    self.work.compacting.fetch_add(1, Ordering::Relaxed);
                    // The next one may have something to do beside it.
                    self.work.spare_came_up.notify_all();
                    let result = self.compact(&tree, &compaction, pass);
                    self.work.compacting.fetch_sub(1, Ordering::Relaxed);
                    self.judge(JobKind::Compaction, result, &mut failures);
                }
                None if is_spare => {
                    self.work.sleep_on(&self.work.spare_came_up, seen, None);
                }
                None => {
                    self.health.end_trouble(JobKind::Compaction);
                    self.trees().values().for_each(|tree| self.tell_late_deletes(tree));
                    self.work.sleep_at_most(seen, self.next_due());
                }
            }
        }
    }

    /// A compaction that some tree needs and that would go on at once; it is entered in the tree's
    /// jobs.
    pub(crate) fn find_compaction(&self) -> Option<(Arc<Tree>, Compaction, Pass<'_>)> {
        let trees = self.trees();
        trees.values().find_map(|tree| {
            let (compaction, pass) = self.pick(tree)?;
            Some((Arc::clone(tree), compaction, pass))
        })
    }

    fn pick(&self, tree: &Arc<Tree>) -> Option<(Compaction, Pass<'_>)> {
        let mut jobs = tree.jobs();
        let compaction = self.next_compaction(tree, &jobs)?;
        let merge = self.as_merge(tree, &jobs, &compaction);
        let from = compaction.from_level();
        if !self.gate.takes(&merge, from) {
            return None;
        }
        jobs.cursors.advance(&compaction);
        jobs.compactions.push(compaction.clone());
        Some((compaction, self.gate.enter(merge, from)))
    }
}
