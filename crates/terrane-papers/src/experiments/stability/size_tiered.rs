//! Size-tiered merges, which the extended version of the paper adds (S3-64).
//!
//! Practical systems merge as many runs of like size as they find, up to a number. As with partitioned
//! merges (§6.2), the rate that is measured while writers are as fast as the tree takes writes counts on
//! merges of many runs, and cannot be sustained. The remedy is the same: while measuring, merges take no
//! more runs than make a merge due.

use anyhow::Result;

use super::plan::{PhasePlan, PlayedPhases};
use super::scale::StabilityScale;
use crate::results::Results;

/// The number of runs that a merge takes at most, with the name of the subject.
const MOST: [(u32, &str); 2] = [(2, "size-tiered slow"), (10, "size-tiered fast")];

/// Returns a testing phase in which merges take few or many runs, and for each a running phase at 95 %
/// of its rate, in which merges take many.
pub(super) fn plan(scale: &dyn StabilityScale) -> Vec<PhasePlan> {
    let phases = MOST.into_iter().flat_map(|(most, subject)| {
        let (testing, running) = (scale.size_tiered(most), scale.size_tiered(10));
        [
            PhasePlan::testing(subject, format!("{testing}; scheduler=fair")),
            PhasePlan::running(subject, format!("{running}; scheduler=greedy"), subject),
        ]
    });
    phases.collect()
}

pub(super) fn table(played: &PlayedPhases, results: &mut Results) -> Result<()> {
    let rows = MOST.into_iter().flat_map(|(most, subject)| {
        [("testing", "testing"), ("running at 95 % of it", "running")]
            .map(|(name, phase)| (format!("at most {most}, {name}"), subject.to_owned(), phase))
    });
    let rows: Vec<_> = rows.collect();
    let title = "S3-64: size-tiered merges of at most 2 or 10 runs";
    played.table(title, "", &rows, results)
}
