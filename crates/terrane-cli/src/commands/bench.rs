//! `terrane bench`: runs workloads on one or more designs and compares them.
//!
//! [`terrane_lab::bench`] runs them; this module prints the results.
//!
//! | metric | definition |
//! |---|---|
//! | write amplification | bytes written to tables per byte the user wrote, flushes included |
//! | rewrite amplification | bytes written by compactions per byte the user wrote: the compaction paper's write amplification (§4.2) |
//! | read amplification | data blocks read per lookup of a key (§4.2) |
//! | space amplification | bytes of all tables and value files per live byte; the compaction paper's is this less 1 (§4.2) |
//! | data movement | bytes that compactions read and wrote |
//! | compactions | those that rewrote tables, and separately those that only moved tables |
//! | compaction latency | from a compaction's first read to its manifest edit: mean, percentiles, maximum; the rest of its processor share is waiting for storage |
//! | cache misses | of data, index and filter blocks, by level |
//! | tombstones, oldest | tombstones in tables, and the age of the oldest |
//! | stalls | time for which writers were stopped or slowed down, and the main cause; `log` if they waited for a file of the log |
//!
//! | module | one line |
//! |---|---|
//! | [`arguments`] | the flags |
//! | [`memtable`] | `--memtable`: measures memtables alone |
//! | [`compare`] | designs side by side, with bars; the verdict |
//! | [`show`] | header, tables and pictures |
//! | [`notes`] | notes below the tables |

mod arguments;
mod compare;
mod memtable;
mod notes;
mod show;

use std::io::{self, Write};

use anyhow::Result;
use serde::Serialize;

pub(crate) use arguments::BenchArgs;
use terrane_lab::bench::figures::of_bench;
use terrane_lab::bench::{
    self, BenchComparison, BenchHome, BenchPlan, DesignRun, JsonRow, WorkloadRow, verdict,
};
use terrane_lab::host::Environment;
use terrane_lab::host::machine::Machine;
use terrane_lab::output::json::{self, SCHEMA};
use terrane_lab::report::figures::FigureReport;

use crate::exit::Exit;
use crate::output;
use crate::web::explorer_page;

#[derive(Serialize)]
struct JsonVerdict {
    schema: u32,
    verdict: Vec<String>,
}

impl BenchArgs {
    /// Runs the benchmark.
    pub(crate) fn run(&self) -> Result<Exit> {
        if !self.memtable.is_empty() {
            return memtable::run(self);
        }
        let plan = BenchPlan::new(self.options()?)?;
        if let Some(dir) = &self.out {
            FigureReport::prepare(dir)?;
        }
        let home = BenchHome::new(self.db.as_deref(), &plan, self.keep)?;
        let machine = Machine::here(home.path());
        let mut out = output::text_or_json(self.json);
        if !self.json {
            show::header(&mut out, &plan, &machine)?;
        }
        let mut on_row = |row: &WorkloadRow| -> Result<()> {
            if self.json {
                json::write_line(&mut output::stdout(), &JsonRow::of(row))?;
            }
            Ok(())
        };
        let designs = bench::run(&plan, &home, &mut on_row)?;
        let is_comparison = plan.designs.len() > 1;
        let comparisons = if is_comparison { BenchComparison::of(&designs) } else { Vec::new() };
        if self.json {
            comparisons.iter().try_for_each(|one| json::write_line(&mut out, one))?;
            if is_comparison {
                let verdict = verdict(&comparisons);
                json::write_line(&mut out, &JsonVerdict { schema: SCHEMA, verdict })?;
            }
            warn_of_refused(&designs);
        } else {
            let shown: Vec<&DesignRun> = designs.iter().filter_map(|all| all.last()).collect();
            show::results(&mut out, &plan, &shown)?;
            if is_comparison {
                compare::write(&mut out, &comparisons)?;
            }
            show::trees(&mut out, &shown)?;
            if is_comparison {
                compare::write_verdict(&mut out, &comparisons)?;
            }
            show::next(&mut out, &plan)?;
        }
        out.flush()?;
        drop(out);
        if let Some(dir) = &self.out {
            let environment = Environment::of_run(home.path(), plan.run.seed);
            let page = of_bench(&plan, &designs)?.write(dir, &environment, explorer_page())?;
            let _ = writeln!(io::stderr(), "report: {}", page.display());
        }
        if let (true, Some(path)) = (self.keep, &self.db) {
            let _ = writeln!(io::stderr(), "kept in {}", path.display());
        }
        Ok(judge(designs.iter().flatten()))
    }
}

/// Warns on standard error too, because a program may ignore the field of the row.
fn warn_of_refused(designs: &[Vec<DesignRun>]) {
    for one in designs.iter().filter_map(|repetitions| repetitions.last()) {
        if let Some(note) = notes::refused(&one.name, one.stats.direct_refused) {
            let _ = writeln!(io::stderr(), "warning: {note}");
        }
    }
}

/// Reports wrong answers; a single wrong answer makes the command fail.
fn judge<'a>(runs: impl Iterator<Item = &'a DesignRun>) -> Exit {
    let mut exit = Exit::Done;
    for row in runs.flat_map(|run| &run.rows) {
        if row.wrong_answers > 0 {
            let (wrong, workload, design) = (row.wrong_answers, row.workload, &row.design);
            let _ = writeln!(
                io::stderr(),
                "error: {workload} on {design} returned {wrong} wrong answers; please report it"
            );
            exit = Exit::Failed;
        }
    }
    exit
}
