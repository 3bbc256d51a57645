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
use terrane_lab::human;
use terrane_lab::json::{SCHEMA, write_line};

/// The number of lookups in the memory buffer paper (§3.3), during the last quarter of the inserts.
const LOOKUPS: u64 = 200;
const LOOKUPS_AFTER: f64 = 0.75;

/// The number of repetitions; each operation counts at its fastest.
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
}

/// The latencies in nanoseconds.
#[derive(Serialize)]
struct Latency {
    mean: f64,
    p50: f64,
    p99: f64,
    p99_9: f64,
    max: f64,
}

impl Latency {
    fn of(nanos: &[u64]) -> Self {
        let at = |share| percentile(nanos, share);
        Self { mean: mean(nanos), p50: at(0.5), p99: at(0.99), p99_9: at(0.999), max: at(1.0) }
    }
}

impl Row {
    fn of(kind: MemtableKind, series: &Series, memory: MemoryUse) -> Self {
        Self {
            schema: SCHEMA,
            memtable: kind.to_string(),
            entries: series.inserts.len(),
            data_bytes: memory.data_bytes,
            metadata_bytes: memory.metadata_bytes,
            unused_bytes: memory.unused_bytes,
            inserts: Latency::of(&series.inserts),
            lookups: Latency::of(&series.points),
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
    let queries = Queries { points, after: LOOKUPS_AFTER, ..Queries::default() };
    let all = load.best_series(&args.memtable, &queries, ROUNDS);
    let kinds = args.memtable.iter().zip(&all);
    let rows: Vec<Row> =
        kinds.map(|(kind, series)| Row::of(*kind, series, load.memory(*kind))).collect();
    if let Some(path) = &args.series {
        let file =
            File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        write_series(&mut BufWriter::new(file), &args.memtable, &all)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut out = output::stdout();
    if args.json {
        for row in &rows {
            write_line(&mut out, row)?;
        }
        return Ok(Exit::Done);
    }
    show(&mut out, &rows)?;
    Ok(Exit::Done)
}

fn write_series(out: &mut impl Write, kinds: &[MemtableKind], all: &[Series]) -> io::Result<()> {
    writeln!(out, "memtable\toperation\tnumber\tnanoseconds")?;
    for (kind, series) in kinds.iter().zip(all) {
        let operations = [("insert", &series.inserts), ("lookup", &series.points)];
        for (operation, nanos) in operations {
            for (number, nanos) in nanos.iter().enumerate() {
                writeln!(out, "{kind}\t{operation}\t{number}\t{nanos}")?;
            }
        }
    }
    out.flush()
}

fn show(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    let columns = [
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
    let mut headers = vec![("memtable", Align::Left)];
    headers.extend(columns.map(|name| (name, Align::Right)));
    let mut table = table(&headers);
    for row in rows {
        let used = row.data_bytes + row.metadata_bytes;
        table.add_row([
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
        ]);
    }
    for line in lines(&table) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}
