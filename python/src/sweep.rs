//! `terrane.sweep`: the experiments of a plan, one at a time per directory.
//!
//! The plan, the parameters, the keys and the results are those of `terrane sweep`, so the command shows them and
//! continues with them. The Python sources distribute the experiments; a function here runs one.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use pyo3::prelude::*;
use terrane_lab::host::{interrupt, program};
use terrane_lab::sweep::{self, Player, ResultLine, ResultsFile, SweepExperiment};

use crate::errors;

/// The name of the file whose lock lets one experiment run at a time.
const LOCK: &str = "terrane-sweep.lock";

type Parameters = BTreeMap<String, String>;

fn player(is_simulated: bool) -> Player {
    if is_simulated { Player::Simulator } else { Player::Engine }
}

/// Names the file whose contents are the identity of this program in results.
#[pyfunction]
pub(crate) fn set_program(path: PathBuf) {
    program::set_file(path);
}

/// Returns the experiments of a plan: parameters, and the key of each round.
#[pyfunction]
pub(crate) fn sweep_experiments(
    plan: Option<PathBuf>,
    table: Option<&str>,
    rounds: u32,
    is_simulated: bool,
) -> PyResult<Vec<(Parameters, u32, String, u64)>> {
    let expand = || -> Result<Vec<SweepExperiment>> {
        let tables = match table {
            Some(text) => {
                sweep::tables_of(text.parse().context("the plan is not valid TOML")?, &[])?
            }
            None => sweep::tables(plan.as_deref(), &[])?,
        };
        sweep::experiments(&tables, player(is_simulated))
    };
    let experiments = expand().map_err(errors::from_lab)?;
    let mut all = Vec::new();
    for round in 1..=rounds {
        let mut of_round: Vec<_> = experiments
            .iter()
            .map(|one| (one.parameters().clone(), round, one.key(round), one.operations()))
            .collect();
        // Rounds alternate direction, as in `terrane sweep`.
        if round % 2 == 0 {
            of_round.reverse();
        }
        all.extend(of_round);
    }
    Ok(all)
}

/// Runs one experiment in a directory below `dir`, and returns its line. Waits for other experiments in `dir`.
#[pyfunction]
pub(crate) fn sweep_run(
    py: Python<'_>,
    parameters: Parameters,
    round: u32,
    is_simulated: bool,
    dir: PathBuf,
) -> PyResult<String> {
    py.detach(|| run(parameters, round, is_simulated, &dir)).map_err(errors::from_lab)
}

fn run(parameters: Parameters, round: u32, is_simulated: bool, dir: &Path) -> Result<String> {
    let experiment = SweepExperiment::of(parameters, player(is_simulated))?;
    let (rows, wrong_answers, took) = if is_simulated {
        let begun = Instant::now();
        let (rows, wrong) = experiment.run(dir.to_owned())?;
        (rows, wrong, begun.elapsed())
    } else {
        let _lock = locked(dir)?;
        let path = dir.join(format!("terrane-sweep-{}", experiment.key(round)));
        // A killed worker may have left files there.
        interrupt::remove(&path);
        let begun = Instant::now();
        let ran = experiment.run(path.clone());
        let took = begun.elapsed();
        interrupt::remove(&path);
        let (rows, wrong) = ran.with_context(|| experiment.name())?;
        (rows, wrong, took)
    };
    if wrong_answers > 0 {
        anyhow::bail!("{} gave {wrong_answers} wrong answers", experiment.name());
    }
    Ok(serde_json::to_string(&experiment.line(round, took, rows, dir))?)
}

/// Waits for the lock of a directory. The operating system releases it when the process ends, however it ends.
fn locked(dir: &Path) -> Result<File> {
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let path = dir.join(LOCK);
    let open = || File::options().write(true).create(true).truncate(false).open(&path);
    let file = open().with_context(|| format!("cannot create {}", path.display()))?;
    file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

/// Appends lines to the results in `out` that it does not have, and returns all of them.
#[pyfunction]
pub(crate) fn sweep_collect(out: PathBuf, lines: Vec<String>) -> PyResult<Vec<String>> {
    let collect = || -> Result<Vec<String>> {
        let mut results = ResultsFile::open(&out)?;
        for text in &lines {
            let line: ResultLine = serde_json::from_str(text).context("not a result of a sweep")?;
            if !results.lines().iter().any(|known| known.key == line.key) {
                results.append(line)?;
            }
        }
        results.lines().iter().map(|line| Ok(serde_json::to_string(line)?)).collect()
    };
    collect().map_err(errors::from_lab)
}
