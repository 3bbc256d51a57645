//! One experiment of a sweep: runs workloads on one design and returns their rows as JSON.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::Value;
use terrane::{Design, Options};
use terrane_workload::{RunOptions, Workload};

use super::plan::BenchPlan;
use super::row::JsonRow;
use super::runner::WorkloadRunner;
use crate::error::usage;
use crate::input::named_design::NamedDesign;

/// Workloads to run on one design.
#[derive(Debug, Clone)]
pub struct BenchRun {
    plan: BenchPlan,
}

impl BenchRun {
    /// Returns an experiment of workloads, in order, on a design named `name` in the rows.
    ///
    /// # Errors
    ///
    /// If a workload cannot run with these options.
    pub fn new(
        (name, design): (&str, Design),
        workloads: Vec<Workload>,
        run: RunOptions,
        options: Options,
    ) -> Result<Self> {
        let design = NamedDesign { name: name.to_owned(), slug: "1".into(), design, divided_by: 1 };
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

    /// Returns the number of operations of all workloads plus the number of loaded keys.
    pub fn operations(&self) -> u64 {
        let run = |workload: &Workload| workload.operations(&self.plan.run_of(*workload));
        let loads = self.plan.workloads.first().and_then(|first| first.loaded_by()).is_some();
        let loaded = if loads { self.plan.run.num } else { 0 };
        self.plan.workloads.iter().map(run).sum::<u64>() + loaded
    }

    /// Runs the experiment in a new database in `dir`, and returns the rows and the number of wrong
    /// answers.
    ///
    /// # Errors
    ///
    /// If the database fails.
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
