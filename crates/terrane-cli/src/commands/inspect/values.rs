//! `terrane inspect values`: the value files of a database, and their live values.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use terrane_policy::ValueFileUsage;

use crate::exit::Exit;
use crate::open;
use crate::output;
use crate::picture::JsonValueFile;
use crate::table::{Align, lines, table};
use crate::terminal::Paint;
use crate::time::utc;
use terrane_lab::output::human::{bytes, count};
use terrane_lab::output::json::{SCHEMA, write_line};

/// Show the value files of a database, with their live values and garbage
#[derive(Debug, Clone, Args)]
pub(crate) struct ValuesArgs {
    /// The directory of the database
    path: PathBuf,

    /// The keyspace [default: all of them]
    #[arg(long, value_name = "NAME")]
    keyspace: Option<String>,

    /// Print a JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct JsonLine<'a> {
    schema: u32,
    keyspace: &'a str,
    #[serde(flatten)]
    file: JsonValueFile,
}

impl ValuesArgs {
    /// Prints the value files.
    pub(super) fn run(&self) -> Result<Exit> {
        let db = open::read_only(&self.path)?;
        let names = self.keyspace.clone().map_or_else(|| db.keyspaces(), |name| vec![name]);
        let mut out = BufWriter::new(output::text_or_json(self.json));
        let paint = Paint::stdout();
        for (number, name) in names.iter().enumerate() {
            let view = open::keyspace(&db, name)?.tree();
            let usage = view.shape.value_usage();
            if self.json {
                for file in usage.iter().map(JsonValueFile::of) {
                    write_line(&mut out, &JsonLine { schema: SCHEMA, keyspace: name, file })?;
                }
                continue;
            }
            let gap = if number > 0 { "\n" } else { "" };
            writeln!(out, "{gap}keyspace {} · values={}", paint.bold(name), view.design.values)?;
            write_files(&mut out, &usage)?;
        }
        out.flush()?;
        Ok(Exit::Done)
    }
}

fn write_files(out: &mut impl Write, usage: &[ValueFileUsage]) -> Result<()> {
    if usage.is_empty() {
        return Ok(writeln!(out, "no value files")?);
    }
    let mut rows = table(&[
        ("file", Align::Right),
        ("size", Align::Right),
        ("values", Align::Right),
        ("live", Align::Right),
        ("garbage", Align::Right),
        ("state", Align::Left),
        ("created", Align::Left),
    ]);
    for one in usage {
        let file = &one.file;
        let garbage = one.garbage_bytes() as f64 / file.bytes.max(1) as f64;
        rows.add_row([
            file.id.to_string(),
            bytes(file.bytes),
            count(file.values),
            bytes(one.live_bytes),
            format!("{:.0} %", garbage * 100.0),
            file.state.to_string(),
            utc(file.created_micros),
        ]);
    }
    Ok(lines(&rows).try_for_each(|line| writeln!(out, "{line}"))?)
}
