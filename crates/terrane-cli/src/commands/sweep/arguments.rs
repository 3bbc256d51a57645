//! The flags of `terrane sweep`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use terrane_lab::input::quantity::count_in;
use terrane_lab::sweep::{Player, SweepOptions};

use super::show::ShowArgs;

const EXAMPLES: &str = "\
A plan is TOML: parameters, and [[experiments]] with parameters of their own.
A list is an axis: every value is run with every value of the other axes.
Parameters:
  design    a name or a spec
  T, L0, buffer, filter, …, the settings of a design
  workload  as for bench [default: fillrandom,readrandom,readmissing]
  mix       operations in proportions; then the workload is `mix`
  num, operations, key_size, value_size, compressibility, distribution,
  threads, seed
  every option of the engine, such as durability or memory_budget

  num = \"200K\"
  value_size = [100, 1000]
  [[experiments]]
  design = [\"leveling\", \"tiering\", \"lazy-leveling\"]
  T = [2, 4, 8, 10]
  [[experiments]]
  design = \"balanced\"

Examples:
  terrane sweep plan.toml --out results --dry-run
  terrane sweep plan.toml --out results --rounds 3
  terrane sweep --set 'design=leveling|tiering' --set 'T=2|4|8' --out results
  terrane sweep --set 'T=2|4|8' --set num=1000M --out results --simulate
  terrane sweep show results --x T --y write_amplification --by design";

/// Run many experiments from a plan; an interrupted sweep resumes
///
/// Each finished experiment is a line of DIR/results.jsonl, with a key made of all its parameters
/// and the version of the engine. Experiments with a result are not run again.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct SweepArgs {
    #[command(subcommand)]
    pub(super) command: Option<SweepCommand>,

    /// A file with the plan
    pub(super) plan: Option<PathBuf>,

    /// A parameter with its values separated by `|`; overrides the plan
    #[arg(long, value_name = "NAME=VALUES")]
    pub(super) set: Vec<String>,

    /// The directory of the results; sweeps may share one
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,

    /// The directory of the databases, which are removed afterwards [default: the results
    /// directory]
    #[arg(long, value_name = "DIR", conflicts_with = "simulate")]
    pub(super) dir: Option<PathBuf>,

    /// Repeat all experiments N times, round by round
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count_in::<u32>(1..=1000))]
    pub(super) rounds: u32,

    /// Concurrent experiments; concurrency distorts times, not counts
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count_in::<u32>(1..=256))]
    pub(super) jobs: u32,

    /// Run the experiments in the simulator, at any size; the workload is then a mix
    /// [default: update=1]
    #[arg(long)]
    pub(super) simulate: bool,

    /// Only list the remaining experiments and their estimated time
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Clone, Subcommand)]
pub(super) enum SweepCommand {
    Show(ShowArgs),
}

impl SweepArgs {
    /// Returns the runner of the experiments.
    pub(super) fn player(&self) -> Player {
        if self.simulate { Player::Simulator } else { Player::Engine }
    }

    /// Returns the options of the sweep with its results in `out`.
    pub(super) fn options<'a>(&'a self, out: &'a std::path::Path) -> SweepOptions<'a> {
        SweepOptions {
            out,
            dir: self.dir.as_deref(),
            rounds: self.rounds,
            jobs: self.jobs,
            player: self.player(),
        }
    }
}
