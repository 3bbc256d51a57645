//! The two-phase evaluation of write stalls, on every engine in one run with the same budget.
//!
//! Each engine runs in its own process: it loads, settles, is tested as a closed system for its
//! maximum, and then runs as an open system at shares of that maximum and at the maximum of the
//! reference engine. Between phases it settles. Engines take turns within each repetition, the
//! reference first, since the others need its maximum. `mem` shows the latency of the machine
//! itself.
//!
//! | module | one line |
//! |---|---|
//! | [`arguments`] | the command line |
//! | [`job`] | messages between parent and child |
//! | [`measure`] | the child: one engine, all phases |
//! | [`show`] | Markdown |

mod arguments;
mod job;
mod measure;
mod show;

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::engines::{Budget, Engine};
use crate::machine::Machine;
use crate::parent::{Ending, Interrupt, ask, say};
use crate::settings::Durability;
pub(crate) use arguments::StabilityArguments;
use job::{Evaluation, Job};

/// One line of the JSON file.
#[derive(Debug, Serialize)]
struct Record<'a> {
    schema: u32,
    repetition: u32,
    engine: &'a str,
    engine_version: String,
    /// Whether the engine could keep to the budget.
    keeps_budget: bool,
    job: &'a Job,
    evaluation: &'a Evaluation,
    machine: &'a Machine,
    command: Vec<String>,
}

const SCHEMA: u32 = 1;

/// Evaluates all engines.
pub(crate) fn compare(arguments: &StabilityArguments, interrupt: &Interrupt) -> Result<Ending> {
    let engines = arguments.engines_in_order()?;
    let base = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    std::fs::create_dir_all(&base).with_context(|| base.display().to_string())?;
    let folder = tempfile::Builder::new().prefix("terrane-compare-").tempdir_in(&base)?;
    let machine = Machine::here(folder.path());
    let mut json = match &arguments.json {
        Some(path) => Some(std::fs::File::create(path).context(path.display().to_string())?),
        None => None,
    };
    let mut ending = Ending::Complete;
    let mut evaluated = Vec::new();
    for repetition in 1..=arguments.repeat {
        let mut reference = None;
        for engine in arguments.turn(&engines, repetition) {
            if interrupt.is_set() {
                break;
            }
            say(&format!("{repetition} {:<8} ", engine.name));
            let job = job(arguments, engine, folder.path(), reference);
            match evaluate(&job, arguments, interrupt) {
                Ok(evaluation) => {
                    say(&format!("{}\n", evaluation.summary()));
                    if arguments.is_reference(engine) {
                        reference = Some(evaluation.maximum_per_second);
                    }
                    let record = Record {
                        schema: SCHEMA,
                        repetition,
                        engine: engine.name,
                        engine_version: (engine.version)(),
                        keeps_budget: engine.budget == Budget::Kept,
                        job: &job,
                        evaluation: &evaluation,
                        machine: &machine,
                        command: std::env::args().collect(),
                    };
                    if let Some(json) = &mut json {
                        writeln!(json, "{}", serde_json::to_string(&record)?)?;
                    }
                    evaluated.push((engine, evaluation));
                }
                Err(error) => {
                    say(&format!("failed: {error:#}\n"));
                    ending = Ending::WithFailures;
                }
            }
        }
    }
    let text = show::markdown(arguments, &engines, &evaluated);
    match &arguments.markdown {
        Some(path) => std::fs::write(path, text).context(path.display().to_string())?,
        None => std::io::stdout().write_all(text.as_bytes())?,
    }
    Ok(if interrupt.is_set() { Ending::Interrupted } else { ending })
}

fn job(
    arguments: &StabilityArguments,
    engine: &Engine,
    folder: &Path,
    reference: Option<f64>,
) -> Job {
    let mut settings = arguments.sizes.settings(engine, Durability::Process);
    settings.budget_bytes_per_second = arguments.budget.map(|budget| budget.0);
    let own = arguments.is_reference(engine).then_some(1.0);
    Job {
        engine: engine.name.into(),
        dir: folder.join(engine.name),
        records: arguments.records,
        value_bytes: arguments.value_size,
        testing_seconds: arguments.testing,
        warm_up_seconds: arguments.warm_up.unwrap_or(arguments.testing / 6.0),
        running_seconds: arguments.running,
        // The run at the reference rate is the run at the full maximum of the reference engine
        // itself.
        utilizations: arguments.utilizations.iter().copied().chain(own).collect(),
        reference_per_second: reference,
        seed: arguments.seed,
        settings,
    }
}

fn evaluate(
    job: &Job,
    arguments: &StabilityArguments,
    interrupt: &Interrupt,
) -> Result<Evaluation> {
    std::fs::create_dir(&job.dir)?;
    let limit = Duration::from_secs(arguments.limit_seconds);
    let evaluated = ask("stability-child", job, limit, interrupt);
    let removed = std::fs::remove_dir_all(&job.dir);
    // Write-back of one engine's data must not slow the next engine.
    rustix::fs::sync();
    let evaluated = evaluated?;
    removed?;
    Ok(evaluated)
}

/// Runs the evaluation `job`, and prints the result as JSON.
pub(crate) fn child(job: &str) -> Result<()> {
    let job = serde_json::from_str(job).context("the job")?;
    let evaluation = measure::evaluate(&job)?;
    serde_json::to_writer(std::io::stdout().lock(), &evaluation)?;
    Ok(())
}
