//! `terrane bench`: runs workloads on one or more designs, and compares them.
//!
//! Each design gets a new database; workloads that load start from an empty one, and data that a
//! workload needs and that is not there is loaded before, without a row. After a workload that
//! writes, the database settles: what was written is flushed and every compaction that is due is
//! done, which counts in the amplifications and the counters of the row but not in its rate.
//!
//! | figure | what it is |
//! |---|---|
//! | write amplification | bytes written to tables over bytes that the user wrote (compaction paper §4.2) |
//! | read amplification | data blocks looked into per lookup of a key |
//! | space amplification | (bytes of all tables − live bytes) / live bytes |
//! | stalls | time that writers waited or were slowed down, and what most of it was due to |
//!
//! | module | one line |
//! |---|---|
//! | [`arguments`] | the flags |
//! | [`memtable`] | measures memtables alone |
//! | [`claims`] | measures what papers say |
//! | [`plan`] | what is run, from the flags |
//! | [`runner`] | runs it on one design |
//! | [`contents`] | what the database holds, and what of it is live |
//! | [`meter`] | progress with a look at the engine |
//! | [`row`] | what came out of one workload on one design; its JSON |
//! | [`process`] | memory and processor time |
//! | [`show`] | header, table and pictures for people |

mod arguments;
mod claims;
mod contents;
mod memtable;
mod meter;
mod plan;
mod process;
mod row;
mod runner;
mod show;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;

pub(crate) use arguments::BenchArgs;
use arguments::BenchCommand;
use plan::{Candidate, Plan};
use row::{JsonRow, Row};
use runner::{Finished, Runner};

use crate::exit::{Exit, usage};
use crate::json;
use crate::machine::Machine;
use crate::scratch::Scratch;

impl BenchArgs {
    /// Runs the benchmark.
    pub(crate) fn run(&self) -> Result<Exit> {
        if let Some(BenchCommand::Claims(claims)) = &self.command {
            return claims.run();
        }
        if !self.memtable.is_empty() {
            return memtable::run(self);
        }
        let plan = Plan::of(self)?;
        let home = Home::of(self.db.as_deref(), &plan, self.keep)?;
        let machine = Machine::here(home.path());
        let mut out = io::stdout().lock();
        if !self.json {
            show::header(&mut out, &plan, &machine)?;
        }
        let mut finished = Vec::new();
        for candidate in &plan.candidates {
            let dir = home.dir_of(candidate, &plan);
            let mut on_row = |row: &Row| -> Result<()> {
                if self.json {
                    json::write_line(&mut out, &JsonRow::of(row))?;
                    out.flush()?;
                }
                Ok(())
            };
            let runner = match home {
                Home::Existing(_) => Runner::open_loaded(&plan, candidate, dir)?,
                _ => Runner::open_new(&plan, candidate, dir)?,
            };
            finished.push(runner.run(&mut on_row)?);
        }
        if !self.json {
            show::results(&mut out, &plan, &finished)?;
        }
        drop(out);
        if let (true, Some(path)) = (self.keep, &self.db) {
            let _ = writeln!(io::stderr(), "kept in {}", path.display());
        }
        Ok(judge(&finished))
    }
}

/// Wrong answers are failures, however fast they were.
fn judge(finished: &[Finished]) -> Exit {
    let mut exit = Exit::Done;
    for row in finished.iter().flat_map(|finished| &finished.rows) {
        if row.wrong_answers > 0 {
            let (wrong, workload, design) = (row.wrong_answers, row.workload, &row.design);
            let _ = writeln!(
                io::stderr(),
                "error: {workload} on {design} gave {wrong} wrong answers; please report it"
            );
            exit = Exit::Failed;
        }
    }
    exit
}

/// Where databases are made.
enum Home {
    /// A directory that goes away in the end.
    Passing(Scratch),
    /// A directory that stays.
    Kept(PathBuf),
    /// A database that was there before; it is used, and never removed.
    Existing(PathBuf),
}

impl Home {
    fn of(dir: Option<&Path>, plan: &Plan, keep: bool) -> Result<Self> {
        let Some(dir) = dir else {
            return Ok(Self::Passing(Scratch::temporary("terrane-bench-")?));
        };
        let is_empty = match std::fs::read_dir(dir) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(usage(format!("cannot use {}: {error}", dir.display()))),
        };
        if is_empty {
            let dir = dir.to_owned();
            return Ok(if keep { Self::Kept(dir) } else { Self::Passing(Scratch::of(dir)) });
        }
        if let Some(load) = plan.workloads.iter().find(|workload| plan::loads(**workload)) {
            return Err(usage(format!(
                "{} is not empty, and {load} starts from an empty database; name another \
                 directory, or workloads that use what is there",
                dir.display()
            )));
        }
        if plan.candidates.len() > 1 || plan.is_design_given {
            let dir = dir.display();
            return Err(usage(format!("{dir} has a design already; leave out --design")));
        }
        Ok(Self::Existing(dir.to_owned()))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Passing(scratch) => scratch.path(),
            Self::Kept(path) | Self::Existing(path) => path,
        }
    }

    /// One design has the directory to itself, several have one each below it.
    fn dir_of(&self, candidate: &Candidate, plan: &Plan) -> PathBuf {
        let path = self.path();
        if plan.candidates.len() > 1 { path.join(&candidate.slug) } else { path.to_owned() }
    }
}
