//! `terrane-papers run`: measures, and writes the results and documents.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use terrane_lab::error::usage;
use terrane_lab::host::progress;
use terrane_lab::input::quantity::{count_in, number_in};
use terrane_lab::output::human;

use crate::citation;
use crate::experiments::{self, Experiment, ExperimentOptions};
use crate::figures::PaperFile;
use crate::judge::counted;
use crate::report;
use crate::results::Results;

use super::measurement::MeasurementArgs;
use super::output::write_document;

/// The name that selects all experiments.
const ALL: &str = "all";

/// Run experiments and check their claims
#[derive(Debug, Clone, Args)]
pub(super) struct RunArgs {
    /// The experiments
    #[arg(required = true, value_name = "EXPERIMENT", value_parser = names())]
    experiments: Vec<String>,

    #[command(flatten)]
    measurement: MeasurementArgs,

    /// Hours of virtual time per simulated phase
    #[arg(long, value_name = "HOURS", default_value_t = 2.0, value_parser = number_in(0.01..=100.0))]
    hours: f64,

    /// Records of simulated trees
    #[arg(long, value_name = "N", default_value = "100M",
          value_parser = count_in::<u64>(100_000..=1_000_000_000_000))]
    records: u64,

    /// Write the document of the only experiment to a file [default: to standard output]
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    output: Option<PathBuf>,

    /// Write report.html to a directory, with an SVG for each figure, CSV, environment.json, and of
    /// each experiment its results (EXPERIMENT.json) and its document (EXPERIMENT.md)
    ///
    /// An interrupted run keeps the parts that it measured there; the same command resumes it.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Measure and report one figure of the paper, such as 4e or "Table 1"; an experiment without
    /// separate parts is measured whole [with --out: a page; else its numbers and claims]
    #[arg(long, value_name = "FIGURE", conflicts_with = "output")]
    figure: Option<String>,

    /// A note on the conditions for readers, such as other load on the machine
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

fn names() -> PossibleValuesParser {
    let value = |one: &Experiment| PossibleValue::new(one.name).help(one.about);
    let all = PossibleValue::new(ALL).help("every experiment");
    experiments::ALL.iter().map(value).chain([all]).collect::<Vec<_>>().into()
}

impl RunArgs {
    /// Runs the experiments.
    pub(super) fn run(&self) -> Result<()> {
        let chosen = self.chosen();
        if self.output.is_some() && chosen.len() > 1 {
            return Err(usage("--output takes one experiment; write several with --out DIR"));
        }
        if let Some(dir) = &self.out {
            fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        }
        if let Some(figure) = &self.figure {
            check_figure(&chosen, figure)?;
        }
        let mut options = self.options()?;
        let mut all = Vec::new();
        for experiment in &chosen {
            options.scale = self.measurement.scale.unwrap_or(experiment.default_scale);
            options.checkpoint = self.out.as_ref().map(|dir| checkpoint(dir, experiment));
            let minutes = experiment.cost.minutes;
            let times = options.scale / experiment.default_scale * options.rounds as f64 / 3.0;
            let about = human::seconds(f64::from(minutes) * 60.0 * times);
            let only = self.figure.as_ref();
            let only =
                only.map_or(String::new(), |figure| format!("; only figure {figure} is measured"));
            let name = experiment.name;
            progress::line(&format!("{name}: about {about} on two cores for all figures{only}"));
            let spinner = progress::spinner(experiment.name);
            let results = experiment.run(&options);
            spinner.finish_and_clear();
            let results =
                results.with_context(|| format!("experiment {} failed", experiment.name))?;
            match (&self.out, &self.figure) {
                (Some(dir), _) => store(dir, &results)?,
                (None, Some(figure)) => {
                    write_document(None, &report::figure_document(&results, figure)?)?;
                }
                (None, None) => {
                    write_document(self.output.as_deref(), &experiments::document(&results)?)?;
                }
            }
            let verdict = verdict(&results, self.figure.as_deref())?;
            let _ = writeln!(io::stderr(), "{}: {verdict}", experiment.name);
            all.push(results);
        }
        if let Some(dir) = &self.out {
            let page = report::write(dir, &all, self.figure.as_deref())?;
            let _ = writeln!(io::stderr(), "report: {}", page.display());
            // Everything is measured and written, so the next run starts from scratch.
            for experiment in &chosen {
                let _ = fs::remove_file(checkpoint(dir, experiment));
            }
        }
        Ok(())
    }

    fn chosen(&self) -> Vec<&'static Experiment> {
        let is_chosen =
            |one: &&Experiment| self.experiments.iter().any(|name| name == ALL || name == one.name);
        experiments::ALL.iter().filter(is_chosen).collect()
    }

    fn options(&self) -> Result<ExperimentOptions> {
        let measurement = &self.measurement;
        Ok(ExperimentOptions {
            scale: measurement.scale.unwrap_or(1.0),
            rounds: measurement.rounds,
            threads: measurement.threads.clone(),
            seed: measurement.seed,
            dent_program: measurement.dent_program()?,
            phase_hours: self.hours,
            records: self.records,
            figure: self.figure.clone(),
            note: self.note.clone(),
            ..ExperimentOptions::default()
        })
    }
}

/// Returns the file that keeps the measured parts of an interrupted experiment.
fn checkpoint(dir: &Path, experiment: &Experiment) -> PathBuf {
    dir.join(format!("{}.parts", experiment.name))
}

/// Fails if no chosen experiment has a figure.
fn check_figure(chosen: &[&Experiment], figure: &str) -> Result<()> {
    let mut known = Vec::new();
    for experiment in chosen {
        for one in PaperFile::of(experiment.name)?.figures {
            known.push(one.number().to_owned());
        }
    }
    if known.iter().any(|one| one == figure) {
        return Ok(());
    }
    let known = known.join(", ");
    Err(usage(format!("no figure '{figure}' among those of the experiments: {known}")))
}

/// Writes the results and the document of an experiment into a directory.
fn store(dir: &Path, results: &Results) -> Result<()> {
    let json = serde_json::to_string_pretty(results)? + "\n";
    let document = experiments::document(results)?;
    for (extension, text) in [("json", json), ("md", document)] {
        let path = dir.join(&results.experiment).with_extension(extension);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Summarises the verdicts, on one figure only if `figure` names it.
fn verdict(results: &Results, figure: Option<&str>) -> Result<String> {
    let verdicts = experiments::judge(results)?;
    let is_wanted = |place: &str| figure.is_none_or(|figure| citation::includes(place, figure));
    let wanted = verdicts.iter().filter(|verdict| is_wanted(&verdict.figure));
    Ok(counted(wanted.map(|verdict| verdict.outcome)))
}
