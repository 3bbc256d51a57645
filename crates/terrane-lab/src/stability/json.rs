//! The report as JSON, one object per design. The order of the fields is part of the schema; new
//! fields go last.

use serde::Serialize;
use terrane_workload::stability::{KindLatency, PhaseReport, ReaderReport, Sample, Verdict};

use super::counted::CountedRun;
use super::evaluation::{DesignEvaluation, MapCalibration};
use super::outlook::{Conclusion, Horizon, Outlook, Prediction};
use super::plan::StabilityPlan;
use super::strips;
use crate::output::json::{JsonLatency, SCHEMA, rounded};

/// The results of one design.
#[derive(Debug, Serialize)]
pub struct JsonEvaluation<'a> {
    schema: u32,
    design: &'a str,
    design_text: &'a str,
    testing_design_text: &'a str,
    /// The result of the measurement alone; `None` if it says nothing.
    sustainable: Option<bool>,
    maximum_writes_per_second: f64,
    offered_writes_per_second: f64,
    utilization: f64,
    arrival: String,
    records: u64,
    key_bytes: usize,
    value_bytes: String,
    distribution: Option<String>,
    writers: u32,
    seed: u64,
    /// The write rate limit of flushes and merges per second; `None` without a limit.
    budget: Option<String>,
    criteria: Vec<JsonFinding>,
    advice: Vec<JsonSuggestion>,
    cautions: &'a [String],
    waited_micros: Vec<JsonCause<'a>>,
    testing: JsonPhase,
    running: JsonPhase,
    /// The same phases on an in-memory map.
    mem: Option<JsonCalibration>,
    /// The secondary indexes of the records.
    indexes: Option<String>,
    /// The verdict of the measurement and the simulator: `sustainable`, `unsustainable` or
    /// `unknown`.
    conclusion: &'static str,
    /// The run replayed and continued in the simulator; `None` if it makes no prediction.
    outlook: Option<JsonOutlook>,
    /// Why the simulator makes no prediction.
    outlook_withheld: Option<&'a str>,
    /// The counters that the simulator was fitted to.
    counted: Option<&'a CountedRun>,
}

#[derive(Debug, Serialize)]
struct JsonOutlook {
    /// Measured and simulated.
    write_amplification: [f64; 2],
    runs: [f64; 2],
    held_share: [f64; 2],
    writes_per_second: [f64; 2],
    horizons: Vec<JsonHorizon>,
    /// The rate that holds for `sustained_seconds`.
    sustainable_writes_per_second: f64,
    sustained_seconds: f64,
    not_simulated: Vec<String>,
}

#[derive(Debug, Serialize)]
struct JsonHorizon {
    seconds: f64,
    holds: bool,
    p99_micros: Option<f64>,
    longest_stall_seconds: f64,
    first_stall_seconds: Option<f64>,
    first_stall_cause: Option<String>,
    /// The source and the target level of the largest merge at that time.
    first_stall_merging: Option<[usize; 2]>,
}

impl JsonOutlook {
    fn of(played: &Prediction) -> Self {
        let pair = |(measured, simulated): (f64, f64)| [rounded(measured), rounded(simulated)];
        let horizon = |one: &Horizon| JsonHorizon {
            seconds: rounded(one.seconds),
            holds: one.holds,
            p99_micros: one.p99.map(|p99| rounded(p99 * 1e6)),
            longest_stall_seconds: rounded(one.longest_stall),
            first_stall_seconds: one.first_stall.map(|stall| rounded(stall.from)),
            first_stall_cause: one.first_stall.map(|stall| stall.cause.to_string()),
            first_stall_merging: one
                .first_stall
                .and_then(|stall| stall.merging)
                .map(|(from, to)| [from, to]),
        };
        let residual = &played.residual;
        Self {
            write_amplification: pair(residual.write_amplification),
            runs: pair(residual.runs),
            held_share: pair(residual.held),
            writes_per_second: pair(residual.rate),
            horizons: played.horizons.iter().map(horizon).collect(),
            sustainable_writes_per_second: rounded(played.sustainable),
            sustained_seconds: rounded(played.sustained_seconds),
            not_simulated: played.notes.clone(),
        }
    }
}

