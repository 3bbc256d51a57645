//! Benchmarks: workloads on one or more designs, each in a new database.
//!
//! Workloads that load start from an empty database. Keys that a workload reads are loaded before
//! it, without a row. After a workload that writes, the database settles: memtables are flushed and
//! every compaction that is due runs. The amplifications and counters of the row include settling;
//! its rate does not.

mod compare;
mod contents;
pub mod figures;
mod home;
mod meter;
mod plan;
mod row;
mod runner;
mod single;
mod verdict;
mod work;

pub use compare::{BenchComparison, Better, ComparedMetric, MetricValue};
pub use contents::LiveBytes;
pub use home::BenchHome;
pub use plan::{BenchOptions, BenchPlan};
pub use row::{JsonRow, KindLatency, WorkloadRow};
pub use runner::DesignRun;
pub use single::BenchRun;
pub use verdict::verdict;
pub use work::{MissCounts, TreeWork};

use anyhow::Result;

use crate::host::interrupt;
use runner::WorkloadRunner;

/// Runs all designs in turn for the planned number of repetitions, and returns the repetitions of
/// each design.
///
/// # Errors
///
/// If a database or a directory cannot be used, or `on_row` fails.
pub fn run(
    plan: &BenchPlan,
    home: &BenchHome,
    on_row: &mut dyn FnMut(&WorkloadRow) -> Result<()>,
) -> Result<Vec<Vec<DesignRun>>> {
    let mut designs: Vec<Vec<DesignRun>> = plan.designs.iter().map(|_| Vec::new()).collect();
    let steps = plan.workloads.len() * plan.designs.len() * plan.repeat as usize;
    let mut step = 1;
    for repetition in 1..=plan.repeat {
        for (design, repetitions) in plan.designs.iter().zip(&mut designs) {
            let dir = home.dir_of(design, plan);
            let runner = if home.is_existing() {
                WorkloadRunner::open_loaded(plan, design, dir.clone())?
            } else {
                WorkloadRunner::open_new(plan, design, dir.clone())?
            };
            let log_dir = runner.log_dir();
            let runner = runner.repetition(repetition).step(step, steps);
            repetitions.push(runner.run(on_row)?);
            step += plan.workloads.len();
            if !home.is_existing() && (repetition < plan.repeat || !home.is_kept()) {
                // The next repetition creates the database again.
                interrupt::wait_if_ending();
                interrupt::remove_database(&dir, &log_dir);
            }
        }
    }
    Ok(designs)
}
