//! One experiment: workloads on one design, their rows as programs get them. What `terrane sweep`
//! runs many of.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::Value;
use terrane::{Design, Options};
use terrane_workload::{RunOptions, Workload};

use super::plan::BenchPlan;
use super::row::JsonRow;
use super::runner::WorkloadRunner;
use crate::error::usage;
use crate::named_design::NamedDesign;

/// Workloads on one design.
#[derive(Debug, Clone)]
pub struct BenchRun {
    plan: BenchPlan,
}

impl BenchRun {
    /// The workloads, in order, on a design that is called `name` in the rows.
    ///
    /// # Errors
    /// A workload cannot be run so.
    pub fn new(
        (name, design): (&str, Design),
        workloads: Vec<Workload>,
        run: RunOptions,
        options: Options,
    ) -> Result<Self> {
        let design = NamedDesign { name: name.to_owned(), slug: "1".into(), design };
        let plan = BenchPlan {
            workloads,
            designs: vec![design],
            is_design_given: true,
            run,
            repeat: 1,
            engine: options,
        };
        for workload in &plan.workloads {
            let checked = workload.check(&plan.run_of(*workload));
            checked.map_err(|error| usage(format!("{workload}: {error}")))?;
        }
        Ok(Self { plan })
    }

    /// Operations of all workloads, and keys that are loaded.
    pub fn operations(&self) -> u64 {
        let run = |workload: &Workload| workload.operations(&self.plan.run_of(*workload));
        let loads = self.plan.workloads.first().and_then(|first| first.loaded_by()).is_some();
        let loaded = if loads { self.plan.run.num } else { 0 };
        self.plan.workloads.iter().map(run).sum::<u64>() + loaded
    }

    /// Runs all of it in a new database in `dir`. The rows, and how many answers were wrong.
    pub fn run(&self, dir: PathBuf) -> Result<(Vec<Value>, u64)> {
        let mut rows = Vec::new();
        let mut wrong_answers = 0;
        if let Some(design) = self.plan.designs.first() {
            let runner = WorkloadRunner::open_new(&self.plan, design, dir)?;
            runner.run(&mut |row| {
                wrong_answers += row.wrong_answers;
                rows.push(serde_json::to_value(JsonRow::of(row))?);
                Ok(())
            })?;
        }
        Ok((rows, wrong_answers))
    }
}
