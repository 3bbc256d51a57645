//! The command line.

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::advise::AdviseArgs;
use crate::commands::backup::BackupArgs;
use crate::commands::bench::BenchArgs;
use crate::commands::checkpoint::CheckpointArgs;
use crate::commands::compact::CompactArgs;
use crate::commands::cs265::Cs265Args;
use crate::commands::design::DesignArgs;
use crate::commands::dump::DumpArgs;
use crate::commands::events::EventsArgs;
use crate::commands::experiment::ExperimentArgs;
use crate::commands::explore::ExploreArgs;
use crate::commands::flush::FlushArgs;
use crate::commands::generate::{CompletionsArgs, ManArgs};
use crate::commands::inspect::InspectArgs;
use crate::commands::keyspace::KeyspaceArgs;
use crate::commands::load::LoadArgs;
use crate::commands::options::OptionsArgs;
use crate::commands::repair::RepairArgs;
use crate::commands::replay::ReplayArgs;
use crate::commands::serve::ServeArgs;
use crate::commands::shell::ShellArgs;
use crate::commands::simulate::SimulateArgs;
use crate::commands::stability::StabilityArgs;
use crate::commands::stats::StatsArgs;
use crate::commands::sweep::SweepArgs;
use crate::commands::top::TopArgs;
use crate::commands::verify::VerifyArgs;
use crate::commands::workload::WorkloadArgs;
use crate::exit::Exit;
use crate::help::grouped;

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 error, 2 usage, 4 corruption found, 5 database in use, 130 interrupted";

/// Benchmark, inspect and operate LSM databases.
#[derive(Debug, Parser)]
#[command(name = "terrane", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// A subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Bench(Box<BenchArgs>),
    Sweep(Box<SweepArgs>),
    Stability(Box<StabilityArgs>),
    #[command(hide = true)]
    Experiment(ExperimentArgs),
    Replay(ReplayArgs),
    Workload(WorkloadArgs),
    Shell(ShellArgs),
    Serve(Box<ServeArgs>),
    Cs265(Cs265Args),
    Load(LoadArgs),
    Dump(DumpArgs),
    Inspect(InspectArgs),
    Stats(StatsArgs),
    Top(TopArgs),
    Events(EventsArgs),
    Verify(VerifyArgs),
    Checkpoint(CheckpointArgs),
    Backup(BackupArgs),
    Flush(FlushArgs),
    Compact(CompactArgs),
    Repair(RepairArgs),
    Design(DesignArgs),
    Keyspace(KeyspaceArgs),
    Advise(Box<AdviseArgs>),
    Simulate(Box<SimulateArgs>),
    Explore(ExploreArgs),
    Options(OptionsArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Parses the arguments of the process; exits with a usage error if they are invalid.
pub(crate) fn parse() -> Cli {
    let matches = command().get_matches();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Returns the definition of the command line.
pub(crate) fn command() -> clap::Command {
    grouped(for_people(Cli::command()))
}

/// Removes the code marks of the documentation from help, and makes a negative number a bad value
/// of its flag instead of an unknown flag.
fn for_people(command: clap::Command) -> clap::Command {
    let plain = |text: &clap::builder::StyledStr| text.to_string().replace('`', "");
    let about = command.get_about().map(plain);
    let long_about = command.get_long_about().map(plain);
    let mut command = command.mut_args(|arg| {
        let (help, long_help) = (arg.get_help().map(plain), arg.get_long_help().map(plain));
        let takes_value = arg.get_action().takes_values() && !arg.is_positional();
        let arg = if takes_value { arg.allow_negative_numbers(true) } else { arg };
        let arg = if let Some(help) = help { arg.help(help) } else { arg };
        if let Some(help) = long_help { arg.long_help(help) } else { arg }
    });
    if let Some(about) = about {
        command = command.about(about);
    }
    if let Some(about) = long_about {
        command = command.long_about(about);
    }
    command.mut_subcommands(for_people)
}

impl Command {
    /// Runs the subcommand.
    pub(crate) fn run(&self) -> Result<Exit> {
        match self {
            Self::Bench(args) => args.run(),
            Self::Sweep(args) => args.run(),
            Self::Stability(args) => args.run(),
            Self::Experiment(args) => args.run(),
            Self::Replay(args) => args.run(),
            Self::Workload(args) => args.run(),
            Self::Shell(args) => args.run(),
            Self::Serve(args) => args.run(),
            Self::Cs265(args) => args.run(),
            Self::Load(args) => args.run(),
            Self::Dump(args) => args.run(),
            Self::Inspect(args) => args.run(),
            Self::Stats(args) => args.run(),
            Self::Top(args) => args.run(),
            Self::Events(args) => args.run(),
            Self::Verify(args) => args.run(),
            Self::Checkpoint(args) => args.run(),
            Self::Backup(args) => args.run(),
            Self::Flush(args) => args.run(),
            Self::Compact(args) => args.run(),
            Self::Repair(args) => args.run(),
            Self::Design(args) => args.run(),
            Self::Keyspace(args) => args.run(),
            Self::Advise(args) => args.run(),
            Self::Simulate(args) => args.run(),
            Self::Explore(args) => args.run(),
            Self::Options(args) => args.run(),
            Self::Completions(args) => args.run(command()),
            Self::Man(args) => args.run(command()),
        }
    }
}
