//! The arguments of a measurement that checks the claims of a paper.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use terrane_lab::input::quantity::{count, count_in, number_in};

use terrane_lab::error::usage;

/// How a paper's claims are measured.
#[derive(Debug, Clone, Args)]
pub(super) struct MeasurementArgs {
    /// Sizes as a share of the paper's, where 1 means the paper's [default: a share that `list`
    /// shows]
    #[arg(long, value_name = "SHARE", value_parser = number_in(0.000_01..=16.0))]
    pub(super) scale: Option<f64>,

    /// Rounds: operations count at their best, whole runs at their median
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = count_in::<usize>(1..=1000))]
    pub(super) rounds: usize,

    /// Numbers of threads, separated by commas, for flodb and memtables
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2",
          value_parser = count_in::<u32>(1..=1024))]
    pub(super) threads: Vec<u32>,

    /// The seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count)]
    pub(super) seed: u64,

    /// Dent's own program, built, to run alternately with ours
    #[arg(long = "beside", value_name = "PROGRAM")]
    dent_program: Option<PathBuf>,
}

impl MeasurementArgs {
    /// Returns the absolute path of Dent's program, which runs in other directories.
    pub(super) fn dent_program(&self) -> Result<Option<PathBuf>> {
        let Some(path) = &self.dent_program else { return Ok(None) };
        let found = std::fs::canonicalize(path).map_err(|error| {
            usage(format!("cannot find Dent's program {}: {error}", path.display()))
        })?;
        Ok(Some(found))
    }
}
