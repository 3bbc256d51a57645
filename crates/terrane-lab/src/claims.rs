//! The papers' claims as documents: runs an experiment, judges its claims, and writes its page.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::experiments::{self, Experiment, ExperimentOptions};

/// A paper whose claims are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paper {
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

impl Paper {
    fn experiment(self) -> &'static str {
        match self {
            Self::Memtables => "memtables",
            Self::Compaction => "compaction",
            Self::Flodb => "flodb",
            Self::Stability => "stability",
            Self::Dent => "dent",
        }
    }
}

/// The options of a measurement of claims.
#[derive(Debug, Clone)]
pub struct ClaimsOptions {
    /// Sizes as a share of the paper's; `None` for the experiment's own.
    pub scale: Option<f64>,
    /// Rounds: operations count at the best of them, whole runs at their median.
    pub rounds: usize,
    /// Numbers of threads, for [`Paper::Flodb`] and [`Paper::Memtables`].
    pub threads: Vec<u32>,
    /// The seed of all random choices.
    pub seed: u64,
    /// The path of Dent's own program, to compare with ours; for [`Paper::Dent`] only.
    pub beside: Option<PathBuf>,
}

/// Measures the claims of a paper and returns the document, in Markdown.
///
/// # Errors
///
/// If a database or a program fails.
pub fn document(paper: Paper, options: &ClaimsOptions) -> Result<String> {
    let ClaimsOptions { scale, rounds, ref threads, seed, ref beside } = *options;
    let experiment = found(paper.experiment())?;
    let options = ExperimentOptions {
        scale: scale.unwrap_or(experiment.default_scale),
        rounds,
        threads: threads.clone(),
        seed,
        dent_program: beside.clone(),
        ..ExperimentOptions::default()
    };
    write(experiment, &options)
}

/// Simulates the claims on stability at the paper's scale, and returns the document, in Markdown:
/// phases of `hours` of virtual time on trees of `records` records.
///
/// # Errors
///
/// If a design cannot be parsed.
pub fn simulated(hours: f64, records: u64) -> Result<String> {
    let options = ExperimentOptions { phase_hours: hours, records, ..ExperimentOptions::default() };
    write(found("stability-simulated")?, &options)
}

fn found(name: &str) -> Result<&'static Experiment> {
    experiments::find(name).with_context(|| format!("unknown experiment '{name}'"))
}

fn write(experiment: &Experiment, options: &ExperimentOptions) -> Result<String> {
    experiments::document(&experiment.run(options)?)
}
