//! The compaction threads.

use super::Jobs;
use crate::engine::context::JobKind;
use crate::engine::jobs::late_deletes::report_late_deletes;

/// The niceness added to a compaction thread. If it competes with another thread for a processor, it gets about a
/// quarter of the time; on an idle processor it runs at full speed. Without short turns it needs less weight for
/// that, because it keeps a processor until the next tick of the clock.
#[cfg(target_os = "linux")]
const NICE: i32 = 4;
#[cfg(target_os = "linux")]
const NICE_WITH_LONG_TURNS: i32 = 6;

impl Jobs {
    /// Runs compactions. `compaction_threads` threads look for work; a spare thread does so only
    /// while all threads before it are busy. Spare threads are useful because a large merge may be
    /// paused for a smaller one.
    pub(super) fn run_compaction_thread(&self, number: usize) {
        lower_priority();
        let signals = &self.context.signals;
        let is_spare = number >= self.context.settings.compaction_threads;
        let mut failures = 0;
        while !signals.is_stopping() {
            let seen = signals.changes();
            // The flush thread may be waiting for the disk when writers are about to need a
            // segment.
            self.pipeline.create_requested();
            self.switch_memtables();
            if is_spare && signals.compacting() < number {
                signals.wait_for_spare_work(seen);
                continue;
            }
            match self.compactor.pick() {
                Some(job) => {
                    signals.begin_compaction();
                    let result = self.compactor.run(job);
                    signals.end_compaction();
                    self.handle_outcome(JobKind::Compaction, result, &mut failures);
                }
                None if is_spare => signals.wait_for_spare_work(seen),
                None => {
                    self.context.health.clear_failure(JobKind::Compaction);
                    self.report_late_deletes();
                    signals.wait_for_work(seen, self.picker.time_to_due());
                }
            }
        }
    }

    pub(super) fn report_late_deletes(&self) {
        if self.context.settings.delete_persistence_micros().is_none() {
            return;
        }
        let trees = self.catalog.trees();
        trees.values().for_each(|tree| report_late_deletes(&self.context, tree));
    }
}

/// Lowers the priority of the calling thread below that of writers, readers and flushes.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getpriority_process, setpriority_process};
        let thread = Some(rustix::thread::gettid());
        let added = if crate::base::turns::are_short() { NICE } else { NICE_WITH_LONG_TURNS };
        // On Linux each thread has its own priority. A failure leaves the default, which is safe.
        if let Ok(nice) = getpriority_process(thread) {
            let _ = setpriority_process(thread, nice + added);
        }
    }
}
