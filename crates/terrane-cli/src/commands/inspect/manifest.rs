//! `terrane inspect manifest`: the edits of a manifest.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use terrane::inspect;

use crate::exit::Exit;
use crate::output;
use crate::terminal::Paint;
use terrane_lab::output::json::{SCHEMA, write_line};

/// Show the edits of a manifest, with their changes
#[derive(Debug, Clone, Args)]
pub(crate) struct ManifestArgs {
    /// The directory of the database, or a manifest file
    path: PathBuf,

    /// Print a JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct JsonEdit<'a> {
    schema: u32,
    version: u64,
    epoch: u64,
    changes: &'a [String],
}

impl ManifestArgs {
    /// Prints the edits.
    pub(super) fn run(&self) -> Result<Exit> {
        let edits = inspect::manifest(&self.path)?;
        let mut out = BufWriter::new(output::text_or_json(self.json));
        let paint = Paint::stdout();
        for edit in &edits {
            let (version, epoch, changes) = (edit.version, edit.epoch, &edit.changes);
            if self.json {
                write_line(&mut out, &JsonEdit { schema: SCHEMA, version, epoch, changes })?;
                continue;
            }
            let name = paint.bold(&format!("version {version}"));
            writeln!(out, "{name}, by opening {epoch}")?;
            for change in changes {
                writeln!(out, "  {change}")?;
            }
        }
        out.flush()?;
        Ok(Exit::Done)
    }
}
