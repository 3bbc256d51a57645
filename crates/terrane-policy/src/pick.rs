//! From a shape and a strategy to the compaction that should be done next.
//!
//! [`pick`] looks at every level that a [`Trigger`] marks, worst first, and answers the first
//! compaction that touches nothing in progress. A level that holds more runs than its eagerness
//! ever allows, as after a change of design, is repaired even when no trigger asks for it, so that
//! every strategy reaches a shape that satisfies its own constraints.
//!
//! What a level does when it acts:
//! - a level that gathers runs merges all of them into the next level: into its run where that
//!   level is a single run, as a new run where it gathers too;
//! - a level that is one run moves all of it or one table, by granularity, into the next level;
//! - a level that should be one run and is not merges its runs in place.
//!
//! Every answer passes [`crate::soundness::check`]; the property tests hold it to that.

mod assemble;
mod cursors;
mod movement;
#[cfg(test)]
mod tests;

pub use cursors::Cursors;

use crate::compaction::{Compaction, Reason};
use crate::design::Design;
use crate::key_range::KeyRange;
use crate::shape::{Level, TableInfo, TreeShape};
use crate::strategy::{Granularity, Trigger};
use assemble::{merge_in_place, move_runs, move_table};

/// All that a decision depends on.
#[derive(Debug, Clone, Copy)]
pub struct PickInput<'a> {
    /// The tree.
    pub shape: &'a TreeShape,
    /// The design that the tree should follow.
    pub design: &'a Design,
    /// Compactions that are being carried out.
    pub in_progress: &'a [Compaction],
    /// How far round-robin movement has come in each level.
    pub cursors: &'a Cursors,
}

/// A level that should act, and how badly.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    reason: Reason,
    level: usize,
    score: f64,
}

/// The compaction to do next, or `None` when the tree satisfies its design or everything that it
/// needs is in progress.
pub fn pick(input: &PickInput<'_>) -> Option<Compaction> {
    let mut candidates = candidates(input);
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
    candidates.iter().find_map(|candidate| act(input, candidate))
}

/// Compacts everything in `range` one level down, for a caller that walks level by level: the
/// tables of `level` that share keys with the range go into the next level, or are rewritten in
/// place where the level is the last one.
///
/// `None` when the level holds nothing of the range or is busy.
pub fn manual(input: &PickInput<'_>, level: usize, range: &KeyRange) -> Option<Compaction> {
    let last = input.shape.last_level();
    let reason = Reason::Manual { level };
    let compaction = if level >= last && level > 0 {
        merge_in_place(input, level, Some(range), reason)
    } else {
        move_runs(input, level, Some(range), reason)
    }?;
    is_free(input, &compaction).then_some(compaction)
}

fn candidates(input: &PickInput<'_>) -> Vec<Candidate> {
    let strategy = &input.design.strategy;
    let last = input.shape.last_level();
    // Levels that gather runs act by their number, unless the strategy goes by bytes alone.
    let by_bytes = !strategy.triggers.contains(&Trigger::RunCount);
    let mut found = Vec::new();
    for (level, content) in input.shape.levels.iter().enumerate() {
        let (runs, bytes) = staying(input, level, content);
        let allowed = u64::from(strategy.runs_allowed(level, last));
        let gathers = level == 0 || allowed > 1;
        let capacity = strategy.capacity_bytes(level, input.design.buffer_bytes);
        for &trigger in &strategy.triggers {
            let (measured, threshold) = match trigger {
                Trigger::RunCount if gathers => (runs, allowed + 1),
                Trigger::LevelSaturation if !gathers || by_bytes => (bytes, capacity),
                _ => continue,
            };
            // A level of one run may be exactly full; a level that gathers acts when it is.
            let fires = if gathers { measured >= threshold } else { measured > threshold };
            if fires && runs > 0 {
                let score = measured as f64 / threshold.max(1) as f64;
                let movement = None;
                let reason = Reason::Triggered { trigger, level, measured, threshold, movement };
                found.push(Candidate { reason, level, score });
            }
        }
        // What only passes through level 0 moves on, and what should be one run becomes one.
        if runs > allowed.max(1) && !gathers || level == 0 && allowed == 0 && runs > 0 {
            let score = runs as f64 / allowed.max(1) as f64;
            found.push(Candidate { reason: Reason::Repair { level, runs }, level, score });
        }
    }
    found
}

/// Runs and bytes of a level without what jobs in progress are taking away from it.
fn staying(input: &PickInput<'_>, index: usize, level: &Level) -> (u64, u64) {
    let leaves = |table: &TableInfo| {
        let mut jobs = input.in_progress.iter();
        jobs.any(|job| job.output.level != index && job.takes(table.id))
    };
    let mut totals = (0, 0);
    for run in &level.runs {
        let stay = run.tables.iter().filter(|table| input.in_progress.is_empty() || !leaves(table));
        let (count, bytes) = stay.fold((0, 0), |sum, table| (sum.0 + 1, sum.1 + table.size_bytes));
        totals.0 += u64::from(count > 0);
        totals.1 += bytes;
    }
    totals
}

fn act(input: &PickInput<'_>, candidate: &Candidate) -> Option<Compaction> {
    let strategy = &input.design.strategy;
    let level = candidate.level;
    let single_run = strategy.is_single_run(level, input.shape.last_level());
    let runs = input.shape.level(level).runs.len();
    let compaction = if single_run && runs > 1 {
        merge_in_place(input, level, None, candidate.reason)
    } else if single_run && strategy.granularity == Granularity::File {
        return move_table(input, level, candidate.reason);
    } else {
        move_runs(input, level, None, candidate.reason)
    }?;
    is_free(input, &compaction).then_some(compaction)
}

/// Whether nothing in progress touches what the compaction would.
fn is_free(input: &PickInput<'_>, compaction: &Compaction) -> bool {
    !input.in_progress.iter().any(|other| other.conflicts_with(compaction))
}
