//! `terrane inspect table`: a table file.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use terrane::inspect::{self, TableEntry, TableReport};

use crate::human;
use crate::json::{JsonBytes, SCHEMA, write_line};
use crate::literal::print;

#[derive(Serialize)]
struct JsonTable<'a> {
    schema: u32,
    path: String,
    table: u64,
    writer: u64,
    bytes: u64,
    blocks: u64,
    entries: u64,
    keys: u64,
    tombstones: u64,
    key_bytes: u64,
    value_bytes: u64,
    smallest_sequence_number: u64,
    largest_sequence_number: u64,
    created_micros: u64,
    range_tombstones: Vec<JsonRange<'a>>,
}

#[derive(Serialize)]
struct JsonRange<'a> {
    start: JsonBytes<'a>,
    end: Option<JsonBytes<'a>>,
    sequence_numbers: &'a [u64],
}

#[derive(Serialize)]
struct JsonEntry<'a> {
    key: JsonBytes<'a>,
    sequence_number: u64,
    /// Null for a tombstone.
    value: Option<JsonBytes<'a>>,
}

pub(super) fn run(path: &Path, json: bool, entries: bool) -> Result<()> {
    let report = inspect::table(path)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if json {
        write_line(&mut out, &describe(&report))?;
    } else {
        tell(&mut out, &report)?;
    }
    if entries {
        for entry in report.iter() {
            tell_entry(&mut out, &entry?, json)?;
        }
    }
    Ok(out.flush()?)
}

fn describe(report: &TableReport) -> JsonTable<'_> {
    let ranges = report.range_tombstones.iter().map(|(start, end, seqs)| JsonRange {
        start: JsonBytes(start),
        end: end.as_deref().map(JsonBytes),
        sequence_numbers: seqs,
    });
    JsonTable {
        schema: SCHEMA,
        path: report.path.display().to_string(),
        table: report.number,
        writer: report.writer,
        bytes: report.size_bytes,
        blocks: report.blocks,
        entries: report.entries,
        keys: report.keys,
        tombstones: report.tombstones,
        key_bytes: report.key_bytes,
        value_bytes: report.value_bytes,
        smallest_sequence_number: report.smallest_sequence_number,
        largest_sequence_number: report.largest_sequence_number,
        created_micros: report.created_micros,
        range_tombstones: ranges.collect(),
    }
}

fn tell(out: &mut dyn Write, report: &TableReport) -> io::Result<()> {
    let entries = human::counted(report.entries, "entry");
    let blocks = human::counted(report.blocks, "block");
    writeln!(out, "{}", report.path.display())?;
    writeln!(out, "table             {}, of opening {:016x}", report.number, report.writer)?;
    writeln!(out, "size              {}, {blocks}", human::bytes(report.size_bytes))?;
    writeln!(out, "entries           {entries} of {}", human::counted(report.keys, "key"))?;
    writeln!(out, "tombstones        {}", human::count(report.tombstones))?;
    writeln!(out, "keys              {}", human::bytes(report.key_bytes))?;
    writeln!(out, "values            {}", human::bytes(report.value_bytes))?;
    writeln!(out, "range             {}", report.range)?;
    let (from, to) = (report.smallest_sequence_number, report.largest_sequence_number);
    writeln!(out, "sequence numbers  {from} to {to}")?;
    for (start, end, seqs) in &report.range_tombstones {
        let end = end.as_deref().map_or_else(String::new, print);
        writeln!(out, "range tombstone   {}..{end} at {seqs:?}", print(start))?;
    }
    Ok(())
}

fn tell_entry(out: &mut dyn Write, entry: &TableEntry, json: bool) -> io::Result<()> {
    let TableEntry { key, sequence_number, value, .. } = entry;
    if json {
        let value = value.as_deref().map(JsonBytes);
        let sequence_number = *sequence_number;
        return write_line(out, &JsonEntry { key: JsonBytes(key), sequence_number, value });
    }
    match value {
        Some(value) => writeln!(out, "{sequence_number}\t{}\t{}", print(key), print(value)),
        None => writeln!(out, "{sequence_number}\t{}\t(deleted)", print(key)),
    }
}
