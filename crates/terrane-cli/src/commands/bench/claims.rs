//! `terrane bench claims`: the claims of a paper, measured here.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use terrane_lab::claims::{self, ClaimsOptions};

use crate::exit::{Exit, usage};
use crate::measurement::MeasurementArgs;
use crate::output::write_document;

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

    #[command(flatten)]
    measurement: MeasurementArgs,

    /// Write the document to a file [default: to standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ClaimsArgs {
    /// Measures the claims, and writes the document.
    pub(super) fn run(&self) -> Result<Exit> {
        let measurement = &self.measurement;
        let dent_program = measurement.dent_program()?;
        if dent_program.is_some() && self.paper != Paper::Dent {
            return Err(usage("Dent's program runs only for the claims of 'dent'"));
        }
        let options = ClaimsOptions {
            scale: measurement.scale,
            rounds: measurement.rounds,
            threads: measurement.threads.clone(),
            seed: measurement.seed,
            beside: dent_program,
        };
        let text = claims::document(self.paper.into(), &options)?;
        write_document(self.output.as_deref(), &text)?;
        Ok(Exit::Done)
    }
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
