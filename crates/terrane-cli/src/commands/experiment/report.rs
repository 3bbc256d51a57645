//! `terrane experiment report`: renders documents from stored results.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use terrane_lab::experiments;
use terrane_lab::results::Results;

use crate::exit::{Exit, usage};
use crate::output::write_document;

/// Render the document of stored results, without measuring
#[derive(Debug, Clone, Args)]
pub(super) struct ReportArgs {
    /// Files that `experiment run --out` wrote
    #[arg(required = true, value_name = "FILE")]
    results: Vec<PathBuf>,

    /// Write the document of the only file here [default: to standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ReportArgs {
    /// Renders the documents.
    pub(super) fn run(&self) -> Result<Exit> {
        if self.output.is_some() && self.results.len() > 1 {
            return Err(usage("--output takes the results of one experiment"));
        }
        for path in &self.results {
            let document = experiments::document(&read(path)?)
                .with_context(|| format!("cannot report {}", path.display()))?;
            write_document(self.output.as_deref(), &document)?;
        }
        Ok(Exit::Done)
    }
}

fn read(path: &Path) -> Result<Results> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    serde_json::from_reader(BufReader::new(file))
        .with_context(|| format!("{} does not hold results of an experiment", path.display()))
}