#[derive(Debug, Serialize)]
struct JsonCalibration {
    sustainable: bool,
    testing: JsonPhase,
    running: JsonPhase,
}

#[derive(Debug, Serialize)]
struct JsonFinding {
    criterion: &'static str,
    met: bool,
    measured: f64,
    bound: f64,
}

#[derive(Debug, Serialize)]
struct JsonSuggestion {
    reason: &'static str,
    remedy: &'static str,
}

#[derive(Debug, Serialize)]
struct JsonCause<'a> {
    cause: &'a str,
    micros: u64,
}

#[derive(Debug, Serialize)]
struct JsonPhase {
    seconds: f64,
    warm_up_seconds: f64,
    offered: Option<u64>,
    completed: u64,
    unfinished: u64,
    writes_per_second: f64,
    write_latency_micros: JsonLatency,
    processing_latency_micros: JsonLatency,
    /// How late idle clients started writes: the driver's own delay.
    driver_late_micros: JsonLatency,
    slowest_second_share: Option<f64>,
    stalls: Vec<JsonStall>,
    user_bytes: u64,
    storage_bytes_written: Option<u64>,
    readers: Option<JsonReaders>,
    /// The length of a window in seconds; `None` without windows.
    window_seconds: Option<f64>,
    /// Writes that completed in each window, and the longest write latency among them; `None` for a
    /// window without writes.
    window_writes: Vec<u64>,
    window_longest_micros: Vec<Option<f64>>,
    samples: Vec<JsonSample>,
    flushes: Option<u64>,
    merges: Option<u64>,
    /// Merges by source level.
    merges_by_level: Vec<u64>,
    /// The operations of a mix.
    operations: Vec<JsonOperation>,
}

