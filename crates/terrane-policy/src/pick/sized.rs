//! Applies size-tiered policies to a tree, whose runs in order of age form the policy's list.

use std::ops::Range;

use super::candidate::{CompactionCandidate, Extent, ranked};
use super::context::PickContext;
use crate::admission::pressure::run_pressure;
use crate::compaction::{Compaction, Input, Output, Placement, Reason};
use crate::design::Violation;
use crate::shape::Run;
use crate::strategy::{MergeCause, SizedMerge, SizedRun, TombstoneWeight, Trigger};

/// Returns all runs, newest first, with their levels.
fn runs<'a>(input: &PickContext<'a>) -> Vec<(usize, &'a Run)> {
    let levels = input.shape.levels.iter().enumerate();
    levels.flat_map(|(level, content)| content.runs.iter().map(move |run| (level, run))).collect()
}

/// Returns the runs as a policy sees them.
fn sized(input: &PickContext<'_>, all: &[(usize, &Run)]) -> Vec<SizedRun> {
    let weight = TombstoneWeight::of(input.shape, input.design.strategy.tombstone_weight);
    let is_taken = |run: &Run| {
        let mut tables = run.tables.iter();
        tables.any(|table| input.in_progress.iter().any(|job| job.takes(table.id)))
    };
    all.iter()
        .map(|(_, run)| SizedRun {
            bytes: run.size_bytes(),
            weighed_bytes: run.tables.iter().map(|table| weight.bytes(table)).sum(),
            is_free: !is_taken(run),
        })
        .collect()
}

/// Returns the merge that the design's size-tiered policy requests, if any.
pub(super) fn candidate(input: &PickContext<'_>) -> Option<CompactionCandidate> {
    let policy = input.design.strategy.size_tiered()?;
    let all = runs(input);
    wanted(input, &all, policy.choose(&sized(input, &all))?)
}

/// Writers must not stall because of runs that the policy does not merge. In that case the policy
/// may choose by weaker rules ([`SizeTiered::relieve`]). If it chooses none, all runs that it still
/// merges become one run, or all runs of the tree if it would merge fewer than two.
///
/// [`SizeTiered::relieve`]: crate::strategy::SizeTiered::relieve
pub(super) fn relief(input: &PickContext<'_>) -> Option<CompactionCandidate> {
    let policy = input.design.strategy.size_tiered()?;
    let pressure = run_pressure(input.shape, input.design);
    let from = match input.design.constraint.violation {
        Violation::SlowDown => pressure.threshold,
        Violation::Stop | Violation::Spread => pressure.stop_at,
        Violation::None => return None,
    };
    // A running compaction may relieve the pressure.
    if pressure.measured < from || input.is_compacting() {
        return None;
    }
    let all = runs(input);
    let chosen = policy.relieve(&sized(input, &all)).unwrap_or_else(|| {
        let again = all.iter().take_while(|(_, run)| policy.merges_again(run.size_bytes())).count();
        0..if again > 1 { again } else { all.len() }
    });
    let (runs, limit) = (u64::from(pressure.measured), u64::from(from));
    let cause = MergeCause::Stall { runs, limit };
    let mut relief = wanted(input, &all, SizedMerge { runs: chosen, cause })?;
    relief.rank = usize::MAX;
    Some(relief)
}

fn wanted(
    input: &PickContext<'_>,
    all: &[(usize, &Run)],
    SizedMerge { runs, cause }: SizedMerge,
) -> Option<CompactionCandidate> {
    let (level, _) = *all.get(runs.clone())?.last().filter(|_| runs.len() > 1)?;
    let sized = |(_, trigger): &(usize, &Trigger)| trigger.kind().is_size_tiered();
    let (rank, trigger) = ranked(input, level).find(sized)?;
    let reason = Reason::SizeTiered {
        trigger: trigger.kind(),
        merged: runs.len() as u64,
        of: all.len() as u64,
        cause,
    };
    Some(CompactionCandidate { reason, level, rank, score: 1.0, extent: Extent::Runs(runs) })
}

/// Merges adjacent runs into the oldest of them.
pub(super) fn merge(
    input: &PickContext<'_>,
    chosen: &Range<usize>,
    reason: Reason,
) -> Option<Compaction> {
    let all = runs(input);
    let taken = all.get(chosen.clone())?;
    let (level, oldest) = *taken.last()?;
    let whole =
        |&(level, run): &(usize, &Run)| Input { level, run: run.id, tables: run.tables.clone() };
    let output = Output { level, placement: Placement::Join(oldest.id) };
    Some(Compaction {
        inputs: taken.iter().map(whole).collect(),
        output,
        relocated: Vec::new(),
        reason,
    })
}
