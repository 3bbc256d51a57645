//! `terrane-papers report`: renders documents from stored results.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use crate::experiments;
use crate::report;
use crate::results::Results;
use anyhow::{Context, Result};
use clap::Args;
use terrane_lab::error::usage;

use super::output::write_document;

/// Render the document of stored results, without measuring
#[derive(Debug, Clone, Args)]
pub(super) struct ReportArgs {
    /// Files that `run --out` wrote
    #[arg(required = true, value_name = "FILE")]
    results: Vec<PathBuf>,

    /// Write the document of the only file here [default: to standard output]
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    output: Option<PathBuf>,

    /// Write report.html and its figures to a directory instead of documents
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Report one figure of the paper, such as 4e
    #[arg(long, value_name = "FIGURE")]
    figure: Option<String>,
}

impl ReportArgs {
    /// Renders the documents.
    pub(super) fn run(&self) -> Result<()> {
        if self.output.is_some() && self.results.len() > 1 {
            return Err(usage("--output takes the results of one experiment"));
        }
        if let Some(dir) = &self.out {
            return self.page(dir);
        }
        for path in &self.results {
            let results = read(path)?;
            let document = match &self.figure {
                Some(figure) => report::figure_document(&results, figure),
                None => experiments::document(&results),
            };
            let document = document.with_context(|| format!("cannot report {}", path.display()))?;
            write_document(self.output.as_deref(), &document)?;
        }
        Ok(())
    }
}

impl ReportArgs {
    /// Writes the page.
    fn page(&self, dir: &Path) -> Result<()> {
        let all: Vec<Results> =
            self.results.iter().map(|path| read(path)).collect::<Result<_>>()?;
        let page = report::write(dir, &all, self.figure.as_deref())?;
        let _ = writeln!(io::stderr(), "report: {}", page.display());
        Ok(())
    }
}

/// Reads stored results.
pub(super) fn read(path: &Path) -> Result<Results> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    serde_json::from_reader(BufReader::new(file))
        .with_context(|| format!("{} does not hold results of an experiment", path.display()))
}
