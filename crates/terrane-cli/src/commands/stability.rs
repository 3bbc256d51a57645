//! `terrane stability`: the rate of writes that a design sustains, and the latency of each write.
//!
//! [`terrane_lab::stability`] measures; this module prints. `docs/stability.md` explains the report.

mod arguments;
mod show;

use std::io::{self, Write};

use anyhow::Result;
use terrane_lab::host::machine::Machine;
use terrane_lab::output::json::write_line;
use terrane_lab::stability::{self, DesignEvaluation, JsonEvaluation, StabilityPlan, page};

use crate::exit::Exit;
use crate::output;
use crate::web::explorer_page;
pub(crate) use arguments::StabilityArgs;

impl StabilityArgs {
    /// Runs the evaluation.
    pub(crate) fn run(&self) -> Result<Exit> {
        let plan = StabilityPlan::new(self.options()?)?;
        if let Some(dir) = &self.out {
            page::prepare(dir)?;
        }
        let scratch = stability::home(self.db.as_deref())?;
        let machine = Machine::here(scratch.path());
        let mut out = output::text_or_json(self.json);
        if !self.json {
            show::header(&mut out, &plan, &machine)?;
        }
        // The map in memory runs first, so that every design can be compared with it.
        let calibration = if plan.calibrates { Some(stability::calibrate(&plan)?) } else { None };
        let mut evaluations = Vec::new();
        for design in &plan.designs {
            let dir = scratch.path().join(&design.slug);
            let evaluation = stability::measure(&plan, design, &dir)?;
            if self.json {
                let line = JsonEvaluation::of(&evaluation, calibration.as_ref(), &plan);
                write_line(&mut out, &line)?;
                out.flush()?;
            } else {
                show::evaluation(&mut out, &plan, &evaluation, calibration.as_ref())?;
            }
            evaluations.push(evaluation);
        }
        if !self.json {
            show::overview(&mut out, &evaluations)?;
        }
        drop(out);
        if let Some(dir) = &self.out {
            let page = page::write(
                dir,
                &plan,
                &machine,
                &evaluations,
                calibration.as_ref(),
                explorer_page(),
            )?;
            let _ = writeln!(io::stderr(), "wrote {}", page.display());
        }
        Ok(judge(&evaluations))
    }
}

/// Reports wrong answers, any of which makes the command fail. An unsustainable rate is a result, not
/// a failure.
fn judge(evaluations: &[DesignEvaluation]) -> Exit {
    let mut exit = Exit::Done;
    for evaluation in evaluations.iter().filter(|one| one.wrong_answers() > 0) {
        let (wrong, name) = (evaluation.wrong_answers(), &evaluation.name);
        let _ = writeln!(
            io::stderr(),
            "error: readers of {name} got {wrong} wrong answers; please report it"
        );
        exit = Exit::Failed;
    }
    exit
}
