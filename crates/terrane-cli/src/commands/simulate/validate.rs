//! `terrane simulate validate`: compares the simulator with the engine.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use terrane_lab::input::quantity::{count, count_in};
use terrane_lab::simulation::validate::ValidationOptions;

use crate::exit::Exit;
use crate::output::write_document;

/// Compare the simulator with the engine, and write docs/simulator.md
#[derive(Debug, Clone, Args)]
pub(super) struct ValidateArgs {
    /// Records of each tree
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = count_in::<u64>(1000..=100_000_000))]
    records: u64,

    /// Updates of each record, on average
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = count_in::<u64>(1..=1000))]
    rounds: u64,

    /// The seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count)]
    seed: u64,

    /// Write the document to a file [default: to standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ValidateArgs {
    /// Compares the simulator with the engine, and writes the document. Fails if a difference
    /// exceeds its limit.
    pub(super) fn run(&self) -> Result<Exit> {
        let options =
            ValidationOptions { records: self.records, rounds: self.rounds, seed: self.seed };
        let validation = options.run()?;
        write_document(self.output.as_deref(), &validation.document)?;
        validation.check()?;
        Ok(Exit::Done)
    }
}
