//! The experiments: each measures what one paper claims, and records [`Results`].
//!
//! The files in `claims/` have the claims, their bounds and the prose of the documents; the judge
//! reads them, and no experiment judges its own measurements.
//!
//! | module | one line |
//! |---|---|
//! | [`compaction`] | compaction strategies, by counts |
//! | [`memtables`] | memtables alone and in trees |
//! | [`flodb`] | memtables of two levels |
//! | [`dent`] | the tree of CS 265, with the program of its report |
//! | [`stability`] | write stalls and merge schedulers, on files and simulated |

mod compaction;
mod dent;
mod flodb;
mod memtables;
mod stability;

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::judge::{ClaimFile, ClaimVerdict};
use crate::results::{Metric, Results};

/// Sizes and repetitions of an experiment.
#[derive(Debug, Clone)]
pub struct ExperimentOptions {
    /// The factor by which sizes are scaled.
    pub scale: f64,
    /// Rounds: operations count at the best of them, whole runs at their median.
    pub rounds: usize,
    /// Numbers of threads, for the experiments on memtables.
    pub threads: Vec<u32>,
    /// The seed of all random choices.
    pub seed: u64,
    /// The program of Dent's report, to run in turns with ours.
    pub dent_program: Option<PathBuf>,
    /// How long a simulated phase is, in hours of virtual time.
    pub phase_hours: f64,
    /// Simulated records.
    pub records: u64,
}

impl Default for ExperimentOptions {
    fn default() -> Self {
        Self {
            scale: 1.0,
            rounds: 3,
            threads: vec![1, 2],
            seed: 1,
            dent_program: None,
            phase_hours: 2.0,
            records: 100_000_000,
        }
    }
}

/// An experiment: what it measures, and the claims that it checks.
pub struct Experiment {
    /// The name on the command line.
    pub name: &'static str,
    /// The paper whose claims it checks.
    pub paper: &'static str,
    /// A line for lists.
    pub about: &'static str,
    /// The figures and tables of the paper that it reproduces.
    pub figures: &'static [&'static str],
    /// The metrics that it records.
    pub metrics: &'static [&'static [Metric]],
    claims: &'static str,
    run: fn(&ExperimentOptions, &mut Results) -> Result<()>,
}

impl Experiment {
    /// Runs the experiment.
    ///
    /// # Errors
    /// If a database or a program fails.
    pub fn run(&self, options: &ExperimentOptions) -> Result<Results> {
        let mut results = Results::new(self.name, self.metrics);
        (self.run)(options, &mut results)?;
        Ok(results)
    }

    /// The claims that it checks.
    ///
    /// # Errors
    /// If the file of claims is malformed.
    pub fn claims(&self) -> Result<ClaimFile> {
        ClaimFile::parse(self.claims).with_context(|| format!("in the claims of {}", self.name))
    }
}

/// All experiments.
pub const ALL: &[Experiment] = &[
    memtables::EXPERIMENT,
    flodb::EXPERIMENT,
    compaction::EXPERIMENT,
    stability::MEASURED,
    stability::SIMULATED,
    dent::EXPERIMENT,
];

/// Finds an experiment by its name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Experiment> {
    ALL.iter().find(|experiment| experiment.name == name)
}

fn claims_of(results: &Results) -> Result<ClaimFile> {
    let name = &results.experiment;
    find(name).with_context(|| format!("unknown experiment '{name}'"))?.claims()
}

/// Judges the claims of the experiment that measured `results`.
///
/// # Errors
/// If the experiment is unknown.
pub fn judge(results: &Results) -> Result<Vec<ClaimVerdict>> {
    Ok(claims_of(results)?.judge(results))
}

/// Writes the document of the experiment that measured `results`, in Markdown.
///
/// # Errors
/// If the experiment is unknown.
pub fn document(results: &Results) -> Result<String> {
    Ok(claims_of(results)?.document(results))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_parse_and_name_only_recorded_metrics() {
        for experiment in ALL {
            let claims = experiment.claims().unwrap();
            assert!(!claims.claims.is_empty(), "{}", experiment.name);
            let unknown = claims.unknown_names(experiment.metrics);
            assert!(unknown.is_empty(), "{}: {unknown:?}", experiment.name);
        }
    }

    #[test]
    fn experiments_are_found_by_name() {
        for experiment in ALL {
            assert_eq!(find(experiment.name).unwrap().name, experiment.name);
        }
        assert!(find("nothing").is_none());
    }
}
