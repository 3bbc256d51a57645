//! Assembles the inputs of a compaction once the acting level is known.

use std::ops::Range;
use std::sync::Arc;

use super::candidate::Extent;
use super::context::{PickContext, is_free};
use super::expand;
use super::movement;
use crate::compaction::{Compaction, Input, Output, Placement, Reason};
use crate::key_range::KeyRange;
use crate::shape::{Run, TableInfo};
use crate::strategy::{Expansion, Granularity, Intake};

/// Moves the runs of a level, or their tables that share keys with `within`, into the next level.
pub(super) fn move_runs(
    input: &PickContext<'_>,
    level: usize,
    within: Option<&KeyRange>,
    reason: Reason,
) -> Option<Compaction> {
    let runs = &input.shape.level(level).runs;
    let inputs = match within {
        Some(range) => closed_under_overlap(level, runs, range),
        None => runs.iter().map(|run| whole(level, run)).collect(),
    };
    into_next_level(input, level, inputs, false, reason)
}

/// Moves the runs that the intake selects into the next level: all of them, or only as many of the
/// oldest as made the level act.
pub(super) fn move_oldest_runs(
    input: &PickContext<'_>,
    level: usize,
    reason: Reason,
) -> Option<Compaction> {
    let strategy = &input.design.strategy;
    let runs = &input.shape.level(level).runs;
    let count = match strategy.intake {
        Intake::All => runs.len(),
        Intake::Exact => strategy.runs_allowed(level, input.last_level()) as usize + 1,
    };
    let oldest = runs.iter().skip(runs.len().saturating_sub(count));
    into_next_level(input, level, oldest.map(|run| whole(level, run)).collect(), false, reason)
}

/// Moves up to `count` adjacent tables of a single-run level into the next level, chosen by the
/// movement rules among the marked ones.
pub(super) fn move_tables(
    input: &PickContext<'_>,
    level: usize,
    extent: &Extent,
    count: usize,
    reason: Reason,
) -> Option<Compaction> {
    let run = input.shape.level(level).runs.first()?;
    let expansion = match input.design.strategy.granularity.at(level) {
        Granularity::Expanded(expansion) => Some(*expansion),
        _ => None,
    };
    movement::find(input, level, run, extent, |at, rule| {
        if let Some(expansion) = expansion {
            return move_expanded(input, level, (run, at), expansion, reason.chosen_by(rule));
        }
        // Take the tables after the chosen table or, if too few follow it, also those before it.
        let from = at.min(run.tables.len().saturating_sub(count));
        let tables = run.tables.iter().skip(from).take(count).cloned().collect();
        let one = Input { level, run: run.id, tables };
        let compaction = into_next_level(input, level, vec![one], true, reason.chosen_by(rule))?;
        is_free(input, &compaction).then_some(compaction)
    })
}

/// Moves a table of a single-run level into the next level, together with tables that add little
/// cost, or alone if a running job claims those.
fn move_expanded(
    input: &PickContext<'_>,
    level: usize,
    (run, at): (&Run, usize),
    expansion: Expansion,
    reason: Reason,
) -> Option<Compaction> {
    let of = |tables: Range<usize>| {
        let tables = run.tables.get(tables)?.to_vec();
        let job = into_next_level(
            input,
            level,
            vec![Input { level, run: run.id, tables }],
            true,
            reason,
        )?;
        is_free(input, &job).then_some(job)
    };
    let expanded = expand::tables(input, level, (run, at), expansion);
    expanded.and_then(of).or_else(|| of(at..at + 1))
}

/// Moves some tables of a level that gathers runs, with all overlapping tables of the level, into
/// the next level. The tables are chosen among the marked tables or, if no tables are marked, in
/// the oldest run.
pub(super) fn move_column(
    input: &PickContext<'_>,
    level: usize,
    extent: &Extent,
    count: usize,
    reason: Reason,
) -> Option<Compaction> {
    let runs = &input.shape.level(level).runs;
    let is_marked = |run: &&Run| extent.tables_of(run).next().is_some();
    runs.iter().rev().filter(is_marked).find_map(|run| {
        movement::find(input, level, run, extent, |at, rule| {
            let chosen = run.tables.iter().skip(at).take(count);
            let hull = KeyRange::hull_of(chosen.map(|table| &table.range))?;
            let inputs = closed_under_overlap(level, runs, &hull);
            let compaction = into_next_level(input, level, inputs, true, reason.chosen_by(rule))?;
            is_free(input, &compaction).then_some(compaction)
        })
    })
}

