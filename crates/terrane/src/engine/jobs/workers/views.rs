//! Reports the running and the waiting jobs.

use std::sync::Arc;
use std::time::Duration;

use terrane_policy::Compaction;
use terrane_policy::forecast::CompactionCost;

use super::Jobs;
use crate::base::job_view::{JobState, JobType, JobView};
use crate::engine::tree::{ImmutableMemtable, RunningCompaction, Tree, TreeJobs};
use crate::files::manifest::describe;

impl Jobs {
    /// Returns the running jobs of all trees, then the waiting jobs. A compaction that becomes due
    /// only once another one has ended is not included.
    pub(crate) fn views(&self) -> Vec<JobView> {
        let mut views = Vec::new();
        if !self.context.health.is_of_this_process() {
            return views;
        }
        for tree in self.catalog.trees().values() {
            let jobs = tree.jobs();
            views.extend(self.begun_compactions(tree, &jobs));
            views.extend(flushes(tree, &jobs));
            views.extend(self.queued_compaction(tree, &jobs));
        }
        views.sort_by_key(|view| view.state as u8);
        views
    }

    fn begun_compactions(&self, tree: &Tree, jobs: &TreeJobs) -> Vec<JobView> {
        let view = |running: &RunningCompaction| {
            let progress = self.gate.progress(running.id);
            let is_paused = progress.is_some_and(|progress| progress.share <= 0.0);
            let micros = |time: Duration| u64::try_from(time.as_micros()).ok();
            JobView {
                id: Some(running.id.0),
                keyspace: tree.name().to_string(),
                job: JobType::Compaction,
                state: if is_paused { JobState::Paused } else { JobState::Running },
                what: describe(&running.compaction),
                why: running.compaction.reason.to_string(),
                total_bytes: progress.map_or(0, |progress| progress.total_bytes),
                remaining_bytes: progress.map(|progress| progress.remaining_bytes),
                written_bytes: progress.map(|progress| progress.written_bytes),
                share: progress.map(|progress| progress.share),
                running_micros: progress.and_then(|progress| micros(progress.running)),
                inputs: inputs(&running.compaction),
                output_level: Some(running.compaction.output.level),
            }
        };
        jobs.compactions.iter().map(view).collect()
    }

    fn queued_compaction(&self, tree: &Tree, jobs: &TreeJobs) -> Option<JobView> {
        let compaction = self.picker.next_compaction(tree, jobs)?;
        let version = Arc::clone(&tree.state().version);
        let cost = CompactionCost::of(&compaction, version.shape());
        Some(JobView {
            what: describe(&compaction),
            why: compaction.reason.to_string(),
            total_bytes: cost.bytes_rewritten,
            inputs: inputs(&compaction),
            output_level: Some(compaction.output.level),
            ..waiting(tree, JobType::Compaction)
        })
    }
}

/// Returns the running flush and the waiting flushes.
fn flushes(tree: &Tree, jobs: &TreeJobs) -> Vec<JobView> {
    let state = tree.state_arc();
    let oldest_first = state.immutables.iter().rev().enumerate();
    let view = |(place, immutable): (usize, &Arc<ImmutableMemtable>)| {
        let is_running = jobs.is_flushing && place == 0;
        let merge = jobs.flushing.as_ref().filter(|_| is_running);
        let what = match merge {
            Some(merge) => describe(merge),
            None => format!("a memtable with {} entries", immutable.memtable.len()),
        };
        JobView {
            state: if is_running { JobState::Running } else { JobState::Queued },
            what,
            why: immutable.reason.to_string(),
            total_bytes: immutable.memtable.memory().used_bytes() as u64,
            inputs: merge.map(inputs).unwrap_or_default(),
            output_level: Some(merge.map_or(0, |merge| merge.output.level)),
            ..waiting(tree, JobType::Flush)
        }
    };
    oldest_first.map(view).collect()
}

/// Returns the view of a waiting job.
fn waiting(tree: &Tree, job: JobType) -> JobView {
    JobView {
        id: None,
        keyspace: tree.name().to_string(),
        job,
        state: JobState::Queued,
        what: String::new(),
        why: String::new(),
        total_bytes: 0,
        remaining_bytes: None,
        written_bytes: None,
        share: None,
        running_micros: None,
        inputs: Vec::new(),
        output_level: None,
    }
}

/// Returns the numbers of the tables that a job takes.
fn inputs(compaction: &Compaction) -> Vec<u64> {
    compaction.tables().map(|table| table.id.0).collect()
}
