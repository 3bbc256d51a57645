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
//! | `data` | figures and claims as data, for the page of the explorer |

mod csv;
mod data;
mod figure;
mod page;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

pub use data::page_data;
pub use figure::figure_document;

use terrane_lab::output::plot::{Dot, DotPlot, Panel};

use crate::citation;
use crate::experiments::{self, Experiment};
use crate::figures::PaperFile;
use crate::judge::{ClaimVerdict, JudgedFigure, MeasurementKey};
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
    /// The measurements that it draws.
    pub(crate) measurements: BTreeSet<MeasurementKey>,
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
            if let Some(panel) = one.panel(&claims, results).filter(|_| is_wanted(&one.place())) {
                let owned = |(name, source): (&str, &str)| (name.to_owned(), source.to_owned());
                let sources = one.sources().into_iter().map(owned).collect();
                panels.push(ReportedPanel {
                    number: one.number().to_owned(),
                    panel,
                    sources,
                    measurements: one.measurements(&claims, results),
                });
            }
        }
        Ok(Self { experiment, results, verdicts, panels })
    }

    /// Returns a picture of the judged figures of a claim beside a panel; `None` if the panels of its
    /// place draw all measurements that they depend on, or if nothing was measured.
    pub(crate) fn picture_of(&self, verdict: &ClaimVerdict) -> Option<DotPlot> {
        let panels = || self.panels.iter().filter(|panel| panel.is_of(verdict));
        let is_drawn =
            |key: &MeasurementKey| panels().any(|panel| panel.measurements.contains(key));
        let dot = |JudgedFigure { label, value, low, high }: &JudgedFigure| Dot {
            label: label.clone(),
            value: *value,
            low: *low,
            high: *high,
        };
        let is_needed = panels().next().is_some()
            && !verdict.measurements.iter().all(is_drawn)
            && verdict.figures.iter().any(|figure| figure.value.is_finite());
        is_needed.then(|| DotPlot {
            dots: verdict.figures.iter().map(dot).collect(),
            interval: verdict.interval,
        })
    }
}

impl ReportedPanel {
    /// Returns true if the place of a claim includes the panel.
    pub(crate) fn is_of(&self, verdict: &ClaimVerdict) -> bool {
        match self.number.starts_with('§') {
            true => verdict.figure == self.number,
            false => citation::includes(&verdict.figure, &self.number),
        }
    }

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
