//! Forcing tables to the disk while they are written (S3-59).
//!
//! The extended version of the paper forces the writes of a merge every 16 MB, which shortens the tail
//! of small queries, because the force at the end of a large merge is broken into many small ones. Here
//! tables are synced every mebibyte or only at their end, while a reader queries the tree past the page
//! cache. Phases of both kinds alternate, one at a time, because syncs of one database stall all
//! others. Merges are a hundred times the size between two syncs, as in the paper.

use anyhow::{Context, Result};
use terrane_lab::output::human;
use terrane_workload::stability::Query;

use super::sizes::StabilitySizes;
use crate::experiments::stability::figures;
use crate::experiments::stability::phase::PhaseMeasurement;
use crate::experiments::stability::plan::{
    PhaseDisk, PhasePlan, PlannedArrival, PlayedPhases, Stage,
};
use crate::results::Results;

/// The length of a phase as a share of a full phase.
const LENGTH: f64 = 0.1;
/// The paper's budget.
const BUDGET: u64 = 100_000_000;
/// Writes arrive at this share of the rate that the budget allows.
const UTILIZATION: f64 = 0.8;
const SYNC_BYTES: u64 = 1 << 20;
/// All records fill this many memtables.
const MEMTABLES: u64 = 60;

const SUBJECTS: [(&str, u64); 2] = [("force on", SYNC_BYTES), ("force off", 0)];
const KINDS: [(&str, Query); 2] =
    [("point", Query::Point), ("short scan", Query::Scan { entries: 100 })];

fn phase_name(kind: &str, round: usize) -> String {
    format!("{kind} {round}")
}

pub(super) fn plan(sizes: &StabilitySizes) -> Vec<PhasePlan> {
    let [tiering, _] = figures::full_merges(sizes);
    let buffer = (sizes.data_bytes() as u64 / MEMTABLES).max(sizes.buffer_bytes());
    let design = format!("{tiering}; scheduler=fair; buffer={buffer}");
    let share = UTILIZATION * BUDGET as f64 / sizes.budget() as f64;
    let mut plan = Vec::new();
    for round in 0..sizes.rounds {
        for (kind, query) in KINDS {
            for (subject, sync_bytes) in SUBJECTS {
                plan.push(PhasePlan {
                    phase: phase_name(kind, round),
                    stage: Stage::Disk(plan.len()),
                    arrival: PlannedArrival::Share { of: "tiering fair".to_owned(), share },
                    query: Some(query),
                    disk: Some(PhaseDisk { sync_bytes, budget: BUDGET }),
                    length: LENGTH,
                    ..PhasePlan::running(subject, &design, "tiering fair")
                });
            }
        }
    }
    plan
}

/// Records the latencies of queries in each round, and adds their table.
pub(super) fn record(
    sizes: &StabilitySizes,
    played: &PlayedPhases,
    results: &mut Results,
) -> Result<()> {
    let mut rows = Vec::new();
    for (kind, _) in KINDS {
        for (subject, _) in SUBJECTS {
            let of = |metric: fn(&PhaseMeasurement) -> Option<f64>| -> Result<Vec<f64>> {
                let phase = |round| played.get(subject, &phase_name(kind, round));
                let value = |round| metric(phase(round)?).context("a reader reported nothing");
                (0..sizes.rounds).map(value).collect()
            };
            let (rates, p99) = (of(|one| one.query_rate)?, of(|one| one.query_p99)?);
            let median = |values: &[f64]| {
                let mut values = values.to_vec();
                values.sort_by(f64::total_cmp);
                values.get(values.len() / 2).copied().unwrap_or(0.0)
            };
            rows.push(vec![
                format!("{kind}, {subject}"),
                human::number(median(&rates)),
                human::seconds(median(&of(|one| one.query_p50)?)),
                human::seconds(median(&p99)),
            ]);
            results.record_rounds("force_rate", &[subject, kind], median(&rates), &rates);
            results.record_rounds("force_p99", &[subject, kind], median(&p99), &p99);
        }
    }
    let headers = ["", "queries a second", "p50", "p99"];
    let title =
        "S3-59: queries next to merges whose tables are synced as they are written, or at the end";
    results.table(title, &headers, rows);
    Ok(())
}
