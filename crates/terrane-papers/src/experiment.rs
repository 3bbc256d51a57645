//! An experiment: its options, its metrics, and the claims that it checks.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use terrane_lab::host::Environment;
use terrane_lab::host::{program, progress, resources};
use terrane_lab::output::human;

use crate::citation;
use crate::figures::PaperFile;
use crate::judge::ClaimFile;
use crate::needs::FigureNeeds;
use crate::results::{Metric, Results};

/// Sizes and repetitions of an experiment.
#[derive(Debug, Clone)]
pub struct ExperimentOptions {
    /// Sizes as a share of the paper's: 1 means the paper's.
    pub scale: f64,
    /// The number of rounds. Operations are reported at their best round, whole runs at the median.
    pub rounds: usize,
    /// Numbers of threads, for the experiments on memtables.
    pub threads: Vec<u32>,
    /// The seed of all random choices.
    pub seed: u64,
    /// The path of the program of Dent's report, which runs alternately with ours.
    pub dent_program: Option<PathBuf>,
    /// The length of a simulated phase in hours of virtual time.
    pub phase_hours: f64,
    /// The number of simulated records.
    pub records: u64,
    /// The only figure to measure, such as `4e`; parts of an experiment without it are skipped.
    pub figure: Option<String>,
    /// A note on the conditions of the measurement, for readers.
    pub note: Option<String>,
    /// The file that keeps the measured parts, so that an interrupted run can resume.
    pub checkpoint: Option<PathBuf>,
    /// The measurements that the figure needs, set by [`Experiment::run`].
    pub(crate) needs: Option<FigureNeeds>,
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
            figure: None,
            note: None,
            checkpoint: None,
            needs: None,
        }
    }
}

/// The parts that were measured before an interruption, and the setting that they depend on.
#[derive(Serialize, Deserialize)]
struct Checkpoint {
    setting: String,
    results: Results,
}

impl ExperimentOptions {
    /// Returns true if the figures of a place, such as `Fig. 4a to 4d`, include the requested
    /// figure, or if no figure was requested.
    pub(crate) fn wants(&self, place: &str) -> bool {
        self.figure.as_ref().is_none_or(|figure| citation::includes(place, figure))
    }

    /// Returns true if a measurement of `metric` whose first keys are `keys` is needed.
    pub(crate) fn needs(&self, metric: &str, keys: &[&str]) -> bool {
        self.needs.as_ref().is_none_or(|needs| needs.include(metric, keys))
    }

    /// Returns true if a measurement of any of the metrics is needed.
    pub(crate) fn needs_any(&self, metrics: &[&str]) -> bool {
        metrics.iter().any(|metric| self.needs(metric, &[]))
    }

    /// Measures a part of an experiment, unless another figure was requested or an earlier run
    /// measured it; `place` names its figures: `Fig. 4a to 4d`.
    ///
    /// # Errors
    /// If the part fails, or its results cannot be stored.
    pub(crate) fn part(
        &self,
        results: &mut Results,
        name: &str,
        place: &str,
        measure: impl FnOnce(&mut Results) -> Result<()>,
    ) -> Result<()> {
        if !self.wants(place) {
            return Ok(());
        }
        if results.parts.iter().any(|done| done == name) {
            progress::line(&format!("{name}: measured before the interruption"));
            return Ok(());
        }
        let begun = Instant::now();
        progress::line(&format!("{}: {name}", results.experiment));
        measure(results)?;
        let took = human::duration(begun.elapsed());
        progress::line(&format!("{}: {name} took {took}", results.experiment));
        results.parts.push(name.to_owned());
        self.checkpoint.as_ref().map_or(Ok(()), |path| {
            let checkpoint = Checkpoint { setting: self.setting(), results: results.clone() };
            let text = serde_json::to_string(&checkpoint)?;
            let next = path.with_extension("new");
            let write = fs::write(&next, text).and_then(|()| fs::rename(&next, path));
            write.with_context(|| format!("cannot write {}", path.display()))
        })
    }

    /// Describes a measurement with these options that ends now. It includes the load average at the
    /// start, because other load slows multi-threaded programs more than single-threaded ones.
    fn environment(&self, load: Option<f64>) -> Environment {
        let here = Environment::of_run(&std::env::temp_dir(), self.seed);
        let load = load.map_or(String::new(), |load| format!(" · load average {load:.1}"));
        Environment {
            machine: here.machine + &load,
            scale: Some(self.scale),
            rounds: Some(self.rounds),
            note: self.note.clone(),
            ..here
        }
    }

    /// Describes the inputs of measurements: the program and the options.
    fn setting(&self) -> String {
        let options = Self { checkpoint: None, note: None, needs: None, ..self.clone() };
        format!("{} {options:?}", program::hash())
    }

    /// Returns the results of an interrupted run of the same program with the same options.
    fn interrupted(&self, experiment: &str) -> Option<Results> {
        let text = fs::read(self.checkpoint.as_ref()?).ok()?;
        let checkpoint: Checkpoint = serde_json::from_slice(&text).ok()?;
        if checkpoint.results.experiment != experiment {
            return None;
        }
        if checkpoint.setting != self.setting() {
            progress::line(&format!(
                "{experiment}: the interrupted run had other options or another program; all parts \
                 are measured again"
            ));
            return None;
        }
        Some(checkpoint.results)
    }
}

