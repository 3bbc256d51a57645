//! The command line as a whole.

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::commands::bench::BenchArgs;
use crate::commands::checkpoint::CheckpointArgs;
use crate::commands::compact::CompactArgs;
use crate::commands::cs265::Cs265Args;
use crate::commands::design::DesignArgs;
use crate::commands::dump::DumpArgs;
use crate::commands::generate::{CompletionsArgs, ManArgs};
use crate::commands::inspect::InspectArgs;
use crate::commands::load::LoadArgs;
use crate::commands::options::OptionsArgs;
use crate::commands::repair::RepairArgs;
use crate::commands::shell::ShellArgs;
use crate::commands::verify::VerifyArgs;
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
    Shell(ShellArgs),
    Cs265(Cs265Args),
    Load(LoadArgs),
    Dump(DumpArgs),
    Inspect(InspectArgs),
    Verify(VerifyArgs),
    Checkpoint(CheckpointArgs),
    Compact(CompactArgs),
    Repair(RepairArgs),
    Design(DesignArgs),
    Options(OptionsArgs),
    Completions(CompletionsArgs),
    #[command(about = "Write the manual page of the command, or of one of its subcommands")]
    Man(ManArgs),
}

impl Command {
    /// Does it.
    pub(crate) fn run(&self) -> Result<Exit> {
        match self {
            Self::Bench(args) => args.run(),
            Self::Shell(args) => args.run(),
            Self::Cs265(args) => args.run(),
            Self::Load(args) => args.run(),
            Self::Dump(args) => args.run(),
            Self::Inspect(args) => args.run(),
            Self::Verify(args) => args.run(),
            Self::Checkpoint(args) => args.run(),
            Self::Compact(args) => args.run(),
            Self::Repair(args) => args.run(),
            Self::Design(args) => args.run(),
            Self::Options(args) => args.run(),
            Self::Completions(args) => args.run(),
            Self::Man(args) => args.run(),
        }
    }
}