/// Merges the runs of a level, or their tables that share keys with `within`, into the oldest run.
pub(super) fn merge_in_place(
    input: &PickContext<'_>,
    level: usize,
    within: Option<&KeyRange>,
    reason: Reason,
) -> Option<Compaction> {
    let runs = &input.shape.level(level).runs;
    let oldest = runs.last()?;
    let everything = KeyRange::all();
    let inputs = closed_under_overlap(level, runs, within.unwrap_or(&everything));
    let output = Output { level, placement: Placement::Join(oldest.id) };
    (!inputs.is_empty()).then_some(Compaction { inputs, output, relocated: Vec::new(), reason })
}

/// If `is_part`, more of the level will follow, possibly into the same run.
fn into_next_level(
    input: &PickContext<'_>,
    level: usize,
    mut inputs: Vec<Input>,
    is_part: bool,
    reason: Reason,
) -> Option<Compaction> {
    let target = level + 1;
    let tables = || inputs.iter().flat_map(|input| &input.tables);
    let range = KeyRange::hull_of(tables().map(|table| &table.range))?;
    let bytes: u64 = tables().map(|table| table.size_bytes).sum();
    // Data that moves below the last level makes the target the last level.
    let last = input.last_level().max(target);
    let strategy = &input.design.strategy;
    let newest = input.shape.level(target).runs.first().filter(|run| {
        strategy.is_single_run(target, last) && !is_leaving(input, target, run)
            || strategy.fills_runs(target, last) && has_room(input, target, last, run, bytes)
            || is_part && run.overlapping(&range).is_empty()
    });
    let placement = match newest {
        Some(run) => {
            let tables = run.overlapping(&range).to_vec();
            if !tables.is_empty() {
                inputs.push(Input { level: target, run: run.id, tables });
            }
            Placement::Join(run.id)
        }
        None => Placement::NewRun,
    };
    Some(Compaction {
        inputs,
        output: Output { level: target, placement },
        relocated: Vec::new(),
        reason,
    })
}

/// Returns true if a job is taking all of a run into a deeper level. Data that arrives meanwhile
/// forms the next run of the level (performance-stability §5.1.1: two components for each level).
fn is_leaving(input: &PickContext<'_>, level: usize, run: &Run) -> bool {
    let takes = |table: &Arc<TableInfo>| {
        let mut jobs = input.in_progress.iter().filter(|job| job.output.level > level);
        jobs.any(|job| job.takes(table.id))
    };
    !input.in_progress.is_empty() && run.tables.iter().all(takes)
}

/// Returns true if a run has not reached its share of the capacity of its level (Dostoevsky §4: the
/// runs of a level are of equal size).
fn has_room(input: &PickContext<'_>, level: usize, last: usize, run: &Run, bytes: u64) -> bool {
    let runs = u64::from(input.design.strategy.runs_allowed(level, last).max(1));
    let share = input.design.capacity_bytes(level, last) / runs;
    run.size_bytes().saturating_add(bytes) <= share
}

fn whole(level: usize, run: &Run) -> Input {
    Input { level, run: run.id, tables: run.tables.clone() }
}

/// Returns the tables of `runs` that share keys with `range`, the tables that share keys with those,
/// and so on. The result is contiguous in recency for every key that it touches.
pub(crate) fn closed_under_overlap(level: usize, runs: &[Run], range: &KeyRange) -> Vec<Input> {
    let mut hull = range.clone();
    loop {
        let taken: Vec<&[Arc<TableInfo>]> = runs.iter().map(|run| run.overlapping(&hull)).collect();
        let ranges = taken.iter().copied().flatten().map(|table| &table.range);
        let grown = KeyRange::hull_of(ranges).map_or_else(|| hull.clone(), |seen| hull.hull(&seen));
        if grown == hull {
            let inputs = runs.iter().zip(taken).filter(|(_, tables)| !tables.is_empty());
            return inputs
                .map(|(run, tables)| Input { level, run: run.id, tables: tables.to_vec() })
                .collect();
        }
        hull = grown;
    }
}
