//! `terrane bench --memtable`: measures memtables alone, without a log, files or threads.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result};
use serde::Serialize;
use terrane::memtable::MemoryUse;
use terrane_lab::memtable::{Load, Queries, Series, mean, percentile};
use terrane_policy::MemtableKind;

use super::BenchArgs;
use crate::exit::{Exit, usage};
use crate::output;
use crate::table::{Align, lines, table};
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, write_line};

/// The number of lookups in the memory buffer paper (§3.3), during the last quarter of the inserts.
const LOOKUPS: u64 = 200;
const LOOKUPS_AFTER: f64 = 0.75;

/// The number of repetitions. Series, means and percentiles use the fastest time of each operation;
/// the greatest latency is the smallest of the rounds' greatest latencies.
const ROUNDS: usize = 3;

/// The results of one kind.
#[derive(Serialize)]
struct Row {
    schema: u32,
    memtable: String,
    entries: usize,
    data_bytes: usize,
    metadata_bytes: usize,
    unused_bytes: usize,
    inserts: Latency,
    lookups: Latency,
    /// Absent without range scans.
    #[serde(skip_serializing_if = "Option::is_none")]
    ranges: Option<Latency>,
}

/// The latencies in nanoseconds.
#[derive(Serialize)]
struct Latency {
    mean: f64,
    p50: f64,
    p99: f64,
    p99_9: f64,
    /// The smallest of the rounds' maximum latencies.
    max: f64,
}

/// One kind of operation of a series.
type Operations = fn(&Series) -> &[u64];

impl Latency {
    fn of(rounds: &[Series], operations: Operations) -> Self {
        let fastest = Series::fastest(rounds);
        let nanos = operations(&fastest);
        let at = |share| percentile(nanos, share);
        let longest = rounds.iter().map(|round| percentile(operations(round), 1.0));
        let max = longest.reduce(f64::min).unwrap_or(0.0);
        Self { mean: mean(nanos), p50: at(0.5), p99: at(0.99), p99_9: at(0.999), max }
    }
}

impl Row {
    fn of(kind: MemtableKind, rounds: &[Series], memory: MemoryUse) -> Self {
        let first = rounds.first();
        let has_ranges = first.is_some_and(|series| !series.ranges.is_empty());
        Self {
            schema: SCHEMA,
            memtable: kind.to_string(),
            entries: first.map_or(0, |series| series.inserts.len()),
            data_bytes: memory.data_bytes,
            metadata_bytes: memory.metadata_bytes,
            unused_bytes: memory.unused_bytes,
            inserts: Latency::of(rounds, |series| &series.inserts),
            lookups: Latency::of(rounds, |series| &series.points),
            ranges: has_ranges.then(|| Latency::of(rounds, |series| &series.ranges)),
        }
    }
}

/// Measures the requested kinds.
pub(super) fn run(args: &BenchArgs) -> Result<Exit> {
    let count = usize::try_from(args.num).unwrap_or(usize::MAX);
    if !(1..=100_000_000).contains(&count) {
        return Err(usage("--num with --memtable must be 1 to 100M"));
    }
    let points = usize::try_from(args.reads.unwrap_or(LOOKUPS)).unwrap_or(usize::MAX).min(count);
    // A key has up to 10 bytes.
    let entry_bytes = 10 + args.value_size.max_bytes();
    let load = Load::new(count, entry_bytes, args.seed);
    let ranges = usize::try_from(args.ranges).unwrap_or(usize::MAX).min(count);
    let selectivity = args.selectivity;
    let queries = Queries { points, ranges, selectivity, after: LOOKUPS_AFTER };
    let all = load.rounds_of_series(&args.memtable, &queries, ROUNDS);
    let kinds = args.memtable.iter().zip(&all);
    let rows: Vec<Row> =
        kinds.map(|(kind, rounds)| Row::of(*kind, rounds, load.memory(*kind))).collect();
    if let Some(path) = &args.series {
        let file =
            File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        write_series(&mut BufWriter::new(file), &args.memtable, &all)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut out = output::text();
    if args.json {
        for row in &rows {
            write_line(&mut out, row)?;
        }
        return Ok(Exit::Done);
    }
    show(&mut out, &rows)?;
    Ok(Exit::Done)
}

fn write_series(
    out: &mut impl Write,
    kinds: &[MemtableKind],
    all: &[Vec<Series>],
) -> io::Result<()> {
    writeln!(out, "memtable\toperation\tnumber\tnanoseconds")?;
    for (kind, rounds) in kinds.iter().zip(all) {
        let Series { inserts, points, ranges } = Series::fastest(rounds);
        let operations = [("insert", inserts), ("lookup", points), ("range", ranges)];
        for (operation, nanos) in operations {
            for (number, nanos) in nanos.iter().enumerate() {
                writeln!(out, "{kind}\t{operation}\t{number}\t{nanos}")?;
            }
        }
    }
    out.flush()
}

fn show(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    let mut columns = vec![
        "insert ns",
        "p99",
        "p99.9",
        "max",
        "lookup ns",
        "p99",
        "max",
        "data",
        "metadata",
        "unused",
        "bytes/entry",
    ];
    if rows.iter().any(|row| row.ranges.is_some()) {
        columns.extend(["range ns", "p99", "max"]);
    }
    let mut headers = vec![("memtable", Align::Left)];
    headers.extend(columns.into_iter().map(|name| (name, Align::Right)));
    let mut table = table(&headers);
    for row in rows {
        let used = row.data_bytes + row.metadata_bytes;
        let mut cells = vec![
            row.memtable.clone(),
            human::number(row.inserts.mean),
            human::number(row.inserts.p99),
            human::number(row.inserts.p99_9),
            human::number(row.inserts.max),
            human::number(row.lookups.mean),
            human::number(row.lookups.p99),
            human::number(row.lookups.max),
            human::bytes(row.data_bytes as u64),
            human::bytes(row.metadata_bytes as u64),
            human::bytes(row.unused_bytes as u64),
            human::number(used as f64 / row.entries as f64),
        ];
        let ranges = row.ranges.iter().flat_map(|ranges| [ranges.mean, ranges.p99, ranges.max]);
        cells.extend(ranges.map(human::number));
        table.add_row(cells);
    }
    for line in lines(&table) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}
