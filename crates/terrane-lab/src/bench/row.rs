//! The results of one workload on one design.
//!
//! Each counter is the increase during the workload, settling included. The rate and the latencies
//! cover the timed part only.

use std::time::Duration;

use serde::Serialize;
use terrane::{Design, Stats};
use terrane_workload::{Latency, LatencyMicros, Report, Workload};

use super::contents::LiveBytes;
use super::work::{JsonWork, TreeWork};
use crate::output::json::{JsonLatency, SCHEMA, rounded};

/// The raw measurements of a workload.
pub struct Measurement {
    pub design: String,
    pub design_text: String,
    /// The repetition, from 1.
    pub repetition: u32,
    pub report: Report,
    pub wrong_answers: u64,
    pub settled: Option<Duration>,
    pub stats_before: Stats,
    pub stats: Stats,
    pub live: Option<LiveBytes>,
    pub peak_memory_bytes: Option<u64>,
    pub processor_seconds: Option<f64>,
}

/// The results of one workload on one design.
#[derive(Debug, Clone)]
pub struct WorkloadRow {
    /// The name of the design.
    pub design: String,
    /// The design, as text.
    pub design_text: String,
    /// The workload.
    pub workload: Workload,
    /// Client threads.
    pub threads: u32,
    /// Operations.
    pub operations: u64,
    /// The number of operations that each latency sample covers.
    pub operations_per_sample: u32,
    /// Seconds of the timed part.
    pub seconds: f64,
    /// Operations per second of the timed part.
    pub operations_per_second: f64,
    /// Latencies of the operations; `None` without operations.
    pub latency: Option<LatencyMicros>,
    /// Seconds until the database settled; `None` if nothing was written.
    pub settle_seconds: Option<f64>,
    /// Bytes that the user wrote.
    pub user_bytes: u64,
    /// Bytes written to storage.
    pub storage_bytes_written: u64,
    /// Bytes read from storage.
    pub storage_bytes_read: u64,
    /// Bytes written to tables and value files per user byte; `None` if nothing was written.
    pub write_amplification: Option<f64>,
    /// Data blocks read per lookup; `None` without lookups.
    pub read_amplification: Option<f64>,
    /// Pages read per lookup; `None` without lookups, or with scans.
    pub pages_read: Option<f64>,
    /// Bytes of tables and value files per live byte; `None` if live bytes are unknown or zero.
    pub space_amplification: Option<f64>,
    /// Bytes of all tables and value files.
    pub table_bytes: u64,
    /// Live bytes, if known.
    pub live: Option<LiveBytes>,
    /// Flushes.
    pub flushes: u64,
    /// Compactions that rewrote tables.
    pub compactions: u64,
    /// Tables moved without rewriting.
    pub trivial_moves: u64,
    /// Microseconds for which writers stalled, or waited for a file of the log.
    pub stall_micros: u64,
    /// The main cause of both; `None` without any.
    pub stall_cause: Option<&'static str>,
    /// Peak resident memory, if known.
    pub peak_memory_bytes: Option<u64>,
    /// Processor time of the process, if known.
    pub processor_seconds: Option<f64>,
    /// The durability of writes.
    pub durability: String,
    /// Keys found by lookups, or entries read by scans.
    pub found: u64,
    /// Wrong answers.
    pub wrong_answers: u64,
    /// Writes per second of the background writer of `readwhilewriting`.
    pub writer_operations_per_second: Option<f64>,
    /// The repetition, from 1.
    pub repetition: u32,
    /// The work of the tree, and its final shape.
    pub work: TreeWork,
    /// Each kind of operation of a mix.
    pub kinds: Vec<KindLatency>,
}

/// A kind of operation of a mix, and its latencies.
#[derive(Debug, Clone)]
pub struct KindLatency {
    /// The name of the kind.
    pub name: String,
    /// Operations.
    pub operations: u64,
    /// Latencies of the operations; `None` without operations.
    pub latency: Option<LatencyMicros>,
}

