//! Picks the next compaction for a shape and a design.
//!
//! [`pick`] considers every level that a [`Trigger`](crate::strategy::Trigger) marks and returns the
//! first compaction that conflicts with no running job: in the order of trigger precedence, and fullest
//! level first for fullness triggers. A level with more runs than its eagerness allows, for example
//! after a change of design, is repaired even without a trigger, so that every strategy reaches a shape
//! that satisfies its own constraints.
//!
//! A level that acts because it is full does one of the following:
//! - a level that gathers runs merges all of them into the next level: into its run if that level is a
//!   single run, into its newest run if that has room and the strategy fills runs
//!   ([`Strategy::fills_runs`](crate::Strategy::fills_runs)), and as a new run otherwise. Below level
//!   0, if the granularity is files, it instead merges a table with the tables that overlap it;
//! - a level of one run moves all or some of its tables, depending on granularity, into the next level;
//! - a level that should be one run, but has several, merges its runs in place.
//!
//! Triggers on single tables move tables in the same way, but choose among the marked tables. A
//! table whose tombstones have nothing left to delete is rewritten in place, unless a snapshot
//! needs them; in the last level a marked table is merged with the tables that it overlaps. Space
//! amplification merges all runs into the oldest, and size-tiered policies merge adjacent runs into
//! their oldest.
//!
//! Under a local limit, merges into a level at its limit wait; see `deferred_by_limit`.
//!
//! If nothing else is due, small adjacent tables of the last level are joined; see `small`.
//!
//! Merges also relocate values of files with much garbage. If no compaction can run, or dead values are
//! overdue, a separate job may collect such files; see `collect`.
//!
//! Property tests check two properties. Every compaction passes [`crate::soundness::check`]. From any
//! shape, the tree settles after finitely many compactions, because each compaction moves data down or
//! leaves fewer runs, fewer tombstones, younger tables, fewer values in files with garbage or fewer
//! small tables.

mod assemble;
mod candidate;
mod collect;
mod context;
mod cursors;
mod deferred_by_limit;
mod due;
mod expand;
mod load;
mod marked;
mod movement;
mod refill;
mod sized;
mod small;
mod space;
#[cfg(test)]
mod tests;

pub use collect::manual_collection;
pub use context::PickContext;
pub(crate) use context::is_free;
pub use cursors::Cursors;
pub use due::next_due_micros;
pub use refill::refilled;
pub use small::manual_join;

use crate::compaction::{Compaction, Reason};
use crate::key_range::KeyRange;
pub(crate) use assemble::closed_under_overlap;
use assemble::{merge_in_place, move_column, move_oldest_runs, move_runs, move_tables};
use candidate::{CompactionCandidate, Extent, PROMISED};

/// Returns the next compaction; `None` if the tree satisfies its design or all necessary jobs are
/// running.
pub fn pick(input: &PickContext<'_>) -> Option<Compaction> {
    let scaled = input.design.with_scaled_capacities(input.shape);
    let input = &PickContext { design: &scaled, ..*input };
    let candidates = candidates(input, marked::candidates(input));
    let is_open = |one: &&CompactionCandidate| !load::is_blocked(input, &candidates, one);
    let first_of = |some: &[CompactionCandidate]| {
        let merge = some.iter().filter(is_open).find_map(|candidate| {
            let merge = act(input, candidate)?;
            // A delete persistence deadline does not wait.
            let is_deferred =
                candidate.rank > 0 && deferred_by_limit::is_deferred(input, &candidates, &merge);
            (!is_deferred).then_some(merge)
        })?;
        let relocated = collect::with_merge(input, &merge);
        Some(Compaction { relocated, ..merge })
    };
    // Delete persistence precedes everything else, both for tombstones and for the values that they
    // deleted.
    let promised = candidates.partition_point(|candidate| candidate.rank == PROMISED);
    first_of(&candidates[..promised])
        .or_else(|| collect::overdue_job(input))
        .or_else(|| first_of(&candidates[promised..]))
        .or_else(|| collect::pick(input))
        .or_else(|| small::pick(input))
}

/// Returns the level whose shape alone makes a compaction due, regardless of time.
pub fn due_by_shape(input: &PickContext<'_>) -> Option<usize> {
    let scaled = input.design.with_scaled_capacities(input.shape);
    let input = &PickContext { design: &scaled, ..*input };
    let candidates = candidates(input, []);
    let is_open = |one: &&CompactionCandidate| !load::is_blocked(input, &candidates, one);
    let mut open = candidates.iter().filter(is_open);
    open.find(|one| act(input, one).is_some()).map(|one| one.level)
}

/// Returns all candidates in the order of precedence. `marked` are those of triggers on single tables.
fn candidates(
    input: &PickContext<'_>,
    marked: impl IntoIterator<Item = CompactionCandidate>,
) -> Vec<CompactionCandidate> {
    let mut candidates = load::candidates(input);
    candidates.extend(marked);
    candidates.extend(space::candidate(input));
    candidates.extend(sized::candidate(input));
    candidate::sort(&mut candidates);
    candidates
}

/// Compacts everything in `range` one level down; the caller repeats this for each level. The
/// tables of `level` that share keys with the range move into the next level, or are rewritten in
/// place if `level` is the last one; the rewrite also moves values out of files with garbage. See
/// [`manual_collection`] for the garbage that remains.
///
/// Returns `None` if the level has no tables in the range or is busy.
pub fn manual(input: &PickContext<'_>, level: usize, range: &KeyRange) -> Option<Compaction> {
    let reason = Reason::Manual { level, rewrites: false };
    let compaction = if level >= input.last_level() && level > 0 {
        merge_in_place(input, level, Some(range), reason)
    } else {
        move_runs(input, level, Some(range), reason)
    }?;
    // Values move only once, in the last step.
    let is_last = compaction.output.level == level;
    let relocated = if is_last { collect::with_request(input, &compaction) } else { Vec::new() };
    let compaction = Compaction { relocated, ..compaction };
    is_free(input, &compaction).then_some(compaction)
}

fn act(input: &PickContext<'_>, candidate: &CompactionCandidate) -> Option<Compaction> {
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
