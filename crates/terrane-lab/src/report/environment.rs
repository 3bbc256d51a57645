//! The setting of a run: enough to repeat it.

use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::experiment::ExperimentOptions;
use crate::machine::Machine;
use crate::program;

/// The setting of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The machine and the file system of the databases.
    pub machine: String,
    /// The version of this program.
    pub version: String,
    /// The hash of this program.
    pub program: String,
    /// The commit of the working directory, if it is a checkout of this project; `-dirty` follows
    /// if files differ from it.
    pub commit: Option<String>,
    /// The command.
    pub command: String,
    /// When the run ended, in UTC.
    pub date: String,
    /// The seed of all random choices.
    pub seed: u64,
    /// The sizes as a share of the paper's.
    pub scale: f64,
    /// Rounds of timed operations.
    pub rounds: usize,
}

impl Environment {
    /// Describes a run that ends now; `command` is the command line.
    #[must_use]
    pub fn now(options: &ExperimentOptions, command: String) -> Self {
        Self {
            machine: Machine::here(&std::env::temp_dir()).to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            program: program::hash().to_owned(),
            commit: commit(),
            command,
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            seed: options.seed,
            scale: options.scale,
            rounds: options.rounds,
        }
    }

    /// Describes a run of this machine that ends now, with databases in `dir`, which no paper gives a
    /// scale.
    #[must_use]
    pub fn of_run(dir: &Path, seed: u64, command: String) -> Self {
        let options = ExperimentOptions { seed, rounds: 1, ..Default::default() };
        Self { machine: Machine::here(dir).to_string(), ..Self::now(&options, command) }
    }

    /// Describes results of which only the machine is known.
    #[must_use]
    pub fn of_results(machine: Option<&str>, command: String) -> Self {
        let options = ExperimentOptions { scale: f64::NAN, rounds: 0, ..Default::default() };
        let machine = machine.unwrap_or("unknown").to_owned();
        Self { machine, commit: None, ..Self::now(&options, command) }
    }
}

fn commit() -> Option<String> {
    if !Path::new("crates/terrane-lab/Cargo.toml").exists() {
        return None;
    }
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let commit = git(&["rev-parse", "HEAD"])?;
    let is_clean = git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Some(if is_clean { commit } else { commit + "-dirty" })
}
