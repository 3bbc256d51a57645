//! Secondary indexes, which the extended version of the paper adds: maintained eagerly and lazily
//! (S3-64).
//!
//! The records and two indexes are three trees, which share the budget and the scheduler.

use anyhow::Result;

use super::sizes::StabilitySizes;
use crate::experiments::stability::plan::{PhasePlan, PlayedPhases};
use crate::experiments::stability::scale::StabilityScale;
use crate::results::Results;

/// The subject, the name in the table, and the index maintenance.
const INDEXES: [(&str, &str, Option<&str>); 3] = [
    ("no index", "no index", None),
    ("eager indexes", "two, eager", Some("eager(2)")),
    ("lazy indexes", "two, lazy", Some("lazy(2)")),
];

pub(super) fn plan(sizes: &StabilitySizes) -> Vec<PhasePlan> {
    let design = |scheduler| format!("{}; scheduler={scheduler}", sizes.tiering(3));
    let phases = INDEXES.into_iter().flat_map(|(subject, _, indexes)| {
        let indexes = indexes.and_then(|text| text.parse().ok());
        [
            PhasePlan::testing(subject, design("fair")),
            PhasePlan::running(subject, design("greedy"), subject),
        ]
        .map(|phase| PhasePlan { indexes, ..phase })
    });
    phases.collect()
}

pub(super) fn record(played: &PlayedPhases, results: &mut Results) -> Result<()> {
    for (metric, subject) in [("eager_cause", "eager indexes"), ("lazy_cause", "lazy indexes")] {
        results.record_text(metric, &*played.get(subject, "running")?.main_cause);
    }
    let rows: Vec<_> = INDEXES
        .into_iter()
        .flat_map(|(subject, name, _)| {
            ["testing", "running"]
                .map(|phase| (format!("{name}, {phase}"), subject.to_owned(), phase))
        })
        .collect();
    let title = "S3-64: secondary indexes, tiering, runs and merges of all trees together";
    played.table(title, "", &rows, results)
}