#[derive(Debug, Serialize)]
struct JsonStall {
    begin_seconds: f64,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct JsonSample {
    seconds: f64,
    runs: Option<u64>,
    storage_bytes_written: Option<u64>,
    stall_micros: Option<u64>,
    levels: Option<u64>,
    running_merges: Option<u64>,
    /// The cause that stalled writers the longest since the previous sample; `None` without stalls.
    stalled_by: Option<String>,
}

#[derive(Debug, Serialize)]
struct JsonReaders {
    query: String,
    threads: u32,
    completed: u64,
    queries_per_second: f64,
    latency_micros: JsonLatency,
    wrong_answers: u64,
    /// Queries answered in each window.
    window_queries: Vec<u64>,
}

impl JsonReaders {
    fn of(readers: &ReaderReport) -> Self {
        Self {
            query: readers.query.to_string(),
            threads: readers.threads,
            completed: readers.completed,
            queries_per_second: rounded(readers.per_second()),
            latency_micros: JsonLatency::with_tail(&readers.latency),
            wrong_answers: readers.wrong_answers,
            window_queries: readers.timeline.windows(1.0).iter().map(|one| one.completed).collect(),
        }
    }
}

fn samples(phase: &PhaseReport) -> Vec<JsonSample> {
    let before = phase.samples.first().into_iter().chain(&phase.samples);
    let of = |(before, sample): (&Sample, &Sample)| {
        let cause = strips::longest_cause(phase, &before.glance, &sample.glance);
        JsonSample {
            seconds: rounded(sample.seconds),
            runs: sample.glance.components,
            storage_bytes_written: sample.glance.storage_bytes_written,
            stall_micros: sample.glance.stall_micros,
            levels: sample.glance.levels,
            running_merges: sample.glance.running_merges,
            stalled_by: cause.map(str::to_owned),
        }
    };
    before.zip(&phase.samples).map(of).collect()
}

/// An operation of a mix, with its latencies from arrival to end.
#[derive(Debug, Serialize)]
struct JsonOperation {
    operation: String,
    share: f64,
    latency_micros: JsonLatency,
}

impl JsonOperation {
    fn of(kind: &KindLatency) -> Self {
        Self {
            operation: kind.part.kind.to_string(),
            share: kind.part.share,
            latency_micros: JsonLatency::with_tail(&kind.latency),
        }
    }
}

impl JsonPhase {
    fn of(phase: &PhaseReport) -> Self {
        let windows = phase.timeline.windows(1.0);
        let stall = |one: &terrane_workload::stability::Stall| JsonStall {
            begin_seconds: rounded(one.begin_seconds),
            seconds: rounded(one.seconds),
        };
        Self {
            seconds: rounded(phase.seconds),
            warm_up_seconds: rounded(phase.warm_up_seconds),
            offered: phase.offered,
            completed: phase.completed,
            unfinished: phase.unfinished,
            writes_per_second: rounded(phase.per_second()),
            write_latency_micros: JsonLatency::with_tail(&phase.write),
            processing_latency_micros: JsonLatency::with_tail(&phase.processing),
            driver_late_micros: JsonLatency::with_tail(&phase.late),
            slowest_second_share: phase.slowest_second_share().map(rounded),
            stalls: phase.stalls().iter().map(stall).collect(),
            user_bytes: phase.user_bytes_written,
            storage_bytes_written: phase.counters.storage_bytes_written,
            readers: phase.readers.as_ref().map(JsonReaders::of),
            window_seconds: windows.first().map(|window| rounded(window.seconds)),
            window_writes: windows.iter().map(|window| window.completed).collect(),
            window_longest_micros: windows
                .iter()
                .map(|window| {
                    let longest = rounded(window.longest_nanos as f64 / 1e3);
                    (window.completed > 0).then_some(longest)
                })
                .collect(),
            samples: samples(phase),
            flushes: phase.counters.flushes,
            merges: phase.counters.compactions,
            merges_by_level: phase.counters.compactions_by_level.clone(),
            operations: phase.kinds.iter().map(JsonOperation::of).collect(),
        }
    }
}

fn findings(verdict: &Verdict) -> Vec<JsonFinding> {
    let finding = |one: &terrane_workload::stability::Finding| JsonFinding {
        criterion: one.criterion.name(),
        met: one.is_met(),
        measured: one.measured,
        bound: one.bound,
    };
    verdict.findings.iter().map(finding).collect()
}

impl<'a> JsonEvaluation<'a> {
    /// Converts an evaluation.
    pub fn of(
        evaluation: &'a DesignEvaluation,
        calibration: Option<&MapCalibration>,
        plan: &StabilityPlan,
    ) -> Self {
        let run = &plan.phases.run;
        let report = &evaluation.report;
        let advice = evaluation.advice.iter();
        let causes = evaluation.stalls.iter();
        Self {
            schema: SCHEMA,
            design: &evaluation.name,
            design_text: &evaluation.design,
            testing_design_text: &evaluation.testing_design,
            sustainable: evaluation.is_sustained(),
            maximum_writes_per_second: rounded(report.testing.per_second()),
            offered_writes_per_second: rounded(report.running.offered_per_second()),
            utilization: plan.phases.utilization,
            arrival: plan.phases.arrival.to_string(),
            records: run.num,
            key_bytes: run.key_size_bytes,
            value_bytes: run.value_size.to_string(),
            distribution: run.distribution.map(|one| one.to_string()),
            writers: plan.phases.writers,
            seed: run.seed,
            budget: plan.budget.map(|budget| budget.to_string()),
            criteria: findings(&evaluation.verdict),
            advice: advice
                .map(|one| JsonSuggestion { reason: one.reason, remedy: one.remedy })
                .collect(),
            cautions: &evaluation.cautions,
            waited_micros: causes
                .map(|(cause, micros)| JsonCause { cause, micros: *micros })
                .collect(),
            testing: JsonPhase::of(&report.testing),
            running: JsonPhase::of(&report.running),
            mem: calibration.map(|one| JsonCalibration {
                sustainable: one.verdict.is_sustainable(),
                testing: JsonPhase::of(&one.report.testing),
                running: JsonPhase::of(&one.report.running),
            }),
            indexes: plan.indexes.map(|indexes| indexes.to_string()),
            conclusion: match evaluation.conclusion() {
                Conclusion::Sustainable => "sustainable",
                Conclusion::Unsustainable => "unsustainable",
                Conclusion::Unknown => "unknown",
            },
            outlook: match &evaluation.outlook {
                Outlook::Played(played) => Some(JsonOutlook::of(played)),
                Outlook::Withheld(_) => None,
            },
            outlook_withheld: match &evaluation.outlook {
                Outlook::Played(_) => None,
                Outlook::Withheld(reason) => Some(reason),
            },
            counted: evaluation.counted.as_ref(),
        }
    }
}
