//! Size-tiered policies on a tree: its runs, in order of age, are their list.

use std::ops::Range;

use super::candidate::{Candidate, Extent, ranked};
use super::input::PickInput;
use crate::admission::pressure::run_pressure;
use crate::compaction::{Compaction, Input, Output, Placement, Reason};
use crate::design::Violation;
use crate::shape::Run;
use crate::strategy::{SizedRun, Trigger};

/// All runs, the newest first, with their levels.
fn runs<'a>(input: &PickInput<'a>) -> Vec<(usize, &'a Run)> {
    let levels = input.shape.levels.iter().enumerate();
    levels.flat_map(|(level, content)| content.runs.iter().map(move |run| (level, run))).collect()
}

/// What the policy of the design, if it has one, wants merged.
pub(super) fn candidate(input: &PickInput<'_>) -> Option<Candidate> {
    let policy = input.design.strategy.size_tiered()?;
    let all = runs(input);
    let is_taken = |run: &Run| {
        let mut tables = run.tables.iter();
        tables.any(|table| input.in_progress.iter().any(|job| job.takes(table.id)))
    };
    let sized: Vec<SizedRun> = all
        .iter()
        .map(|(_, run)| SizedRun { bytes: run.size_bytes(), is_free: !is_taken(run) })
        .collect();
    told(input, &all, policy.choose(&sized)?)
}

/// Whatever the policy, writers must not wait for what it would never merge: then all that it lets
/// take part becomes one run, and if that is nothing, all there is.
pub(super) fn relief(input: &PickInput<'_>) -> Option<Candidate> {
    let policy = input.design.strategy.size_tiered()?;
    let pressure = run_pressure(input.shape, input.design);
    let from = match input.design.constraint.violation {
        Violation::SlowDown => pressure.threshold,
        Violation::Stop => pressure.stop_at,
        Violation::None => return None,
    };
    // What goes on may lift it.
    if pressure.measured < from || input.is_compacting() {
        return None;
    }
    let all = runs(input);
    let part = all.iter().take_while(|(_, run)| policy.merges_again(run.size_bytes())).count();
    let mut relief = told(input, &all, 0..if part > 1 { part } else { all.len() })?;
    relief.rank = usize::MAX;
    Some(relief)
}

fn told(input: &PickInput<'_>, all: &[(usize, &Run)], chosen: Range<usize>) -> Option<Candidate> {
    let (level, _) = *all.get(chosen.clone())?.last().filter(|_| chosen.len() > 1)?;
    let sized = |(_, trigger): &(usize, &Trigger)| trigger.kind().is_size_tiered();
    let (rank, trigger) = ranked(input, level).find(sized)?;
    let measure = (chosen.len() as u64, all.len() as u64);
    Some(Candidate::triggered(trigger.kind(), level, rank, measure, Extent::Runs(chosen)))
}

/// Neighbouring runs into the place of the oldest of them.
pub(super) fn merge(
    input: &PickInput<'_>,
    chosen: &Range<usize>,
    reason: Reason,
) -> Option<Compaction> {
    let all = runs(input);
    let taken = all.get(chosen.clone())?;
    let (level, oldest) = *taken.last()?;
    let whole =
        |&(level, run): &(usize, &Run)| Input { level, run: run.id, tables: run.tables.clone() };
    let output = Output { level, placement: Placement::Join(oldest.id) };
    Some(Compaction { inputs: taken.iter().map(whole).collect(), output, reason })
}