impl WorkloadRow {
    /// Computes the row of a measurement.
    pub fn of(measured: Measurement) -> Self {
        let Measurement { report, stats_before: before, stats: now, live, .. } = measured;
        let tables = |stats: &Stats| stats.flush_bytes_written + stats.compaction_bytes_written;
        let stored_bytes = now.table_bytes + now.value_bytes;
        let table_bytes_written = tables(&now) - tables(&before);
        let user_bytes = now.user_bytes_written - before.user_bytes_written;
        let stall_cause = stall_cause(&before, &now);
        let block_bytes = measured.design_text.parse().map(|design: Design| design.block_bytes);
        let read = now.table_bytes_read - before.table_bytes_read;
        let gets = (now.scans == before.scans).then_some(now.gets - before.gets);
        let pages_read = gets
            .zip(block_bytes.ok())
            .and_then(|(gets, block)| Some(ratio(read, gets)? / f64::from(block)));
        let kinds = report.kinds.iter().map(|kind| KindLatency {
            name: kind.kind.to_string(),
            operations: kind.operations,
            latency: latencies(&kind.latency),
        });
        Self {
            repetition: measured.repetition,
            work: TreeWork::between(&before, &now),
            kinds: kinds.collect(),
            design: measured.design,
            design_text: measured.design_text,
            workload: report.workload,
            threads: report.threads,
            operations: report.operations,
            operations_per_sample: report.operations_per_sample,
            seconds: report.seconds,
            operations_per_second: report.operations_per_second(),
            latency: latencies(&report.latency),
            settle_seconds: measured.settled.map(|time| time.as_secs_f64()),
            user_bytes,
            storage_bytes_written: now.storage_bytes_written() - before.storage_bytes_written(),
            storage_bytes_read: now.storage_bytes_read() - before.storage_bytes_read(),
            write_amplification: ratio(table_bytes_written, user_bytes),
            read_amplification: ratio(now.get_blocks - before.get_blocks, now.gets - before.gets),
            pages_read,
            space_amplification: live.and_then(|live| ratio(stored_bytes, live.bytes)),
            table_bytes: stored_bytes,
            live,
            flushes: now.flushes - before.flushes,
            compactions: now.compactions - before.compactions,
            trivial_moves: now.trivial_moves - before.trivial_moves,
            stall_micros: lost_micros(&now) - lost_micros(&before),
            stall_cause,
            peak_memory_bytes: measured.peak_memory_bytes,
            processor_seconds: measured.processor_seconds,
            durability: now.durability.to_string(),
            found: report.found,
            wrong_answers: measured.wrong_answers,
            writer_operations_per_second: report
                .writer
                .map(|writer| writer.operations_per_second()),
        }
    }
}

/// Returns the time that writers lost.
fn lost_micros(stats: &Stats) -> u64 {
    stats.stalls.total_micros() + stats.log_wait_micros
}

/// Returns the cause of the longest stalls.
fn stall_cause(before: &Stats, now: &Stats) -> Option<&'static str> {
    let log = now.log_wait_micros - before.log_wait_micros;
    let (before, now) = (&before.stalls, &now.stalls);
    let causes = [
        ("log", log),
        ("level-0-runs", now.level0_runs_micros - before.level0_runs_micros),
        ("level-runs", now.level_runs_micros - before.level_runs_micros),
        ("total-runs", now.total_runs_micros - before.total_runs_micros),
        ("immutable-memtables", now.immutable_memtables_micros - before.immutable_memtables_micros),
        ("compactions-due", now.compactions_due_micros - before.compactions_due_micros),
        ("value-space", now.value_space_micros - before.value_space_micros),
        ("memory-budget", now.memory_budget_micros - before.memory_budget_micros),
        // Writers are delayed before the number of runs stops them.
        ("runs (delay)", now.delay_micros - before.delay_micros),
    ];
    let longest = causes.into_iter().max_by_key(|(_, micros)| *micros);
    longest.filter(|(_, micros)| *micros > 0).map(|(cause, _)| cause)
}

