//! `terrane inspect key`: every physical version of a key, by location.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use terrane::inspect;

use crate::exit::{Exit, usage};
use crate::output;
use crate::terminal::Paint;
use terrane_lab::input::kv_literal;
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, write_line};

/// Show every version of a key: in tables, in the memtable, in the log
#[derive(Debug, Clone, Args)]
pub(crate) struct KeyArgs {
    /// The directory of the database
    path: PathBuf,

    /// The key
    key: String,

    /// Print a JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct JsonVersion<'a> {
    schema: u32,
    keyspace: &'a str,
    place: &'a str,
    sequence_number: u64,
    kind: &'a str,
    value_bytes: u64,
}

impl KeyArgs {
    /// Prints the versions, newest first.
    pub(super) fn run(&self) -> Result<Exit> {
        let key = kv_literal::parse_all(&self.key).map_err(|error| usage(error.to_string()))?;
        let versions = inspect::key(&self.path, &key)?;
        let mut out = BufWriter::new(output::text_or_json(self.json));
        let paint = Paint::stdout();
        let mut keyspace = None;
        for version in &versions {
            if self.json {
                let line = JsonVersion {
                    schema: SCHEMA,
                    keyspace: &version.keyspace,
                    place: &version.place,
                    sequence_number: version.sequence_number,
                    kind: version.kind,
                    value_bytes: version.value_bytes,
                };
                write_line(&mut out, &line)?;
                continue;
            }
            if keyspace.replace(&version.keyspace) != Some(&version.keyspace) {
                writeln!(out, "keyspace {}", paint.bold(&version.keyspace))?;
            }
            let size = match version.kind {
                "put" => format!(" of {}", human::bytes(version.value_bytes)),
                _ => String::new(),
            };
            let seq = version.sequence_number;
            writeln!(out, "  {seq:>10} {}{size} in {}", version.kind, version.place)?;
        }
        if versions.is_empty() && !self.json {
            writeln!(out, "no version found")?;
        }
        out.flush()?;
        Ok(Exit::Done)
    }
}
