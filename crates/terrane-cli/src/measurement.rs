//! The arguments of measurements that check claims of papers, and the command line for reports.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use terrane_lab::quantity::{count, count_in, number_in};

use crate::exit::usage;

/// How a paper's claims are measured.
#[derive(Debug, Clone, Args)]
pub(crate) struct MeasurementArgs {
    /// Sizes as a share of the paper's, where 1 means the paper's [default: a share that `experiment
    /// list` shows]
    #[arg(long, value_name = "SHARE", value_parser = number_in(0.000_01..=16.0))]
    pub(crate) scale: Option<f64>,

    /// Rounds: operations count at their best, whole runs at their median
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = count_in::<usize>(1..=1000))]
    pub(crate) rounds: usize,

    /// Numbers of threads, separated by commas, for flodb and memtables
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2",
          value_parser = count_in::<u32>(1..=1024))]
    pub(crate) threads: Vec<u32>,

    /// The seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count)]
    pub(crate) seed: u64,

    /// Dent's own program, built, to run in turns with ours
    #[arg(long = "beside", value_name = "PROGRAM")]
    dent_program: Option<PathBuf>,
}

impl MeasurementArgs {
    /// Returns the absolute path of Dent's program, which runs in other directories.
    pub(crate) fn dent_program(&self) -> Result<Option<PathBuf>> {
        let Some(path) = &self.dent_program else { return Ok(None) };
        let found = std::fs::canonicalize(path).map_err(|error| {
            usage(format!("cannot find Dent's program {}: {error}", path.display()))
        })?;
        Ok(Some(found))
    }
}

/// Returns the command line of this process, for the report.
pub(crate) fn command_line() -> String {
    let mut words = std::env::args();
    let program = words.next().unwrap_or_default();
    let program = Path::new(&program)
        .file_name()
        .map_or(program.clone(), |name| name.to_string_lossy().into_owned());
    std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ")
}
