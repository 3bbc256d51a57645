//! The age order of positions in a tree.

use std::cmp::Reverse;

use crate::compaction::{Compaction, Placement};
use crate::shape::RunId;

/// A position in the order of recency: level, then run within the level; smaller is newer.
///
/// Runs are ordered newest first, so the run number counts down.
pub(crate) type Recency = (usize, Reverse<u64>);

pub(crate) fn recency(level: usize, run: RunId) -> Recency {
    (level, Reverse(run.0))
}

/// Returns the position of a compaction's result. A run that the result joins keeps its position
/// even if its last table has left it in the meantime, because the run number is the position.
pub(crate) fn output_recency(compaction: &Compaction) -> Recency {
    let level = compaction.output.level;
    match compaction.output.placement {
        Placement::NewRun => (level, Reverse(u64::MAX)),
        Placement::Join(run) => recency(level, run),
    }
}

/// Returns true if all inputs and the output of `newer` are newer than all inputs and the output of
/// `older`. Then neither result can land between the positions of the other compaction, whichever
/// finishes first.
pub(crate) fn is_newer_throughout(newer: &Compaction, older: &Compaction) -> bool {
    let oldest = places(newer).max();
    let newest = places(older).min();
    oldest < newest
}

fn places(compaction: &Compaction) -> impl Iterator<Item = Recency> {
    let inputs = compaction.inputs.iter().map(|input| recency(input.level, input.run));
    inputs.chain([output_recency(compaction)])
}
