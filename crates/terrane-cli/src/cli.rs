//! The command line as a whole.

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::commands::bench::BenchArgs;
use crate::exit::Exit;

/// Benchmark, inspect and operate LSM databases.
#[derive(Debug, Parser)]
#[command(name = "terrane", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Bench(BenchArgs),
}

impl Command {
    /// Does it.
    pub(crate) fn run(&self) -> Result<Exit> {
        match self {
            Self::Bench(args) => args.run(),
        }
    }
}
