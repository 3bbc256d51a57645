//! Advice as data, and as JSON.

use std::path::Path;

use serde::Serialize;
use terrane_policy::MemtableKind;
use terrane_policy::advice::{RankedDesign, summary};

use super::case::AdviceCase;
use super::decide::{ChangeDecision, difference};
use super::search::SearchResult;
use crate::output::json::SCHEMA;

/// The advice.
pub struct AdviceReport<'a> {
    /// The question.
    pub case: &'a AdviceCase,
    /// The designs found.
    pub found: &'a SearchResult,
    /// The decision whether to change the design; `None` without a database.
    pub decision: Option<&'a ChangeDecision>,
    /// The directory of the database, for suggested commands; `None` if it is open.
    pub db: Option<&'a Path>,
    /// The number of designs to report.
    pub top: usize,
    /// True if a worthwhile change is carried out.
    pub applies: bool,
    /// The source of the workload.
    pub source: WorkloadSource,
    /// The flags of `terrane bench` that run the workload, for a suggested command.
    pub trial: String,
}

/// The source of the workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WorkloadSource {
    /// The user described it.
    Given,
    /// The workload is unknown; a mix of all operations is assumed.
    Assumed,
    /// The database recorded this many operations.
    Recorded(u64),
}

/// Advice as JSON.
#[derive(Serialize)]
pub struct JsonAdvice<'a> {
    schema: u32,
    operations: JsonOperations,
    #[serde(skip_serializing_if = "Option::is_none")]
    operations_remembered: Option<u64>,
    records: f64,
    record_bytes: f64,
    filter_bits: f64,
    writes_per_second: Option<f64>,
    objective: String,
    tried: usize,
    now: JsonRanked,
    best: Vec<JsonRanked>,
    avoid: Vec<JsonRanked>,
    memtable_now: JsonMemtable,
    memtables: Vec<JsonMemtable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<JsonChange<'a>>,
}

#[derive(Serialize)]
struct JsonOperations {
    writes: f64,
    found: f64,
    missing: f64,
    scans: f64,
    scan_entries: f64,
    inserts: f64,
    deletes: f64,
    keys: String,
    per_second: Option<f64>,
}

#[derive(Serialize)]
struct JsonRanked {
    name: String,
    design: String,
    score_micros: f64,
    written: f64,
    compaction_read: f64,
    found_blocks: f64,
    missing_blocks: f64,
    runs: f64,
    space: f64,
    stalled: Option<f64>,
    p99_seconds: Option<f64>,
    exceeds: Vec<String>,
    beside_now: String,
}

#[derive(Serialize)]
struct JsonMemtable {
    memtable: String,
    nanos: f64,
}

impl JsonMemtable {
    fn of(kind: MemtableKind, nanos: f64) -> Self {
        Self { memtable: kind.to_string(), nanos: (nanos * 10.0).round() / 10.0 }
    }
}

#[derive(Serialize)]
struct JsonChange<'a> {
    design: String,
    gain: f64,
    jobs: u64,
    bytes_rewritten: u64,
    seconds: f64,
    payback_operations: Option<f64>,
    payback_seconds: Option<f64>,
    is_worth: bool,
    is_done: bool,
    reason: &'a str,
}

impl AdviceReport<'_> {
    /// Returns the advice as JSON.
    pub fn json(&self) -> JsonAdvice<'_> {
        let Self { case, found, .. } = self;
        let shares = &case.operations.shares;
        let memtables = case.memtables();
        let all = |ranked: &[RankedDesign], count: usize| -> Vec<JsonRanked> {
            ranked.iter().take(count).map(|one| self.json_ranked(one)).collect()
        };
        let change = self.decision.map(|decision| JsonChange {
            design: summary(&decision.design),
            gain: thousandths(decision.gain),
            jobs: decision.forecast.jobs,
            bytes_rewritten: decision.forecast.bytes_rewritten,
            seconds: thousandths(decision.seconds),
            payback_operations: decision.payback.map(f64::round),
            payback_seconds: decision.payback_seconds.map(thousandths),
            is_worth: decision.is_worth,
            is_done: decision.is_worth && self.applies,
            reason: &decision.reason,
        });
        JsonAdvice {
            schema: SCHEMA,
            operations: JsonOperations {
                writes: thousandths(shares.writes),
                found: thousandths(shares.found),
                missing: thousandths(shares.missing),
                scans: thousandths(shares.scans),
                scan_entries: shares.scan_entries,
                inserts: thousandths(case.operations.inserts),
                deletes: thousandths(case.operations.deletes),
                keys: case.operations.skew.to_string(),
                per_second: case.operations.rate.map(f64::round),
            },
            operations_remembered: match self.source {
                WorkloadSource::Recorded(count) => Some(count),
                WorkloadSource::Given | WorkloadSource::Assumed => None,
            },
            records: case.records.count,
            record_bytes: thousandths(case.records.bytes),
            filter_bits: case.filter_bits,
            writes_per_second: found.rate.map(f64::round),
            objective: case.objective.to_string(),
            tried: found.tried,
            now: self.json_ranked(&found.now),
            best: all(&found.best, self.top),
            avoid: all(&found.worst, found.worst.len()),
            memtable_now: JsonMemtable::of(memtables.now.0, memtables.now.1),
            memtables: memtables
                .ranked
                .iter()
                .map(|one| JsonMemtable::of(one.kind, one.nanos))
                .collect(),
            change,
        }
    }

    fn json_ranked(&self, ranked: &RankedDesign) -> JsonRanked {
        let costs = &ranked.candidate.costs;
        JsonRanked {
            name: ranked.candidate.name.clone(),
            design: summary(&ranked.candidate.design),
            score_micros: thousandths(ranked.score * 1e6),
            written: thousandths(costs.written),
            compaction_read: thousandths(costs.merged),
            found_blocks: thousandths(costs.found_blocks),
            missing_blocks: (costs.missing_blocks * 1e6).round() / 1e6,
            runs: thousandths(costs.runs),
            space: thousandths(costs.space),
            stalled: costs.stalled.map(thousandths),
            p99_seconds: costs.p99_seconds.map(|seconds| (seconds * 1e6).round() / 1e6),
            exceeds: ranked.exceeds.clone(),
            beside_now: difference(self.case, ranked, &self.found.now),
        }
    }
}

fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
