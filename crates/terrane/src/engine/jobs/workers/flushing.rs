//! The thread that flushes, and does what is quickly done beside it.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::{Engine, JobKind, Tree};
use crate::error::Result;

/// A state of a tree that was replaced and is in use is looked at again after this time.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A file that could not be removed is tried again after this time.
const REMOVE_AGAIN: Duration = Duration::from_secs(1);

impl Engine {
    pub(crate) fn flush_loop(&self) {
        let mut failures = 0;
        while !self.work.is_stopping() {
            let seen = self.work.lock().changes;
            self.make_spare();
            self.rotate_aged();
            match self.find_flush() {
                Some(tree) => {
                    let result = self.flush_found(&tree);
                    self.judge(JobKind::Flush, result, &mut failures);
                    self.let_go_of_retired();
                }
                None => {
                    self.health.end_trouble(JobKind::Flush);
                    let look_again = self.let_go_of_retired().then_some(LOOK_AGAIN);
                    self.do_small_work(seen, look_again, &mut failures);
                }
            }
        }
    }

    /// What is quickly done, and so not left to a thread that may be at a long compaction.
    fn do_small_work(&self, seen: u64, look_again: Option<Duration>, failures: &mut u32) {
        if let Some((tree, tables)) = self.find_drop() {
            let result = self.drop_tables(&tree, &tables);
            return self.judge(JobKind::Drop, result, failures);
        }
        self.health.end_trouble(JobKind::Drop);
        match self.work.next_unneeded() {
            Some(path) => self.remove_files(vec![path]),
            None => {
                self.remove_again();
                let remove_again = self.has_not_removed().then_some(REMOVE_AGAIN);
                let times = [self.next_aged(), look_again, remove_again];
                let most = times.into_iter().flatten().min();
                self.work.sleep_at_most(seen, most);
            }
        }
    }

    /// Lets go of states that were replaced, as far as no one uses them. True if someone does.
    pub(crate) fn let_go_of_retired(&self) -> bool {
        let trees = self.trees();
        trees.values().filter(|tree| tree.retired().let_go()).count() > 0
    }

    /// A tree with a full memtable that no one flushes; it is marked as being flushed.
    pub(crate) fn find_flush(&self) -> Option<Arc<Tree>> {
        let trees = self.trees();
        let mut waiting: Vec<&Arc<Tree>> =
            trees.values().filter(|tree| !tree.state().full.is_empty()).collect();
        // The one furthest behind first.
        waiting.sort_by_key(|tree| std::cmp::Reverse(tree.state().full.len()));
        waiting
            .into_iter()
            .find(|tree| !std::mem::replace(&mut tree.jobs().is_flushing, true))
            .cloned()
    }

    pub(crate) fn flush_found(&self, tree: &Arc<Tree>) -> Result<()> {
        let result = self.flush_oldest(tree);
        tree.jobs().is_flushing = false;
        result
    }
}
