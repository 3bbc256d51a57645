//! `terrane bench claims`: the claims of a paper, measured here.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use terrane_lab::claims::{self, ClaimsOptions};

use crate::exit::{Exit, usage};
use crate::output::write_document;
use terrane_lab::quantity::{count, count_in, number_in};

/// A paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Paper {
    /// Anatomy of the LSM Memory Buffer (`DBTest` 2024)
    Memtables,
    /// Constructing and Analyzing the LSM Compaction Design Space (VLDB 2021)
    Compaction,
    /// `FloDB` (`EuroSys` 2017)
    Flodb,
    /// On Performance Stability in LSM-based Storage Systems (VLDB 2019)
    Stability,
    /// Dent's report on his tree (CS 265)
    Dent,
}

/// Measure and check the claims of a paper
#[derive(Debug, Clone, Args)]
pub(super) struct ClaimsArgs {
    /// The paper
    #[arg(value_enum)]
    paper: Paper,

    /// Scale sizes by this factor
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = number_in(0.001..=100.0))]
    scale: f64,

    /// Rounds: operations count at their best, whole runs at their median
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = count_in::<usize>(1..=1000))]
    rounds: usize,

    /// Numbers of threads, separated by commas, for flodb and memtables
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2",
          value_parser = count_in::<u32>(1..=1024))]
    threads: Vec<u32>,

    /// The seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count)]
    seed: u64,

    /// Dent's own program, built, to run in turns with ours
    #[arg(long = "beside", value_name = "PROGRAM")]
    dent_program: Option<PathBuf>,

    /// Write the document to a file [default: to standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ClaimsArgs {
    /// Measures the claims, and writes the document.
    pub(super) fn run(&self) -> Result<Exit> {
        if self.dent_program.is_some() && self.paper != Paper::Dent {
            return Err(usage("Dent's program runs only for the claims of 'dent'"));
        }
        let dent_program = self.dent_program.as_deref().map(dent_program).transpose()?;
        let options = ClaimsOptions {
            scale: self.scale,
            rounds: self.rounds,
            threads: self.threads.clone(),
            seed: self.seed,
            beside: dent_program,
        };
        let text = claims::document(self.paper.into(), &options)?;
        write_document(self.output.as_deref(), &text)?;
        Ok(Exit::Done)
    }
}

/// Returns the absolute path of Dent's program, which runs in other directories.
pub(crate) fn dent_program(path: &Path) -> Result<PathBuf> {
    std::fs::canonicalize(path)
        .map_err(|error| usage(format!("cannot find Dent's program {}: {error}", path.display())))
}

impl From<Paper> for claims::Paper {
    fn from(paper: Paper) -> Self {
        match paper {
            Paper::Memtables => Self::Memtables,
            Paper::Compaction => Self::Compaction,
            Paper::Flodb => Self::Flodb,
            Paper::Stability => Self::Stability,
            Paper::Dent => Self::Dent,
        }
    }
}
