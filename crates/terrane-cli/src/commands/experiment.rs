//! `terrane experiment`: the papers' experiments, and the claims that they check.
//!
//! | module | one line |
//! |---|---|
//! | [`list`] | the experiments |
//! | [`measure`] | `run`: measures, and writes results and documents |
//! | [`papers`] | the items of the papers with their states |
//! | [`report`] | renders documents and pages from stored results |

mod list;
mod measure;
mod papers;
mod report;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::exit::Exit;
use list::ListArgs;
use measure::RunArgs;
use papers::PapersArgs;
use report::ReportArgs;

const EXAMPLES: &str = "\
Examples:
  terrane experiment list
  terrane experiment run compaction --output docs/compaction.md
  terrane experiment run memtables dent --scale 0.1 --rounds 1 --out results
  terrane experiment run compaction --figure 4e --out results
  terrane experiment report results/compaction.json";

/// Reproduce the papers' experiments and check their claims
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExperimentArgs {
    #[command(subcommand)]
    command: ExperimentCommand,
}

#[derive(Debug, Clone, Subcommand)]
enum ExperimentCommand {
    List(ListArgs),
    Run(RunArgs),
    Report(ReportArgs),
    Papers(PapersArgs),
}

impl ExperimentArgs {
    /// Runs the subcommand.
    pub(crate) fn run(&self) -> Result<Exit> {
        match &self.command {
            ExperimentCommand::List(args) => args.run(),
            ExperimentCommand::Run(args) => args.run(),
            ExperimentCommand::Report(args) => args.run(),
            ExperimentCommand::Papers(args) => args.run(),
        }
    }
}
