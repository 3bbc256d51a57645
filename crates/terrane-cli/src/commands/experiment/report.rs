//! `terrane experiment report`: renders documents from stored results.

use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use terrane_lab::experiments;
use terrane_lab::report::{self, Environment};
use terrane_lab::results::Results;

use crate::exit::{Exit, usage};
use crate::measurement::command_line;
use crate::output::write_document;

/// Render the document of stored results, without measuring
#[derive(Debug, Clone, Args)]
pub(super) struct ReportArgs {
    /// Files that `experiment run --out` wrote
    #[arg(required = true, value_name = "FILE")]
    results: Vec<PathBuf>,

    /// Write the document of the only file here [default: to standard output]
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    output: Option<PathBuf>,

    /// Write report.html and its figures to a directory instead of documents
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Report one figure of the paper, such as 4e
    #[arg(long, value_name = "FIGURE", requires = "out")]
    figure: Option<String>,
}

impl ReportArgs {
    /// Renders the documents.
    pub(super) fn run(&self) -> Result<Exit> {
        if self.output.is_some() && self.results.len() > 1 {
            return Err(usage("--output takes the results of one experiment"));
        }
        if let Some(dir) = &self.out {
            return self.page(dir);
        }
        for path in &self.results {
            let document = experiments::document(&read(path)?)
                .with_context(|| format!("cannot report {}", path.display()))?;
            write_document(self.output.as_deref(), &document)?;
        }
        Ok(Exit::Done)
    }
}

impl ReportArgs {
    /// Writes the page. The setting is the one that the run left next to its results, if any.
    fn page(&self, dir: &Path) -> Result<Exit> {
        let all: Vec<Results> =
            self.results.iter().map(|path| read(path)).collect::<Result<_>>()?;
        let stored = self.results[0].with_file_name("environment.json");
        let stored = fs::read(stored).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let environment = stored.unwrap_or_else(|| {
            let machine = all.iter().find_map(|results| results.text_of("machine"));
            Environment::of_results(machine, command_line())
        });
        let page = report::write(dir, &all, &environment, self.figure.as_deref())?;
        let _ = writeln!(io::stderr(), "report: {}", page.display());
        Ok(Exit::Done)
    }
}

/// Reads stored results.
pub(super) fn read(path: &Path) -> Result<Results> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    serde_json::from_reader(BufReader::new(file))
        .with_context(|| format!("{} does not hold results of an experiment", path.display()))
}
