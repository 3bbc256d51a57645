//! Shows the progress of a workload and the state of the engine.

use std::time::Duration;

use indicatif::ProgressBar;
use terrane::{Db, Stats};
use terrane_workload::{Progress, Report};

use crate::host::progress;
use crate::output::human;

/// A progress bar that shows the state of a database.
pub(super) struct WorkloadMeter {
    bar: ProgressBar,
    db: Db,
    before: Stats,
}

impl WorkloadMeter {
    /// Starts a bar with a label.
    pub(super) fn new(label: String, db: &Db) -> Self {
        Self { bar: progress::bar(1, label), db: db.clone(), before: db.stats() }
    }

    /// Replaces the bar with a summary line.
    pub(super) fn done(&self, report: &Report, settled: Option<Duration>) {
        let rate = human::number(report.operations_per_second());
        let took = human::duration(Duration::from_secs_f64(report.seconds));
        let settled =
            settled.map_or(String::new(), |time| format!(", settled in {}", human::duration(time)));
        let operations = human::counted(report.operations, "operation");
        let label = self.bar.prefix();
        self.bar.println(format!("{label}: {operations} in {took} ({rate}/s){settled}"));
        self.bar.finish_and_clear();
    }
}

impl Progress for WorkloadMeter {
    fn update(&self, done: u64, total: u64, elapsed: Duration) {
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_length(total);
        self.bar.set_position(done);
        let (stats, tree) = (self.db.stats(), self.db.tree());
        let rate = done as f64 / elapsed.as_secs_f64().max(1e-9);
        let runs = tree.shape.run_count() as u64;
        let stalled = stats.stalls.total_micros() - self.before.stalls.total_micros();
        let memtable = format!(
            "{}{}",
            human::bytes(tree.memtable_bytes),
            if tree.immutable_memtables > 0 {
                format!(" +{} full", tree.immutable_memtables)
            } else {
                String::new()
            }
        );
        self.bar.set_message(format!(
            "{}/s │ {} in {} │ {} merging │ stalled {} │ memtable {memtable}",
            human::number(rate),
            human::bytes(tree.shape.size_bytes()),
            human::counted(runs, "run"),
            tree.compactions.len(),
            human::duration(Duration::from_micros(stalled)),
        ));
    }
}

impl Drop for WorkloadMeter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
