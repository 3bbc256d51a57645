//! One experiment: workloads on one design, their rows as programs get them. What `terrane sweep`
//! runs many of.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::Value;
use terrane::{Design, Options};
use terrane_workload::{RunOptions, Workload};

use super::plan::{Candidate, Plan};
use super::row::JsonRow;
use super::runner::Runner;
use crate::exit::usage;

/// Workloads on one design.
#[derive(Debug, Clone)]
pub(in crate::commands) struct Experiment {
    plan: Plan,
}

impl Experiment {
    /// The workloads, in order, on a design that is called `name` in the rows.
    ///
    /// # Errors
    /// A workload cannot be run so.
    pub(in crate::commands) fn new(
        (name, design): (&str, Design),
        workloads: Vec<Workload>,
        run: RunOptions,
        options: Options,
    ) -> Result<Self> {
        let candidate = Candidate { name: name.to_owned(), slug: "1".into(), design };
        let plan = Plan {
            workloads,
            candidates: vec![candidate],
            is_design_given: true,
            run,
            repeat: 1,
            options,
        };
        for workload in &plan.workloads {
            let checked = workload.check(&plan.run_of(*workload));
            checked.map_err(|error| usage(format!("{workload}: {error}")))?;
        }
        Ok(Self { plan })
    }

    /// Operations of all workloads, and keys that are loaded.
    pub(in crate::commands) fn operations(&self) -> u64 {
        let run = |workload: &Workload| workload.operations(&self.plan.run_of(*workload));
        let loads = self.plan.workloads.first().and_then(|first| first.loaded_by()).is_some();
        let loaded = if loads { self.plan.run.num } else { 0 };
        self.plan.workloads.iter().map(run).sum::<u64>() + loaded
    }

    /// Runs all of it in a new database in `dir`. The rows, and how many answers were wrong.
    pub(in crate::commands) fn run(&self, dir: PathBuf) -> Result<(Vec<Value>, u64)> {
        let mut rows = Vec::new();
        let mut wrong_answers = 0;
        if let Some(candidate) = self.plan.candidates.first() {
            let runner = Runner::open_new(&self.plan, candidate, dir)?;
            runner.run(&mut |row| {
                wrong_answers += row.wrong_answers;
                rows.push(serde_json::to_value(JsonRow::of(row))?);
                Ok(())
            })?;
        }
        Ok((rows, wrong_answers))
    }
}
