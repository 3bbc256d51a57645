//! The order of age of places in a tree.

use std::cmp::Reverse;

use crate::compaction::{Compaction, Placement};
use crate::shape::RunId;

/// A place in the order of recency: level, then run within the level; smaller is newer.
///
/// Runs are ordered newest first, so the number of the run counts down.
pub(crate) type Recency = (usize, Reverse<u64>);

pub(crate) fn recency(level: usize, run: RunId) -> Recency {
    (level, Reverse(run.0))
}

/// Where the result of a compaction will be. A run that is joined keeps its place also when its
/// last table has left it in the meantime: the number of the run is the place.
pub(crate) fn output_recency(compaction: &Compaction) -> Recency {
    let level = compaction.output.level;
    match compaction.output.placement {
        Placement::NewRun => (level, Reverse(u64::MAX)),
        Placement::Join(run) => recency(level, run),
    }
}

/// Whether all that `newer` takes and makes is newer than all that `older` takes and makes, in
/// whichever order they end: then neither can come between the places of the other.
pub(crate) fn is_newer_throughout(newer: &Compaction, older: &Compaction) -> bool {
    let oldest = places(newer).max();
    let newest = places(older).min();
    oldest < newest
}

fn places(compaction: &Compaction) -> impl Iterator<Item = Recency> {
    let inputs = compaction.inputs.iter().map(|input| recency(input.level, input.run));
    inputs.chain([output_recency(compaction)])
}
