//! `terrane experiment papers`: every item of the papers with its state, and the verdicts on claims.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use terrane_lab::checklist::{self, LatestVerdicts};

use super::report::read;
use crate::exit::Exit;
use crate::output::write_document;

/// Show every item of the papers with its state, what shows it, and the verdicts on claims
#[derive(Debug, Clone, Args)]
pub(super) struct PapersArgs {
    /// Results that `experiment run --out` wrote; their verdicts replace the stored ones
    #[arg(value_name = "FILE")]
    results: Vec<PathBuf>,

    /// Write the verdicts to a file
    #[arg(long, value_name = "FILE")]
    verdicts: Option<PathBuf>,

    /// Write the page to a file [default: to standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl PapersArgs {
    /// Writes the page.
    pub(super) fn run(&self) -> Result<Exit> {
        let mut verdicts = LatestVerdicts::stored()?;
        for path in &self.results {
            verdicts.take(&read(path)?)?;
        }
        if let Some(path) = &self.verdicts {
            fs::write(path, verdicts.json()?)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        write_document(self.output.as_deref(), &checklist::page(&verdicts)?)?;
        Ok(Exit::Done)
    }
}
