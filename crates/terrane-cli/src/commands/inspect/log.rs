//! `terrane inspect log`: the records of a log.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap::Args;
use serde::Serialize;
use terrane::inspect::{self, LogRecord, RecordOperation, SegmentReport};

use crate::exit::Exit;
use crate::output;
use crate::time::utc;
use terrane_lab::input::kv_literal;
use terrane_lab::input::quantity::count;
use terrane_lab::output::human;
use terrane_lab::output::json::{JsonBytes, SCHEMA, write_line};

/// Show the records of the log, or of one of its files, with their operations
#[derive(Debug, Clone, Args)]
pub(crate) struct LogArgs {
    /// The directory of the database, or a .log file
    path: PathBuf,

    /// The most records to print
    #[arg(long, value_name = "N", value_parser = count)]
    limit: Option<u64>,

    /// Print a JSON object per line: each file, followed by its records
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct JsonSegment {
    schema: u32,
    path: String,
    segment: u64,
    previous: u64,
    base: u64,
    created_micros: u64,
    records: usize,
    end: u64,
    ends_in_garbage: bool,
}

#[derive(Serialize)]
struct JsonRecord<'a> {
    position: u64,
    kind: &'a str,
    sequence_number: u64,
    operations: Vec<JsonOperation<'a>>,
}

#[derive(Serialize)]
struct JsonOperation<'a> {
    keyspace: u32,
    kind: &'a str,
    key: JsonBytes<'a>,
    /// The excluded end of a range; null if unbounded.
    end: Option<JsonBytes<'a>>,
    value_bytes: u64,
}

impl LogArgs {
    /// Prints the records.
    pub(super) fn run(&self) -> Result<Exit> {
        let report = inspect::log(&self.path)?;
        if report.segments.is_empty() && report.unreadable.is_empty() {
            return Err(anyhow!("no log in {}", self.path.display()));
        }
        let mut out = BufWriter::new(output::text_or_json(self.json));
        let mut left = self.limit.unwrap_or(u64::MAX);
        for segment in &report.segments {
            self.write_segment(&mut out, segment)?;
            for record in &segment.records {
                if left == 0 {
                    break;
                }
                left -= 1;
                self.write_record(&mut out, record)?;
            }
        }
        out.flush()?;
        for path in &report.unreadable {
            let path = path.display();
            let _ =
                writeln!(io::stderr(), "note: {path} does not start with the header of a log file");
        }
        Ok(Exit::Done)
    }

    fn write_segment(&self, out: &mut impl Write, segment: &SegmentReport) -> io::Result<()> {
        if self.json {
            return write_line(out, &JsonSegment::of(segment));
        }
        let SegmentReport { path, segment: number, base, end, .. } = segment;
        let records = human::counted(segment.records.len() as u64, "record");
        let (path, created) = (path.display(), utc(segment.created_micros));
        let garbage = if segment.ends_in_garbage { ", then garbage" } else { "" };
        writeln!(out, "{path}: segment {number} from position {base}, created {created}")?;
        writeln!(out, "{records} up to byte {end}{garbage}")
    }

    fn write_record(&self, out: &mut impl Write, record: &LogRecord) -> io::Result<()> {
        if self.json {
            return write_line(out, &JsonRecord::of(record));
        }
        let LogRecord { position, kind, sequence_number, .. } = record;
        writeln!(out, "  {position:>10}  {kind}  sequence number {sequence_number}")?;
        record.operations.iter().try_for_each(|operation| {
            let RecordOperation { keyspace, kind, key, value_bytes, end, .. } = operation;
            let key = kv_literal::print(key);
            let what = match (*kind, end) {
                ("delete-range", Some(end)) => format!("{key}..{}", kv_literal::print(end)),
                ("delete-range", None) => format!("{key}.."),
                ("put", _) => format!("{key} = {}", human::bytes(*value_bytes)),
                _ => key,
            };
            writeln!(out, "              keyspace {keyspace}  {kind} {what}")
        })
    }
}

impl JsonSegment {
    fn of(segment: &SegmentReport) -> Self {
        Self {
            schema: SCHEMA,
            path: segment.path.display().to_string(),
            segment: segment.segment,
            previous: segment.previous,
            base: segment.base,
            created_micros: segment.created_micros,
            records: segment.records.len(),
            end: segment.end,
            ends_in_garbage: segment.ends_in_garbage,
        }
    }
}

impl<'a> JsonRecord<'a> {
    fn of(record: &'a LogRecord) -> Self {
        let operations = record.operations.iter().map(|operation| JsonOperation {
            keyspace: operation.keyspace,
            kind: operation.kind,
            key: JsonBytes(&operation.key),
            end: operation.end.as_deref().map(JsonBytes),
            value_bytes: operation.value_bytes,
        });
        Self {
            position: record.position,
            kind: record.kind,
            sequence_number: record.sequence_number,
            operations: operations.collect(),
        }
    }
}
