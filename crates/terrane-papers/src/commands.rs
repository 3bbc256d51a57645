//! The command line of `terrane-papers`.
//!
//! | module | one line |
//! |---|---|
//! | `list` | the experiments |
//! | `run` | measures, and writes results and documents |
//! | `report` | renders documents and pages from stored results |
//! | `items` | the items of the papers with their states |
//! | `cs265` | our side of the experiment `dent`, which runs this program |
//! | `measurement` | the arguments of a measurement |
//! | `output` | documents on standard output or in files |
//!
//! Exit codes: 0 done, 1 error, 2 usage, 130 interrupted. A closed pipe, as from `head`, ends a command
//! quietly.

mod cs265;
mod items;
mod list;
mod measurement;
mod output;
mod report;
mod run;

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use terrane_lab::error::{UsageError, is_broken_pipe};
use terrane_lab::host::interrupt;

use cs265::Cs265Args;
use items::ItemsArgs;
use list::ListArgs;
use report::ReportArgs;
use run::RunArgs;

const EXAMPLES: &str = "\
Examples:
  terrane-papers list
  terrane-papers run compaction --figure 4e
  terrane-papers run memtables dent --scale 0.1 --rounds 1 --out results
  terrane-papers report docs/results/compaction.json --output docs/papers/compaction.md";

/// Reproduce the experiments of five papers on LSM trees and check their claims.
#[derive(Debug, Parser)]
#[command(name = "terrane-papers", version, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(ListArgs),
    Run(Box<RunArgs>),
    Report(ReportArgs),
    Items(ItemsArgs),
    #[command(hide = true)]
    Cs265(Cs265Args),
}

impl Command {
    fn run(&self) -> Result<()> {
        match self {
            Self::List(args) => args.run(),
            Self::Run(args) => args.run(),
            Self::Report(args) => args.run(),
            Self::Items(args) => args.run(),
            Self::Cs265(args) => args.run(),
        }
    }
}

/// Runs the command that the process arguments name.
pub fn main() -> ExitCode {
    match Cli::parse().command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            interrupt::wait_if_ending();
            if is_broken_pipe(&error) {
                return ExitCode::SUCCESS;
            }
            let _ = writeln!(io::stderr(), "error: {error:#}");
            let is_usage = error.chain().any(<dyn std::error::Error>::is::<UsageError>);
            ExitCode::from(if is_usage { 2 } else { 1 })
        }
    }
}
