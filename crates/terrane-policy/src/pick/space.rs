//! Space amplification: data that may be out of date, against data that is the oldest.
//!
//! How much of a run is out of date cannot be seen without reading it. RocksDB's estimate, taken
//! here, is that all of the newer runs may be: their bytes over those of the oldest run. Then all
//! runs become one.

use super::candidate::{Candidate, Extent, ranked};
use super::input::PickInput;
use crate::compaction::{Compaction, Input, Output, Placement, Reason};
use crate::shape::Run;
use crate::strategy::Trigger;

/// The tree as a candidate, if some level has the trigger and it fires.
pub(super) fn candidate(input: &PickInput<'_>) -> Option<Candidate> {
    let level = input.last_level();
    let (rank, threshold) = ranked(input, level).find_map(|(rank, trigger)| match trigger {
        Trigger::SpaceAmplification(percent) => Some((rank, u64::from(*percent))),
        _ => None,
    })?;
    let oldest = input.shape.level(level).runs.last()?.size_bytes();
    let newer = input.shape.size_bytes() - oldest;
    let percent = u128::from(newer) * 100 / u128::from(oldest.max(1));
    let percent = u64::try_from(percent).unwrap_or(u64::MAX);
    let kind = crate::strategy::TriggerKind::SpaceAmplification;
    (percent > threshold)
        .then(|| Candidate::triggered(kind, level, rank, (percent, threshold), Extent::Tree))
}

/// All runs into the oldest.
pub(super) fn merge_all(input: &PickInput<'_>, reason: Reason) -> Option<Compaction> {
    let level = input.last_level();
    let oldest = input.shape.level(level).runs.last()?;
    let all =
        |(level, run): (usize, &Run)| Input { level, run: run.id, tables: run.tables.clone() };
    let levels = input.shape.levels.iter().enumerate();
    let runs = levels.flat_map(|(index, level)| level.runs.iter().map(move |run| (index, run)));
    let output = Output { level, placement: Placement::Join(oldest.id) };
    Some(Compaction { inputs: runs.map(all).collect(), output, reason })
}
