//! The experiments: each measures the claims of one paper, and records [`Results`].
//!
//! The files in `claims/` have the claims, their bounds and the prose of the documents. The judge
//! reads them; experiments do not judge their own measurements.
//!
//! | module | one line |
//! |---|---|
//! | `compaction` | compaction strategies, by counts |
//! | `memtables` | memtables alone and in trees |
//! | `flodb` | memtables of two levels |
//! | `dent` | the tree of CS 265, with the program of its report |
//! | `stability` | write stalls and merge schedulers, on files and simulated |

mod compaction;
mod dent;
mod flodb;
mod memtables;
mod stability;

use anyhow::{Context, Result};

pub use crate::experiment::{Experiment, ExperimentCost, ExperimentOptions};
use crate::judge::{ClaimFile, ClaimVerdict};
use crate::results::Results;

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
    use crate::figures::PaperFile;

    #[test]
    fn claims_parse_name_only_recorded_metrics_and_can_fail() {
        for experiment in ALL {
            let claims = experiment.claims().unwrap();
            assert!(!claims.claims.is_empty(), "{}", experiment.name);
            for timed in experiment.timed {
                let all = experiment.metrics.iter().copied().flatten();
                assert!(all.into_iter().any(|metric| metric.name == *timed), "{timed}");
            }
            let problems = claims.problems(experiment.metrics);
            assert!(problems.is_empty(), "{}:\n{}", experiment.name, problems.join("\n"));
        }
    }

    #[test]
    fn figures_of_papers_name_only_recorded_metrics() {
        for experiment in ALL {
            let file = PaperFile::of(experiment.name).unwrap();
            assert!(!file.figures.is_empty(), "{}", experiment.name);
            let claims = experiment.claims().unwrap();
            for figure in &file.figures {
                for expression in figure.expressions() {
                    let unknown = claims.unknown_names(expression, experiment.metrics);
                    assert!(unknown.is_empty(), "{}: {unknown:?}", figure.title());
                }
            }
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
