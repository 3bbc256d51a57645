//! Puts the inputs of a compaction together, once it is known which level acts.

use std::sync::Arc;

use super::{PickInput, is_free, movement};
use crate::compaction::{Compaction, Input, Output, Placement, Reason};
use crate::key_range::KeyRange;
use crate::shape::{Run, TableInfo};

/// The runs of a level, or what of them shares keys with `within`, into the next level.
pub(super) fn move_runs(
    input: &PickInput<'_>,
    level: usize,
    within: Option<&KeyRange>,
    reason: Reason,
) -> Option<Compaction> {
    let runs = &input.shape.level(level).runs;
    let inputs = match within {
        Some(range) => closed_under_overlap(level, runs, range),
        None => runs.iter().map(|run| whole(level, run)).collect(),
    };
    into_next_level(input, level, inputs, reason)
}

/// One table of a single-run level into the next level, chosen by the strategy's movement rules.
pub(super) fn move_table(
    input: &PickInput<'_>,
    level: usize,
    reason: Reason,
) -> Option<Compaction> {
    let run = input.shape.level(level).runs.first()?;
    for &rule in &input.design.strategy.movement {
        let reason = reason.chosen_by(rule);
        for table in movement::order(rule, input, level, run) {
            let one = Input { level, run: run.id, tables: vec![Arc::clone(table)] };
            let compaction = into_next_level(input, level, vec![one], reason)?;
            if is_free(input, &compaction) {
                return Some(compaction);
            }
        }
    }
    None
}

/// The runs of a level, or what of them shares keys with `within`, into the oldest of them.
pub(super) fn merge_in_place(
    input: &PickInput<'_>,
    level: usize,
    within: Option<&KeyRange>,
    reason: Reason,
) -> Option<Compaction> {
    let runs = &input.shape.level(level).runs;
    let oldest = runs.last()?;
    let everything = KeyRange::all();
    let inputs = closed_under_overlap(level, runs, within.unwrap_or(&everything));
    let output = Output { level, placement: Placement::Join(oldest.id) };
    (!inputs.is_empty()).then_some(Compaction { inputs, output, reason })
}

fn into_next_level(
    input: &PickInput<'_>,
    level: usize,
    mut inputs: Vec<Input>,
    reason: Reason,
) -> Option<Compaction> {
    let target = level + 1;
    let tables = inputs.iter().flat_map(|input| &input.tables);
    let range = KeyRange::hull_of(tables.map(|table| &table.range))?;
    // What moves below the last level makes that level the last one.
    let last = input.shape.last_level().max(target);
    let newest = input.shape.level(target).runs.first();
    let single_run = input.design.strategy.is_single_run(target, last);
    let placement = match newest {
        Some(run) if single_run => {
            let tables = run.overlapping(&range).to_vec();
            if !tables.is_empty() {
                inputs.push(Input { level: target, run: run.id, tables });
            }
            Placement::Join(run.id)
        }
        _ => Placement::NewRun,
    };
    Some(Compaction { inputs, output: Output { level: target, placement }, reason })
}

fn whole(level: usize, run: &Run) -> Input {
    Input { level, run: run.id, tables: run.tables.clone() }
}

/// The tables of `runs` that share keys with `range`, and those that share keys with these, and so
/// on: the result is contiguous in recency for every key that it touches.
fn closed_under_overlap(level: usize, runs: &[Run], range: &KeyRange) -> Vec<Input> {
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
