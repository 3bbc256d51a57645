//! The flush threads. The first one also does other short work.

use std::sync::Arc;
use std::time::Duration;

use terrane_policy::TableId;

use super::Jobs;
use crate::base::error::Result;
use crate::base::event::Event;
use crate::base::stats::Counter;
use crate::engine::catalog::VersionEdit;
use crate::engine::context::JobKind;
use crate::engine::tree::Tree;

/// How often the thread checks replaced states that are still in use.
const RETIRED_INTERVAL: Duration = Duration::from_millis(20);

impl Jobs {
    /// Runs flushes. Each thread looks for a tree only while all threads before it are busy, so
    /// that the flushes of one tree reuse one thread's memory.
    pub(super) fn run_flush_thread(&self, number: usize) {
        let mut failures = 0;
        while !self.context.signals.is_stopping() {
            let seen = self.context.signals.changes();
            self.pipeline.create_requested();
            let is_left = number == 1 && self.drop_retired();
            let retired = is_left.then_some(RETIRED_INTERVAL);
            if self.flusher.running() < number {
                self.context.signals.wait_for_work(seen, retired);
                continue;
            }
            // By any thread, so that the decision does not wait for a running flush.
            self.switch_memtables();
            if number == 0 {
                self.rotate_aged_memtables();
                self.catalog.release_expired_log();
                self.free_space();
            }
            match self.flusher.pick() {
                Some(trees) => {
                    let result = self.flusher.run(&trees);
                    let is_failed = result.is_err();
                    self.handle_outcome(JobKind::Flush, result, &mut failures);
                    // Deleting tables may take longer than a flush, so it does not delay the next flush if
                    // the second thread is free to delete them.
                    let is_alone = self.context.flush_memory.jobs_max() < 2;
                    if is_alone || is_failed || self.flusher.running() > 0 {
                        self.drop_retired();
                    }
                    self.catalog.retry_removals();
                }
                // The other threads only flush, and a failure remains noted until the flush has
                // succeeded.
                None if number > 0 => self.context.signals.wait_for_work(seen, retired),
                None => {
                    if !self.flusher.is_any_due() {
                        self.context.health.clear_failure(JobKind::Flush);
                    }
                    let retired = self.drop_retired().then_some(RETIRED_INTERVAL);
                    self.do_short_work(seen, retired, &mut failures);
                }
            }
        }
    }

    /// Drops replaced states that are no longer used, and resumes writers that wait for the memory of
    /// their memtables. Returns true if some states are still in use.
    fn drop_retired(&self) -> bool {
        let is_left = self.catalog.drop_retired();
        let memtables = &self.context.memtables;
        if memtables.is_short() {
            self.catalog.resize_cache();
            if !memtables.is_short() {
                self.catalog.notify_stalled_writers();
            }
        }
        is_left
    }

    /// Performs one short task, which should not wait for a long compaction. Sleeps for at most
    /// `timeout` if there is none.
    fn do_short_work(&self, seen: u64, timeout: Option<Duration>, failures: &mut u32) {
        if let Some((tree, tables)) = self.picker.next_drop() {
            let result = self.drop_tables(&tree, &tables);
            return self.handle_outcome(JobKind::Drop, result, failures);
        }
        self.context.health.clear_failure(JobKind::Drop);
        match self.catalog.next_unneeded() {
            Some(path) => self.catalog.remove_files(vec![path]),
            None => {
                self.catalog.retry_removals();
                let to_drop = self.picker.time_to_drop();
                let to_removal = self.catalog.time_to_removals();
                let timeouts = [self.time_to_aged(), timeout, to_removal, to_drop];
                let timeout = timeouts.into_iter().flatten().min();
                self.context.signals.wait_for_work(seen, timeout);
            }
        }
    }

    /// Drops tables that range tombstones cover entirely, or whose values have all expired, by an
    /// edit alone; see [`crate::engine::merge::covered`] and [`terrane_policy::expiring_tables`]
    /// for why that is sound. The tables are registered in the tree's jobs, so no compaction takes
    /// them. A running compaction may keep tombstones for these tables, which is harmless.
    pub(super) fn drop_tables(&self, tree: &Arc<Tree>, tables: &[TableId]) -> Result<()> {
        let dropped = self.catalog.install(tree, |_| {
            let mut edit = VersionEdit::default();
            tables.iter().for_each(|table| edit.remove(tree.id, *table));
            Ok(edit)
        });
        tree.jobs().dropping.retain(|table| !tables.contains(table));
        self.context.signals.end_job();
        dropped?;
        self.context.counters.add(Counter::TablesDropped, tables.len() as u64);
        let (keyspace, tables) = (tree.name().to_string(), tables.len() as u64);
        self.context.events.emit(Event::TablesDropped { keyspace, tables });
        self.catalog.notify_stalled_writers();
        Ok(())
    }
}