fn latencies(all: &Latency) -> Option<LatencyMicros> {
    (all.samples() > 0).then(|| all.summary())
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// A row as a line of `--json`. The order of the fields is part of the schema: new ones go last.
#[derive(Debug, Serialize)]
pub struct JsonRow<'a> {
    schema: u32,
    design: &'a str,
    workload: String,
    operations: u64,
    seconds: f64,
    ops_per_second: f64,
    latency_micros: JsonLatency,
    user_bytes: u64,
    storage_bytes_written: u64,
    storage_bytes_read: u64,
    write_amplification: Option<f64>,
    read_amplification: Option<f64>,
    space_amplification: Option<f64>,
    flushes: u64,
    compactions: u64,
    trivial_moves: u64,
    stall_micros: u64,
    peak_rss_bytes: Option<u64>,
    cpu_seconds: Option<f64>,
    durability: &'a str,
    design_text: &'a str,
    threads: u32,
    /// The number of operations that each latency sample covers.
    operations_per_sample: u32,
    settle_seconds: Option<f64>,
    table_bytes: u64,
    live_bytes: Option<u64>,
    /// How the live bytes were determined: `workload` or `scan`.
    live_bytes_source: Option<&'static str>,
    stall_cause: Option<&'static str>,
    found: u64,
    wrong_answers: u64,
    writer_ops_per_second: Option<f64>,
    repetition: u32,
    #[serde(flatten)]
    work: JsonWork,
    /// Each kind of operation of a mix.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kinds: Vec<JsonKind<'a>>,
    pages_read_per_get: Option<f64>,
}

#[derive(Debug, Serialize)]
struct JsonKind<'a> {
    kind: &'a str,
    operations: u64,
    latency_micros: JsonLatency,
}

impl<'a> JsonRow<'a> {
    /// Converts a row.
    pub fn of(row: &'a WorkloadRow) -> Self {
        let kinds = row.kinds.iter().map(|kind| JsonKind {
            kind: &kind.name,
            operations: kind.operations,
            latency_micros: JsonLatency::of(kind.latency.as_ref()),
        });
        Self {
            schema: SCHEMA,
            design: &row.design,
            workload: row.workload.to_string(),
            operations: row.operations,
            seconds: row.seconds,
            ops_per_second: rounded(row.operations_per_second),
            latency_micros: JsonLatency::of(row.latency.as_ref()),
            user_bytes: row.user_bytes,
            storage_bytes_written: row.storage_bytes_written,
            storage_bytes_read: row.storage_bytes_read,
            write_amplification: row.write_amplification.map(rounded),
            read_amplification: row.read_amplification.map(rounded),
            space_amplification: row.space_amplification.map(rounded),
            flushes: row.flushes,
            compactions: row.compactions,
            trivial_moves: row.trivial_moves,
            stall_micros: row.stall_micros,
            peak_rss_bytes: row.peak_memory_bytes,
            cpu_seconds: row.processor_seconds.map(rounded),
            durability: &row.durability,
            design_text: &row.design_text,
            threads: row.threads,
            operations_per_sample: row.operations_per_sample,
            settle_seconds: row.settle_seconds.map(rounded),
            table_bytes: row.table_bytes,
            live_bytes: row.live.map(|live| live.bytes),
            live_bytes_source: row.live.map(|live| live.source),
            stall_cause: row.stall_cause,
            found: row.found,
            wrong_answers: row.wrong_answers,
            writer_ops_per_second: row.writer_operations_per_second.map(rounded),
            repetition: row.repetition,
            work: JsonWork::of(&row.work),
            kinds: kinds.collect(),
            pages_read_per_get: row.pages_read.map(rounded),
        }
    }
}
