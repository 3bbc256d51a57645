//! Triggers on the whole tree: space amplification and read amplification. When one fires, all runs
//! are merged into one.

use super::candidate::{CompactionCandidate, Extent, ranked};
use super::context::PickContext;
use crate::compaction::{Compaction, Input, Output, Placement, Reason};
use crate::shape::Run;
use crate::strategy::{Scope, TreeContext, Trigger};

/// Returns the tree as a candidate if the last level has such a trigger and it fires.
pub(super) fn candidate(input: &PickContext<'_>) -> Option<CompactionCandidate> {
    let level = input.last_level();
    // Few designs have one, and measuring the tree visits all of its tables.
    let is_of_tree = |(_, trigger): &(usize, &Trigger)| trigger.has_scope(Scope::Tree);
    if !ranked(input, level).any(|one| is_of_tree(&one)) {
        return None;
    }
    let oldest_bytes = input.shape.level(level).runs.last()?.size_bytes();
    let newer_bytes = input.shape.size_bytes() - oldest_bytes;
    let runs = input.shape.run_count() as u64;
    let context = TreeContext { oldest_bytes, newer_bytes, runs };
    let mut triggers = ranked(input, level).filter(is_of_tree);
    triggers.find_map(|(rank, trigger)| {
        let measure = trigger.rule().measure_tree(&context)?;
        let is_due = measure.0 > measure.1;
        is_due.then(|| {
            CompactionCandidate::triggered(trigger.kind(), level, rank, measure, Extent::Tree)
        })
    })
}

/// Merges all runs into the oldest.
pub(super) fn merge_all(input: &PickContext<'_>, reason: Reason) -> Option<Compaction> {
    let level = input.last_level();
    let oldest = input.shape.level(level).runs.last()?;
    let all =
        |(level, run): (usize, &Run)| Input { level, run: run.id, tables: run.tables.clone() };
    let levels = input.shape.levels.iter().enumerate();
    let runs = levels.flat_map(|(index, level)| level.runs.iter().map(move |run| (index, run)));
    let output = Output { level, placement: Placement::Join(oldest.id) };
    Some(Compaction { inputs: runs.map(all).collect(), output, relocated: Vec::new(), reason })
}
