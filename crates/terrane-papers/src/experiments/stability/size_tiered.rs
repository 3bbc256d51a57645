//! Size-tiered merges, which the extended version of the paper adds (S3-64).
//!
//! Practical systems merge all runs of similar size that they find, up to a maximum number. As with
//! partitioned merges (§6.2), a rate that is measured in a closed loop relies on merges of many runs,
//! and cannot be sustained. The remedy is the same: in the testing phase, a merge takes only as many
//! runs as make it due.

use anyhow::Result;

use super::plan::{PhasePlan, PlayedPhases};
use super::scale::StabilityScale;
use crate::results::Results;

/// The maximum number of runs in a merge, with the name of the subject.
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
