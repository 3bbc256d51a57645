//! The two-phase evaluation of the stability paper (§3.2): the rate of writes that a design
//! sustains, and the latency of each write at that rate.
//!
//! [`terrane_workload::stability`] carries out the phases. Each design gets a new database, which is
//! loaded in random order and settles. The testing phase follows; then the database settles again,
//! in the requested design, and the running phase follows. `docs/stability.md` explains the report.
//!
//! | module | one line |
//! |---|---|
//! | `plan` | the options, checked |
//! | `subject` | databases and the in-memory map, prepared for a phase |
//! | `meter` | progress |
//! | `evaluation` | the results of a design |
//! | `advice`, `cautions` | remedies; reasons to doubt the verdict |
//! | `counted` | the engine's counters, as plain numbers |
//! | `fit` | the simulator's constants from the counters of the run |
//! | `residual` | the run against its replay |
//! | `outlook` | the run replayed and continued in the simulator |
//! | [`words`] | sentences about the results |
//! | `json` | the output of `--json` |
//! | `plots`, `strips`, [`page`] | plots, the rows below them, and the HTML page that embeds them |

mod advice;
mod cautions;
mod counted;
mod evaluation;
mod fit;
mod json;
mod meter;
mod outlook;
pub mod page;
mod plan;
mod plots;
mod residual;
mod strips;
mod subject;
#[cfg(test)]
mod testing;
pub mod words;

pub use advice::Suggestion;
pub use evaluation::{DesignEvaluation, MapCalibration, stalls_by_cause};
pub use json::JsonEvaluation;
pub use outlook::{Conclusion, Horizon, Outlook, Prediction};
pub use plan::{StabilityOptions, StabilityPlan};
pub use residual::Residual;

use std::io;
use std::path::Path;

use anyhow::Result;
use terrane_workload::stability::{Watch, evaluate};

use crate::error::usage;
use crate::host::interrupt;
use crate::host::progress;
use crate::host::scratch::Scratch;
use crate::input::named_design::NamedDesign;
use counted::CountedRun;
use meter::PhaseMeter;
use subject::{LoadedDatabase, MapSubject};

/// Chooses the directory of the databases: `dir`, which must be empty or missing, or a temporary
/// directory. It is removed when the result is dropped.
///
/// # Errors
///
/// If `dir` is not empty or cannot be read.
pub fn home(dir: Option<&Path>) -> Result<Scratch> {
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

/// Evaluates a map in memory; its results show the performance of the machine itself.
///
/// # Errors
///
/// If the driver fails.
pub fn calibrate(plan: &StabilityPlan) -> Result<MapCalibration> {
    let mut map = MapSubject::load(&plan.phases.run)?;
    let report = evaluate(&mut map, &plan.phases, &watched("mem"))?;
    Ok(MapCalibration::of(report, &plan.criteria))
}

/// Evaluates a design in a new database in `dir`, then removes the database.
///
/// # Errors
///
/// If the database fails.
pub fn measure(plan: &StabilityPlan, design: &NamedDesign, dir: &Path) -> Result<DesignEvaluation> {
    let mut database = LoadedDatabase::load(design, &plan.engine, dir, plan)?;
    let report = evaluate(&mut database, &plan.phases, &watched(&design.name))?;
    let counts = database.counts();
    let log_dir = database.close()?;
    // Removing the database gives the next design the same free space.
    interrupt::wait_if_ending();
    interrupt::remove_database(dir, &log_dir);
    let spinner = progress::spinner("simulating 30 days");
    let counted = CountedRun::of(plan, &design.design, &report, &counts);
    let outlook = match &counted {
        Ok(run) => Outlook::of(run, plan.phases.readers, &plan.criteria),
        Err(reason) => Outlook::Withheld(reason.clone()),
    };
    spinner.finish_and_clear();
    let counted = counted.ok();
    Ok(DesignEvaluation {
        counted,
        outlook,
        ..DesignEvaluation::of(design, report, &plan.criteria)
    })
}

fn watched<'n>(name: &'n str) -> impl Fn(&'static str) -> Box<dyn Watch> + use<'n> {
    move |phase| Box::new(PhaseMeter::new(format!("{phase} {name}")))
}
