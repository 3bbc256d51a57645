//! `terrane simulate claims`: the claims of the stability paper, at its scale, in virtual time.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use terrane_lab::claims;

use crate::exit::Exit;
use crate::output::write_document;
use terrane_lab::quantity::{count_in, number_in};

/// Check the claims of "On Performance Stability in LSM-based Storage Systems" (VLDB 2019)
#[derive(Debug, Clone, Args)]
pub(super) struct ClaimsArgs {
    /// Hours of virtual time per phase; two in the paper
    #[arg(long, value_name = "HOURS", default_value_t = 2.0, value_parser = number_in(0.01..=100.0))]
    hours: f64,

    /// The number of records; a hundred million in the paper
    #[arg(long, value_name = "N", default_value = "100M", value_parser = count_in::<u64>(100_000..=1_000_000_000_000))]
    records: u64,

    /// Write the document to a file [default: to standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ClaimsArgs {
    /// Simulates the experiments, and writes the document.
    pub(super) fn run(&self) -> Result<Exit> {
        let text = claims::simulated(self.hours, self.records)?;
        write_document(self.output.as_deref(), &text)?;
        Ok(Exit::Done)
    }
}
