//! From a shape and a strategy to the compaction that should be done next.
//!
//! [`pick`] looks at every level that a [`Trigger`](crate::strategy::Trigger) marks and answers the
//! first compaction that touches nothing in progress: by precedence of the triggers, and among
//! those of how full levels are, worst first. A level that holds more runs than its eagerness ever
//! allows, as after a change of design, is repaired even when no trigger asks for it, so that every
//! strategy reaches a shape that satisfies its own constraints.
//!
//! What a level does when it acts because of how full it is:
//! - a level that gathers runs merges all of them into the next level: into its run where that
//!   level is a single run, into its newest run where that has room and runs are filled
//!   ([`Strategy::fills_runs`](crate::Strategy::fills_runs)), as a new run otherwise. Below level 0
//!   and by granularity it merges a table with those that share keys with it instead;
//! - a level that is one run moves all of it or some tables, by granularity, into the next level;
//! - a level that should be one run and is not merges its runs in place.
//!
//! When single tables are what fires, they move likewise, chosen among those that are marked. A
//! table with tombstones below which nothing is left to delete is rewritten where it is, unless a
//! snapshot keeps them; in the last level a marked table is merged with what it overlaps. Space
//! amplification has all runs merged into the oldest, size-tiered policies neighbours into the oldest
//! of them.
//!
//! Every answer passes [`crate::soundness::check`], and from any shape finitely many answers lead
//! to none: each moves data down, or leaves fewer runs, fewer tombstones or younger tables. The
//! property tests hold it to both.

mod assemble;
mod candidate;
mod cursors;
mod due;
mod input;
mod load;
mod marked;
mod movement;
mod refill;
mod sized;
mod space;
#[cfg(test)]
mod tests;

pub use cursors::Cursors;
pub use due::next_due_micros;
pub use input::PickInput;
pub(crate) use input::is_free;
pub use refill::refilled;

use crate::compaction::{Compaction, Reason};
use crate::key_range::KeyRange;
pub(crate) use assemble::closed_under_overlap;
use assemble::{merge_in_place, move_column, move_oldest_runs, move_runs, move_tables};
use candidate::{Candidate, Extent};

/// The compaction to do next, or `None` when the tree satisfies its design or everything that it
/// needs is in progress.
pub fn pick(input: &PickInput<'_>) -> Option<Compaction> {
    let fitted = input.design.fitted(input.shape);
    let input = &PickInput { design: &fitted, ..*input };
    let mut candidates = load::candidates(input);
    candidates.extend(marked::candidates(input));
    candidates.extend(space::candidate(input));
    candidates.extend(sized::candidate(input));
    candidate::sort(&mut candidates);
    let is_open = |one: &&Candidate| !load::is_blocked(input, &candidates, one);
    candidates.iter().filter(is_open).find_map(|candidate| act(input, candidate))
}

/// The level that a compaction is due for by the shape of the tree alone, whatever the time.
pub fn due_by_shape(input: &PickInput<'_>) -> Option<usize> {
    let fitted = input.design.fitted(input.shape);
    let input = &PickInput { design: &fitted, ..*input };
    let mut candidates = load::candidates(input);
    candidates.extend(space::candidate(input));
    candidates.extend(sized::candidate(input));
    candidate::sort(&mut candidates);
    let is_open = |one: &&Candidate| !load::is_blocked(input, &candidates, one);
    let mut open = candidates.iter().filter(is_open);
    open.find(|one| act(input, one).is_some()).map(|one| one.level)
}

/// Compacts everything in `range` one level down, for a caller that walks level by level: the
/// tables of `level` that share keys with the range go into the next level, or are rewritten in
/// place where the level is the last one.
///
/// `None` when the level holds nothing of the range or is busy.
pub fn manual(input: &PickInput<'_>, level: usize, range: &KeyRange) -> Option<Compaction> {
    let reason = Reason::Manual { level };
    let compaction = if level >= input.last_level() && level > 0 {
        merge_in_place(input, level, Some(range), reason)
    } else {
        move_runs(input, level, Some(range), reason)
    }?;
    is_free(input, &compaction).then_some(compaction)
}

fn act(input: &PickInput<'_>, candidate: &Candidate) -> Option<Compaction> {
    let (level, reason) = (candidate.level, candidate.reason);
    let strategy = &input.design.strategy;
    let single_run = strategy.is_single_run(level, input.last_level());
    let runs = input.shape.level(level).runs.len();
    let granularity = *strategy.granularity.at(level);
    let compaction = match &candidate.extent {
        Extent::Tree => space::merge_all(input, reason),
        Extent::Runs(runs) => sized::merge(input, runs, reason),
        Extent::InPlace(marked) => {
            return marked.iter().find_map(|table| {
                let job = merge_in_place(input, level, Some(&table.range), reason)?;
                is_free(input, &job).then_some(job)
            });
        }
        _ if single_run && runs > 1 => merge_in_place(input, level, None, reason),
        Extent::Level | Extent::Marked(_) => match granularity.tables() {
            Some(count) if single_run => {
                return move_tables(input, level, &candidate.extent, count, reason);
            }
            Some(count) if level > 0 => {
                return move_column(input, level, &candidate.extent, count, reason);
            }
            _ => move_oldest_runs(input, level, reason),
        },
    }?;
    is_free(input, &compaction).then_some(compaction)
}
