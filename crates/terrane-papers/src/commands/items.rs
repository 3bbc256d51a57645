//! `terrane-papers items`: every item of the papers with its state, and the verdicts on claims.

use std::fs;
use std::path::PathBuf;

use crate::checklist::{self, LatestVerdicts};
use anyhow::{Context, Result};
use clap::Args;

use super::output::write_document;
use super::report::read;

/// Show every item of the papers with its state, what shows it, and the verdicts on claims
#[derive(Debug, Clone, Args)]
pub(super) struct ItemsArgs {
    /// Results that `run --out` wrote; their verdicts replace the stored ones
    #[arg(value_name = "FILE")]
    results: Vec<PathBuf>,

    /// Write the verdicts to a file
    #[arg(long, value_name = "FILE")]
    verdicts: Option<PathBuf>,

    /// Write the page to a file [default: to standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ItemsArgs {
    /// Writes the page.
    pub(super) fn run(&self) -> Result<()> {
        let mut verdicts = LatestVerdicts::stored()?;
        for path in &self.results {
            verdicts.take(&read(path)?)?;
        }
        if let Some(path) = &self.verdicts {
            fs::write(path, verdicts.json()?)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        write_document(self.output.as_deref(), &checklist::page(&verdicts)?)?;
        Ok(())
    }
}
