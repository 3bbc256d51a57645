//! `terrane design recorded`: replays the decisions of other systems.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use terrane_lab::output::json::write_line;
use terrane_lab::recorded::{Replayed, page};

use crate::output;

/// Selects recordings.
#[derive(Debug, Clone, Args)]
pub(crate) struct RecordedArgs {
    /// Recordings, made by `terrane-compare record`
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Ask this design instead of the one named in the recording
    #[arg(long, value_name = "DESIGN")]
    design: Option<String>,

    /// List every difference with both choices
    #[arg(long)]
    differences: bool,
}

impl RecordedArgs {
    pub(super) fn run(&self, json: bool) -> Result<()> {
        let read = |path: &PathBuf| Replayed::read(path, self.design.as_deref());
        let all: Vec<Replayed> = self.files.iter().map(read).collect::<Result<_>>()?;
        let mut out = output::text();
        if json {
            return Ok(all.iter().try_for_each(|one| write_line(&mut out, &one.json()))?);
        }
        if self.differences {
            return Ok(all.iter().try_for_each(|one| write!(out, "{}", one.listed()))?);
        }
        Ok(write!(out, "{}", page(&all))?)
    }
}