/// The approximate cost of an experiment at the default options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExperimentCost {
    /// The duration in minutes on two cores.
    pub minutes: u32,
    /// The peak disk usage of temporary databases in MiB; 0 if there are none.
    pub disk_mib: u32,
}

/// An experiment: its measurements, and the claims that it checks.
pub struct Experiment {
    /// The name on the command line.
    pub name: &'static str,
    /// The paper whose claims the experiment checks.
    pub paper: &'static str,
    /// A line for lists.
    pub about: &'static str,
    /// The time and the disk space that the experiment needs.
    pub cost: ExperimentCost,
    /// The default sizes as a share of the paper's.
    pub default_scale: f64,
    /// The quantity in the paper that the scale is a share of.
    pub scale_of: &'static str,
    /// The figures and tables of the paper that the experiment reproduces.
    pub figures: &'static [&'static str],
    /// The metrics that the experiment records.
    pub metrics: &'static [&'static [Metric]],
    /// The timed metrics, which differ from round to round.
    pub timed: &'static [&'static str],
    pub(crate) claims: &'static str,
    pub(crate) run: fn(&ExperimentOptions, &mut Results) -> Result<()>,
}

impl Experiment {
    /// Runs the experiment.
    ///
    /// # Errors
    /// If a database or a program fails.
    pub fn run(&self, options: &ExperimentOptions) -> Result<Results> {
        let load = resources::load_average();
        let mut results = Results::new(self.name, self.metrics);
        if let Some(before) = options.interrupted(self.name) {
            results.resume(before);
        }
        results.timed = self.timed.iter().map(|&name| name.to_owned()).collect();
        let options = ExperimentOptions { needs: self.needs(options)?, ..options.clone() };
        (self.run)(&options, &mut results)?;
        results.environment = Some(options.environment(load));
        Ok(results)
    }

    /// Returns the measurements that the requested figure needs; `None` for all figures.
    fn needs(&self, options: &ExperimentOptions) -> Result<Option<FigureNeeds>> {
        let Some(figure) = &options.figure else { return Ok(None) };
        let panels = PaperFile::of(self.name)?.figures;
        Ok(Some(FigureNeeds::of(&self.claims()?, &panels, figure)))
    }

    /// Returns the claims that the experiment checks.
    ///
    /// # Errors
    /// If the file of claims is malformed.
    pub fn claims(&self) -> Result<ClaimFile> {
        ClaimFile::parse(self.claims).with_context(|| format!("in the claims of {}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &[&[Metric]] = &[&[Metric { name: "moved", about: "" }]];

    fn experiment(run: fn(&ExperimentOptions, &mut Results) -> Result<()>) -> Experiment {
        Experiment {
            name: "test",
            paper: "",
            about: "",
            cost: ExperimentCost { minutes: 1, disk_mib: 0 },
            default_scale: 1.0,
            scale_of: "",
            figures: &[],
            metrics: METRICS,
            timed: &[],
            claims: "title = 't'\nintroduction = 'i'\nclaim = []\n",
            run,
        }
    }

    fn two_parts(options: &ExperimentOptions, results: &mut Results) -> Result<()> {
        options.part(results, "first", "Fig. 4a to 4d", |results| {
            results.record("moved", &["first"], results.measurements("moved").len() as f64);
            Ok(())
        })?;
        options.part(results, "second", "Fig. 5", |results| {
            anyhow::ensure!(options.seed > 1 || results.parts.len() > 1, "interrupted");
            results.record("moved", &["second"], 2.0);
            Ok(())
        })
    }

    #[test]
    fn parts_of_other_figures_are_skipped() {
        let figure = |figure: &str| {
            let figure = Some(figure.to_owned());
            let options = ExperimentOptions { figure, seed: 2, ..ExperimentOptions::default() };
            experiment(two_parts).run(&options).unwrap().parts
        };
        assert_eq!(figure("4c"), ["first"]);
        assert_eq!(figure("5"), ["second"]);
        assert!(figure("6").is_empty());
    }

    #[test]
    fn an_interrupted_run_resumes_with_the_same_options_only() {
        let dir = tempfile::tempdir().unwrap();
        let checkpoint = Some(dir.path().join("test.parts"));
        let options = ExperimentOptions { checkpoint, ..ExperimentOptions::default() };
        let failed = experiment(two_parts).run(&options).unwrap_err();
        assert_eq!(failed.to_string(), "interrupted");
        let resumed = |options: &ExperimentOptions| {
            fn third(options: &ExperimentOptions, results: &mut Results) -> Result<()> {
                let before = results.parts.len() as f64;
                options.part(results, "first", "", |_| Ok(()))?;
                results.record("moved", &["before"], before);
                Ok(())
            }
            let results = experiment(third).run(options).unwrap();
            results.measurements("moved").last().unwrap().value
        };
        assert_eq!(resumed(&options), 1.0);
        assert_eq!(resumed(&ExperimentOptions { seed: 9, ..options }), 0.0);
    }
}
