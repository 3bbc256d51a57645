//! `terrane stability`: how many writes a second a design sustains, and what each then takes.
//!
//! The two-phase evaluation of the stability paper (§3.2), carried out by
//! [`terrane_workload::stability`]. Each design gets a new database that is loaded in random order
//! and settles; then the testing phase; then, settled again and in the design that was asked for,
//! the running phase. `docs/stability.md` says how to read what comes out.
//!
//! | module | one line |
//! |---|---|
//! | [`arguments`] | the flags |
//! | [`plan`] | what is evaluated, from the flags; the design of the testing phase |
//! | [`subject`] | databases and the map in memory, made ready for a phase |
//! | [`meter`] | progress |
//! | [`outcome`] | what came out of a design |
//! | [`advice`], [`cautions`] | what would help; why the verdict may be worth less than it seems |
//! | [`words`] | what is said of it |
//! | [`show`], [`json`] | for people, for programs |
//! | [`plots`], [`page`] | pictures, and the page with them |

mod advice;
mod arguments;
mod cautions;
mod json;
mod meter;
mod outcome;
mod page;
mod plan;
mod plots;
mod show;
mod subject;
#[cfg(test)]
mod testing;
mod words;

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use terrane_workload::stability::{TwoPhaseOptions, TwoPhaseReport, Watch, evaluate};

pub(crate) use arguments::StabilityArgs;
use json::JsonOutcome;
use meter::Meter;
use outcome::{Calibration, Outcome};
use plan::{Candidate, Plan};
use subject::{Database, Map};

use crate::exit::{Exit, usage};
use crate::interrupt;
use crate::json::write_line;
use crate::machine::Machine;
use crate::scratch::Scratch;

impl StabilityArgs {
    /// Runs the evaluation.
    pub(crate) fn run(&self) -> Result<Exit> {
        let plan = Plan::of(self)?;
        if let Some(dir) = &self.out {
            page::prepare(dir)?;
        }
        let scratch = home(self.db.as_deref())?;
        let machine = Machine::here(scratch.path());
        let mut out = io::stdout().lock();
        if !self.json {
            show::header(&mut out, &plan, &machine)?;
        }
        // First, so that what it says can stand beside every design.
        let calibration = if plan.calibrates { Some(calibrate(&plan)?) } else { None };
        let mut outcomes = Vec::new();
        for candidate in &plan.candidates {
            let outcome = measure(&plan, candidate, &scratch.path().join(&candidate.slug))?;
            if self.json {
                let line = JsonOutcome::of(&outcome, calibration.as_ref(), &plan);
                write_line(&mut out, &line)?;
                out.flush()?;
            } else {
                show::outcome(&mut out, &plan, &outcome, calibration.as_ref())?;
            }
            outcomes.push(outcome);
        }
        if !self.json {
            show::overview(&mut out, &outcomes)?;
        }
        drop(out);
        if let Some(dir) = &self.out {
            let page = page::write(dir, &plan, &machine, &outcomes, calibration.as_ref())?;
            let _ = writeln!(io::stderr(), "written to {}", page.display());
        }
        Ok(judge(&outcomes))
    }
}

/// A directory for the databases, which is removed in the end.
fn home(dir: Option<&Path>) -> Result<Scratch> {
    let Some(dir) = dir else { return Scratch::temporary("terrane-stability-") };
    let is_empty = match std::fs::read_dir(dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(usage(format!("cannot use {}: {error}", dir.display()))),
    };
    if !is_empty {
        return Err(usage(format!(
            "{} is not empty; --db needs an empty directory",
            dir.display()
        )));
    }
    Ok(Scratch::of(dir.to_owned()))
}

fn watched<'n>(name: &'n str) -> impl Fn(&'static str) -> Box<dyn Watch> + use<'n> {
    move |phase| Box::new(Meter::new(format!("{phase} {name}")))
}

fn calibrate(plan: &Plan) -> Result<Calibration> {
    let mut map = Map::load(&plan.phases.run)?;
    let report = evaluate(&mut map, &plan.phases, &watched("mem"))?;
    Ok(Calibration::of(report, &plan.criteria))
}

fn measure(plan: &Plan, candidate: &Candidate, dir: &Path) -> Result<Outcome> {
    let phases: &TwoPhaseOptions = &plan.phases;
    let mut database = Database::load(candidate, &plan.options, dir, plan)?;
    let report: TwoPhaseReport = evaluate(&mut database, phases, &watched(&candidate.name))?;
    database.close()?;
    // The next design finds the disk as this one found it.
    interrupt::wait_if_ending();
    interrupt::remove(dir);
    Ok(Outcome::of(candidate, report, &plan.criteria))
}

/// Wrong answers are failures, however fast they were. A rate that is not sustainable is an answer.
fn judge(outcomes: &[Outcome]) -> Exit {
    let mut exit = Exit::Done;
    for outcome in outcomes.iter().filter(|outcome| outcome.wrong_answers() > 0) {
        let (wrong, name) = (outcome.wrong_answers(), &outcome.name);
        let _ = writeln!(
            io::stderr(),
            "error: readers of {name} had {wrong} wrong answers; please report it"
        );
        exit = Exit::Failed;
    }
    exit
}
