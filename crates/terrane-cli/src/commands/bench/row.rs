//! What came out of one workload on one design.
//!
//! Counters are differences over the row, settling included; rate and latencies are those of the
//! timed part alone.

use std::time::Duration;

use serde::Serialize;
use terrane::{Design, Stats};
use terrane_workload::{LatencyMicros, Report, Workload};

use super::contents::Live;
use super::work::{JsonWork, TreeWork};
use crate::json::{JsonLatency, SCHEMA, rounded};

/// What was measured.
pub(super) struct Measured {
    pub(super) design: String,
    pub(super) design_text: String,
    /// Which repetition, from 1.
    pub(super) repetition: u32,
    pub(super) report: Report,
    pub(super) wrong_answers: u64,
    pub(super) settled: Option<Duration>,
    pub(super) stats_before: Stats,
    pub(super) stats: Stats,
    pub(super) live: Option<Live>,
    pub(super) peak_memory_bytes: Option<u64>,
    pub(super) processor_seconds: Option<f64>,
}

/// What follows from it.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) design: String,
    pub(super) design_text: String,
    pub(super) workload: Workload,
    pub(super) threads: u32,
    pub(super) operations: u64,
    pub(super) operations_per_sample: u32,
    pub(super) seconds: f64,
    pub(super) operations_per_second: f64,
    pub(super) latency: LatencyMicros,
    pub(super) settle_seconds: Option<f64>,
    pub(super) user_bytes: u64,
    pub(super) storage_bytes_written: u64,
    pub(super) storage_bytes_read: u64,
    /// `None` where nothing was written.
    pub(super) write_amplification: Option<f64>,
    /// `None` where no key was looked up.
    pub(super) read_amplification: Option<f64>,
    /// Pages read for a key looked up. `None` where no key was, and where scans read pages too.
    pub(super) pages_read: Option<f64>,
    /// `None` where live bytes are not known, or there are none.
    pub(super) space_amplification: Option<f64>,
    pub(super) table_bytes: u64,
    pub(super) live: Option<Live>,
    pub(super) flushes: u64,
    pub(super) compactions: u64,
    pub(super) trivial_moves: u64,
    pub(super) stall_micros: u64,
    /// What most of the stalls was due to; `None` if there were none.
    pub(super) stall_cause: Option<&'static str>,
    pub(super) peak_memory_bytes: Option<u64>,
    pub(super) processor_seconds: Option<f64>,
    pub(super) durability: String,
    pub(super) found: u64,
    pub(super) wrong_answers: u64,
    pub(super) writer_operations_per_second: Option<f64>,
    pub(super) repetition: u32,
    /// What the tree did and looks like.
    pub(super) work: TreeWork,
    /// Each kind of operation of a mix.
    pub(super) kinds: Vec<Kind>,
}

/// A kind of operation of a mix.
#[derive(Debug, Clone)]
pub(super) struct Kind {
    pub(super) name: String,
    pub(super) operations: u64,
    pub(super) latency: LatencyMicros,
}

impl Row {
    /// The row of what was measured.
    pub(super) fn of(measured: Measured) -> Self {
        let Measured { report, stats_before: before, stats: now, live, .. } = measured;
        let tables = |stats: &Stats| stats.flush_bytes_written + stats.compaction_bytes_written;
        let table_bytes_written = tables(&now) - tables(&before);
        let user_bytes = now.user_bytes_written - before.user_bytes_written;
        let stall_cause = stall_cause(&before, &now);
        let block_bytes = measured.design_text.parse().map(|design: Design| design.block_bytes);
        let read = now.table_bytes_read - before.table_bytes_read;
        let gets = (now.scans == before.scans).then_some(now.gets - before.gets);
        let pages_read = gets
            .zip(block_bytes.ok())
            .and_then(|(gets, block)| Some(ratio(read, gets)? / f64::from(block)));
        let kinds = report.kinds.iter().map(|kind| Kind {
            name: kind.kind.to_string(),
            operations: kind.operations,
            latency: kind.latency.summary(),
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
            latency: report.latency.summary(),
            settle_seconds: measured.settled.map(|time| time.as_secs_f64()),
            user_bytes,
            storage_bytes_written: now.storage_bytes_written() - before.storage_bytes_written(),
            storage_bytes_read: now.storage_bytes_read() - before.storage_bytes_read(),
            write_amplification: ratio(table_bytes_written, user_bytes),
            read_amplification: ratio(now.get_blocks - before.get_blocks, now.gets - before.gets),
            pages_read,
            space_amplification: live
                .and_then(|live| ratio(now.table_bytes, live.bytes))
                .map(|whole| whole - 1.0),
            table_bytes: now.table_bytes,
            live,
            flushes: now.flushes - before.flushes,
            compactions: now.compactions - before.compactions,
            trivial_moves: now.trivial_moves - before.trivial_moves,
            stall_micros: now.stalls.total_micros() - before.stalls.total_micros(),
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

/// The cause of the longest stalls.
fn stall_cause(before: &Stats, now: &Stats) -> Option<&'static str> {
    let (before, now) = (&before.stalls, &now.stalls);
    let causes = [
        ("level-0-runs", now.level0_runs_micros - before.level0_runs_micros),
        ("level-runs", now.level_runs_micros - before.level_runs_micros),
        ("total-runs", now.total_runs_micros - before.total_runs_micros),
        ("immutable-memtables", now.immutable_memtables_micros - before.immutable_memtables_micros),
        ("compactions-due", now.compactions_due_micros - before.compactions_due_micros),
        // Writers are slowed down before there are so many runs that they must wait.
        ("runs (delay)", now.delay_micros - before.delay_micros),
    ];
    let longest = causes.into_iter().max_by_key(|(_, micros)| *micros);
    longest.filter(|(_, micros)| *micros > 0).map(|(cause, _)| cause)
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// A row as programs get it. The order of the fields is part of the schema; new ones come last.
#[derive(Debug, Serialize)]
pub(super) struct JsonRow<'a> {
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
    /// Operations that a latency covers.
    operations_per_sample: u32,
    settle_seconds: Option<f64>,
    table_bytes: u64,
    live_bytes: Option<u64>,
    /// How live bytes are known: `workload` or `scan`.
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
    /// A row to be written.
    pub(super) fn of(row: &'a Row) -> Self {
        let kinds = row.kinds.iter().map(|kind| JsonKind {
            kind: &kind.name,
            operations: kind.operations,
            latency_micros: JsonLatency::of(&kind.latency),
        });
        Self {
            schema: SCHEMA,
            design: &row.design,
            workload: row.workload.to_string(),
            operations: row.operations,
            seconds: row.seconds,
            ops_per_second: rounded(row.operations_per_second),
            latency_micros: JsonLatency::of(&row.latency),
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
