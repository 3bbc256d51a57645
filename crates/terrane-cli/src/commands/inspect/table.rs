//! `terrane inspect table`: the properties and entries of a table file.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::Args;
use serde::Serialize;
use terrane::inspect::{self, TableEntry, TableReport};
use terrane::policy::Expiry;
use terrane::{Error, ErrorKind};

use crate::exit::Exit;
use crate::output;
use crate::time::utc;
use terrane_lab::input::kv_literal;
use terrane_lab::input::quantity::count;
use terrane_lab::output::human;
use terrane_lab::output::json::{JsonBytes, SCHEMA, write_line};

/// Show the properties of table files, and with --entries their entries
#[derive(Debug, Clone, Args)]
pub(crate) struct TableArgs {
    /// The .sst files
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,

    /// Print the entries too: key, sequence number, value or (deleted)
    #[arg(long)]
    entries: bool,

    /// The most entries to print
    #[arg(long, value_name = "N", value_parser = count, requires = "entries")]
    limit: Option<u64>,

    /// Print a JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct JsonTableReport<'a> {
    schema: u32,
    path: String,
    table: u64,
    writer: u64,
    bytes: u64,
    entries: u64,
    keys: u64,
    tombstones: u64,
    expiring: u64,
    range_tombstones: Vec<JsonRangeTombstone<'a>>,
    key_bytes: u64,
    value_bytes: u64,
    blocks: u64,
    filter_bytes: u64,
    index_bytes: u64,
    smallest_sequence_number: u64,
    largest_sequence_number: u64,
    created_micros: u64,
    range: &'a str,
}

#[derive(Serialize)]
struct JsonRangeTombstone<'a> {
    start: JsonBytes<'a>,
    /// Excluded; null if unbounded.
    end: Option<JsonBytes<'a>>,
    sequence_numbers: &'a [u64],
}

#[derive(Serialize)]
struct JsonTableEntry<'a> {
    key: JsonBytes<'a>,
    sequence_number: u64,
    /// Null for a tombstone.
    value: Option<JsonBytes<'a>>,
    /// When the value expires, in microseconds since 1970; absent if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at_micros: Option<u64>,
}

impl TableArgs {
    /// Prints the properties of the table.
    pub(super) fn run(&self) -> Result<Exit> {
        let mut out = BufWriter::new(output::text_or_json(self.json));
        for (number, path) in self.paths.iter().enumerate() {
            let opened = inspect::table(path).map_err(|error| explained(path, error));
            let written = opened.and_then(|report| {
                if number > 0 && !self.json {
                    writeln!(out)?;
                }
                self.write(&mut out, &report)
            });
            // Tables before a damaged one, and entries before a damaged block, are printed too.
            out.flush()?;
            written?;
        }
        Ok(Exit::Done)
    }

    fn write(&self, out: &mut impl Write, report: &TableReport) -> Result<()> {
        if self.json {
            write_line(out, &JsonTableReport::of(report))?;
        } else {
            if self.paths.len() > 1 {
                writeln!(out, "{}", report.path.display())?;
            }
            write_report(out, report)?;
        }
        if self.entries { self.write_entries(out, report) } else { Ok(()) }
    }

    fn write_entries(&self, out: &mut impl Write, report: &TableReport) -> Result<()> {
        if !self.json {
            writeln!(out)?;
        }
        let limit = usize::try_from(self.limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        for entry in report.iter().take(limit) {
            let TableEntry { key, sequence_number, value, expires_at_micros, .. } = &entry?;
            if self.json {
                let value = value.as_deref().map(JsonBytes);
                let (sequence_number, expires_at_micros) = (*sequence_number, *expires_at_micros);
                let key = JsonBytes(key);
                write_line(
                    out,
                    &JsonTableEntry { key, sequence_number, value, expires_at_micros },
                )?;
                continue;
            }
            let value = value.as_deref().map_or("(deleted)".to_owned(), kv_literal::print);
            let until =
                expires_at_micros.map_or_else(String::new, |at| format!("\tuntil {}", utc(at)));
            writeln!(out, "{}\t{sequence_number}\t{value}{until}", kv_literal::print(key))?;
        }
        Ok(())
    }
}

/// Corruption in a file with another extension means that it is not a table.
fn explained(path: &Path, error: Error) -> anyhow::Error {
    let is_table = path.extension().is_some_and(|extension| extension == "sst");
    match error.kind() {
        ErrorKind::Corruption if !is_table => {
            anyhow!("{} is not a Terrane table; names of tables end with .sst", path.display())
        }
        _ => error.into(),
    }
}

fn write_report(out: &mut impl Write, report: &TableReport) -> io::Result<()> {
    let TableReport { number, writer, entries, keys, tombstones, blocks, .. } = report;
    let (first, last) = (report.smallest_sequence_number, report.largest_sequence_number);
    let count = |number: &u64| human::count(*number);
    writeln!(out, "table             {number}, written by opening {writer}")?;
    writeln!(out, "size              {}", human::bytes(report.size_bytes))?;
    writeln!(out, "entries           {}", count(entries))?;
    writeln!(out, "keys              {}", count(keys))?;
    writeln!(out, "tombstones        {}", count(tombstones))?;
    if let Some(Expiry { entries, first_micros, last_micros }) = &report.expiry {
        writeln!(out, "expiring          {}", count(entries))?;
        writeln!(out, "expire from       {}", utc(*first_micros))?;
        writeln!(out, "expire until      {}", utc(*last_micros))?;
    }
    writeln!(out, "bytes of keys     {}", human::bytes(report.key_bytes))?;
    writeln!(out, "bytes of values   {}", human::bytes(report.value_bytes))?;
    writeln!(out, "blocks            {}", count(blocks))?;
    writeln!(out, "filter            {}", human::bytes(report.filter_bytes))?;
    writeln!(out, "index             {}", human::bytes(report.index_bytes))?;
    writeln!(out, "sequence numbers  {first} to {last}")?;
    writeln!(out, "created           {}", utc(report.created_micros))?;
    writeln!(out, "range             {}", report.range)?;
    for (start, end, sequence_numbers) in &report.range_tombstones {
        let end = end.as_deref().map(kv_literal::print).unwrap_or_default();
        let numbers: Vec<String> = sequence_numbers.iter().map(ToString::to_string).collect();
        let (start, numbers) = (kv_literal::print(start), numbers.join(", "));
        writeln!(out, "range tombstone   {start}..{end} at {numbers}")?;
    }
    Ok(())
}

impl<'a> JsonTableReport<'a> {
    fn of(report: &'a TableReport) -> Self {
        let tombstones = report.range_tombstones.iter().map(|(start, end, numbers)| {
            let end = end.as_deref().map(JsonBytes);
            JsonRangeTombstone { start: JsonBytes(start), end, sequence_numbers: numbers }
        });
        Self {
            schema: SCHEMA,
            path: report.path.display().to_string(),
            table: report.number,
            writer: report.writer,
            bytes: report.size_bytes,
            entries: report.entries,
            keys: report.keys,
            tombstones: report.tombstones,
            expiring: report.expiry.map_or(0, |expiry| expiry.entries),
            range_tombstones: tombstones.collect(),
            key_bytes: report.key_bytes,
            value_bytes: report.value_bytes,
            blocks: report.blocks,
            filter_bytes: report.filter_bytes,
            index_bytes: report.index_bytes,
            smallest_sequence_number: report.smallest_sequence_number,
            largest_sequence_number: report.largest_sequence_number,
            created_micros: report.created_micros,
            range: &report.range,
        }
    }
}
