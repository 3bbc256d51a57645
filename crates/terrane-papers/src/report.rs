//! The files that `run --out` and `report --out` write: a self-contained page with every claim next to its
//! figure, an SVG for each panel, the measurements as CSV, and the setting of each measurement.
//!
//! | file | contents |
//! |---|---|
//! | `report.html` | the figures with the paper's points and ours, claims and verdicts, and the settings |
//! | `EXPERIMENT-fig-4a.svg` | one panel |
//! | `EXPERIMENT.csv` | every measurement and round, one per line |
//! | `environment.json` | for each experiment: machine, commit, command, date, seed, scale |
//!
//! | module | one line |
//! |---|---|
//! | `page` | the page |
//! | `figure` | one figure as text |
//! | `csv` | the measurements in long form |

mod csv;
mod figure;
mod page;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

pub use figure::figure_document;

use terrane_lab::output::plot::Panel;

use crate::citation;
use crate::experiments::{self, Experiment};
use crate::figures::PaperFile;
use crate::judge::ClaimVerdict;
use crate::results::Results;

/// An experiment with its verdicts and panels.
pub(crate) struct ReportedExperiment<'a> {
    pub(crate) experiment: &'static Experiment,
    pub(crate) results: &'a Results,
    pub(crate) verdicts: Vec<ClaimVerdict>,
    pub(crate) panels: Vec<ReportedPanel>,
}

/// A panel with the sources of its published points.
pub(crate) struct ReportedPanel {
    pub(crate) number: String,
    pub(crate) panel: Panel,
    /// The series and the source of each.
    pub(crate) sources: Vec<(String, String)>,
}

impl<'a> ReportedExperiment<'a> {
    fn of(results: &'a Results, figure: Option<&str>) -> Result<Self> {
        let name = &results.experiment;
        let experiment =
            experiments::find(name).with_context(|| format!("unknown experiment '{name}'"))?;
        let claims = experiment.claims()?;
        let is_wanted = |place: &str| figure.is_none_or(|figure| citation::includes(place, figure));
        let mut verdicts = claims.judge(results);
        verdicts.retain(|verdict| is_wanted(&verdict.figure));
        let mut panels = Vec::new();
        for one in PaperFile::of(name)?.figures {
            let place = match one.number().starts_with(|first: char| first.is_ascii_digit()) {
                true => format!("Fig. {}", one.number()),
                false => one.number().to_owned(),
            };
            if let Some(panel) = one.panel(&claims, results).filter(|_| is_wanted(&place)) {
                let owned = |(name, source): (&str, &str)| (name.to_owned(), source.to_owned());
                let sources = one.sources().into_iter().map(owned).collect();
                panels.push(ReportedPanel { number: one.number().to_owned(), panel, sources });
            }
        }
        Ok(Self { experiment, results, verdicts, panels })
    }
}

impl ReportedPanel {
    /// Returns the name of its file.
    fn file_name(&self, experiment: &str) -> String {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '.';
        let number: String = self
            .number
            .chars()
            .map(|letter| if is_part(letter) { letter.to_ascii_lowercase() } else { '-' })
            .collect();
        let number = number.trim_matches('-');
        let kind =
            if number.starts_with(|first: char| first.is_ascii_digit()) { "fig-" } else { "" };
        format!("{experiment}-{kind}{number}.svg")
    }
}

/// Writes the page, the panels, the measurements and the settings of several experiments into a
/// directory, and returns the path of the page; only for one figure if `figure` names it.
///
/// # Errors
/// If an experiment is unknown or a file cannot be written.
pub fn write(dir: &Path, all: &[Results], figure: Option<&str>) -> Result<PathBuf> {
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let put = |name: &str, text: &str| {
        let path = dir.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        anyhow::Ok(path)
    };
    let reported: Vec<ReportedExperiment<'_>> =
        all.iter().map(|results| ReportedExperiment::of(results, figure)).collect::<Result<_>>()?;
    for one in &reported {
        for panel in &one.panels {
            put(&panel.file_name(one.experiment.name), &panel.panel.svg())?;
        }
        put(&format!("{}.csv", one.experiment.name), &csv::long(one.results))?;
    }
    let environments: BTreeMap<&str, _> =
        all.iter().map(|one| (one.experiment.as_str(), &one.environment)).collect();
    put("environment.json", &(serde_json::to_string_pretty(&environments)? + "\n"))?;
    put("report.html", &page::page(&reported))
}

#[cfg(test)]
mod tests;
