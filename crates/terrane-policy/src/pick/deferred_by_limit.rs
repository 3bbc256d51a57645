//! Merges that a local limit defers.
//!
//! Under [`Limit::Local`], a level holds a limited number of runs (performance-stability §5.1.1). A
//! merge that would add a run beyond the limit waits, and so does a merge into a level of one run that
//! is full again while its former contents are still being merged down. A local limit therefore hurts
//! the greedy scheduler, which prefers small merges that "may not be able to complete due to possible
//! violations of the constraint at the next level" (§5.2.3).
//!
//! A merge waits only for progress in the level below it: a running job, or one that `pick` would
//! choose. Therefore the tree never gets stuck.

use super::candidate::CompactionCandidate;
use super::context::PickContext;
use super::{act, load};
use crate::admission::pressure::{count, expected_runs};
use crate::compaction::{Compaction, Placement};
use crate::design::{Limit, Violation};

/// Returns true if `job` must wait until its target level holds fewer runs. `all` are the candidates
/// among which it was picked.
pub(super) fn is_deferred(
    input: &PickContext<'_>,
    all: &[CompactionCandidate],
    job: &Compaction,
) -> bool {
    let target = job.output.level;
    if !exceeds_local_limit(input, job) {
        return false;
    }
    // A job on an unreadable table stays in progress, but moves no data.
    let relieves = |other: &Compaction| {
        let runs = other.inputs.iter().filter(|input| input.level == target).count();
        runs > 1 || runs == 1 && other.output.level > target
    };
    let acts = |one: &CompactionCandidate| {
        one.level == target && !load::is_blocked(input, all, one) && act(input, one).is_some()
    };
    input.in_progress.iter().any(relieves) || all.iter().any(acts)
}

fn exceeds_local_limit(input: &PickContext<'_>, job: &Compaction) -> bool {
    let design = input.design;
    let Limit::Local(bound) = design.constraint.limit else { return false };
    let target = job.output.level;
    if design.constraint.violation == Violation::None || target <= job.from_level() {
        return false;
    }
    let last = input.last_level().max(target);
    let runs = &input.shape.level(target).runs;
    let most = bound.runs(expected_runs(design, target, last));
    match job.output.placement {
        Placement::NewRun => count(runs.len()) >= most,
        Placement::Join(run) => {
            let capacity = design.capacity_bytes(target, last);
            let is_full = |bytes: u64| bytes >= capacity;
            count(runs.len()) >= most
                && design.strategy.is_single_run(target, last)
                && runs.iter().any(|other| other.id == run && is_full(other.size_bytes()))
        }
    }
}
