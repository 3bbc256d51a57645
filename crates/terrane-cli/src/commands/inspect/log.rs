//! `terrane inspect log`: the segments and records of a log.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use terrane::inspect::{self, LogRecord, RecordOperation, SegmentReport};

use crate::exit::Exit;
use crate::human;
use crate::json::{JsonBytes, SCHEMA, write_line};
use crate::literal::print;
use crate::terminal::Paint;

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
    kind: &'a str,
    keyspace: u32,
    key: JsonBytes<'a>,
    value_bytes: u64,
    end: Option<JsonBytes<'a>>,
}

/// Ends with the exit of corruption if a file of the log does not begin as one.
pub(super) fn run(path: &Path, json: bool, operations: bool) -> Result<Exit> {
    let report = inspect::log(path)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    for segment in &report.segments {
        if json {
            write_line(&mut out, &describe(segment))?;
        } else {
            tell(&mut out, segment)?;
        }
        for record in segment.records.iter().filter(|_| operations) {
            if json {
                write_line(&mut out, &describe_record(record))?;
            } else {
                tell_record(&mut out, record)?;
            }
        }
    }
    out.flush()?;
    for path in &report.unreadable {
        let problem = Paint::stderr().red("problem:");
        let path = path.display();
        let _ = writeln!(io::stderr(), "{problem} {path} does not begin as a segment of a log");
    }
    Ok(if report.unreadable.is_empty() { Exit::Done } else { Exit::CorruptionFound })
}

fn describe(segment: &SegmentReport) -> JsonSegment {
    JsonSegment {
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

fn describe_record(record: &LogRecord) -> JsonRecord<'_> {
    let operations = record.operations.iter().map(|operation| JsonOperation {
        kind: operation.kind,
        keyspace: operation.keyspace,
        key: JsonBytes(&operation.key),
        value_bytes: operation.value_bytes,
        end: operation.end.as_deref().map(JsonBytes),
    });
    JsonRecord {
        position: record.position,
        kind: record.kind,
        sequence_number: record.sequence_number,
        operations: operations.collect(),
    }
}

fn tell(out: &mut dyn Write, segment: &SegmentReport) -> io::Result<()> {
    let records = human::counted(segment.records.len() as u64, "record");
    let (number, path) = (segment.segment, segment.path.display());
    let (base, bytes) = (segment.base, human::bytes(segment.end));
    let end =
        if segment.ends_in_garbage { "then something that is no record" } else { "then zeros" };
    writeln!(out, "segment {number} in {path}: {records} from position {base}, {bytes}, {end}")
}

fn tell_record(out: &mut dyn Write, record: &LogRecord) -> io::Result<()> {
    let LogRecord { position, kind, sequence_number, .. } = record;
    writeln!(out, "  {position} {kind} {sequence_number}")?;
    for RecordOperation { keyspace, kind, key, value_bytes, end, .. } in &record.operations {
        let key = print(key);
        match (*kind, end) {
            ("put", _) => writeln!(out, "    {keyspace}: put {key}, {value_bytes} bytes")?,
            ("delete", _) => writeln!(out, "    {keyspace}: delete {key}")?,
            (kind, end) => {
                let end = end.as_deref().map_or_else(String::new, print);
                writeln!(out, "    {keyspace}: {kind} {key}..{end}")?;
            }
        }
    }
    Ok(())
}
