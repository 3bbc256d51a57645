//! Queries next to the writers: Fig. 13 and 14.
//!
//! All pairs run concurrently, each with a reader in a closed loop. The readers have equal shares
//! of the processors, so the ratio within a pair is the ratio of the costs of a query.

use anyhow::{Context, Result};
use terrane_lab::output::human;
use terrane_workload::stability::Query;

use super::sizes::StabilitySizes;
use crate::experiments::stability::figures::{self, POLICIES};
use crate::experiments::stability::plan::{PhasePlan, PlayedPhases, Stage};
use crate::results::Results;

/// The paper's long scans read a hundredth of the records.
const LONG_SHARE: u64 = 100;
/// Queries are frequent, so their phases can be shorter than others.
const LENGTH: f64 = 0.375;
const KINDS: [&str; 3] = ["point", "short scan", "long scan"];

pub(super) fn plan(sizes: &StabilitySizes) -> Vec<PhasePlan> {
    let long = u32::try_from(sizes.records() / LONG_SHARE).unwrap_or(u32::MAX).max(1);
    let queries = [Query::Point, Query::Scan { entries: 100 }, Query::Scan { entries: long }];
    let mut plan = Vec::new();
    for (policy, design) in POLICIES.iter().zip(figures::full_merges(sizes)) {
        for (kind, query) in KINDS.iter().zip(queries) {
            for scheduler in ["fair", "greedy"] {
                let subject = format!("{policy} {scheduler}");
                let design = format!("{design}; scheduler={scheduler}");
                plan.push(PhasePlan {
                    phase: (*kind).to_owned(),
                    stage: Stage::Queries,
                    query: Some(query),
                    length: LENGTH,
                    ..PhasePlan::running(subject, design, format!("{policy} fair"))
                });
            }
        }
    }
    plan
}

pub(super) fn table(played: &PlayedPhases, results: &mut Results) -> Result<()> {
    let mut rows = Vec::new();
    for policy in POLICIES {
        for kind in KINDS {
            let fair = played.get(&format!("{policy} fair"), kind)?;
            let greedy = played.get(&format!("{policy} greedy"), kind)?;
            let missing = "a reader reported nothing";
            let rates = (fair.query_rate.context(missing)?, greedy.query_rate.context(missing)?);
            let median = |p50: Option<f64>| human::seconds(p50.unwrap_or(0.0));
            rows.push(vec![
                format!("{policy}, {kind}"),
                human::number(rates.0),
                human::number(rates.1),
                human::ratio(rates.1 / rates.0.max(1e-9)),
                median(fair.query_p50),
                median(greedy.query_p50),
                format!("{:.1}", fair.runs),
                format!("{:.1}", greedy.runs),
            ]);
        }
    }
    let headers =
        ["", "fair, a second", "greedy", "ratio", "median, fair", "greedy", "runs, fair", "greedy"];
    results.table("Fig. 13, 14: queries of one reader next to the writers", &headers, rows);
    Ok(())
}
