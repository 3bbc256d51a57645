//! `terrane bench`: runs workloads on one or more designs, and compares them.
//!
//! Each design gets a new database; workloads that load start from an empty one, and data that a
//! workload needs and that is not there is loaded before, without a row. After a workload that
//! writes, the database settles: what was written is flushed and every compaction that is due is
//! done, which counts in the amplifications and the counters of the row but not in its rate.
//!
//! | figure | what it is |
//! |---|---|
//! | write amplification | bytes written to tables over bytes that the user wrote, flushes included |
//! | rewrite amplification | bytes written by compactions over bytes that the user wrote: what the compaction paper calls write amplification (§4.2) |
//! | read amplification | data blocks looked into per lookup of a key (§4.2) |
//! | space amplification | (bytes of all tables − live bytes) / live bytes (§4.2) |
//! | data movement | bytes that compactions read, and wrote |
//! | compactions | those that rewrote something, and apart those that only moved tables |
//! | compaction latency | from a compaction's first read to the manifest: mean, percentiles, maximum; the share on a processor, the rest is waiting for storage |
//! | cache misses | of data, index and filter blocks, by level |
//! | tombstones, oldest | in tables, and for how long |
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
//! | [`work`] | what the tree did: the metrics of the compaction paper |
//! | [`compare`] | designs side by side, with bars |
//! | [`row`] | what came out of one workload on one design; its JSON |
//! | [`single`] | one experiment, for `terrane sweep` |
//! | [`show`] | header, table and pictures for people |

mod arguments;
mod claims;
mod compare;
mod contents;
mod memtable;
mod meter;
mod plan;
mod row;
mod runner;
mod show;
pub(in crate::commands) mod single;
mod work;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;

pub(crate) use arguments::BenchArgs;
use arguments::BenchCommand;
use compare::JsonComparison;
use plan::{Candidate, Plan};
use row::{JsonRow, Row};
use runner::{Finished, Runner};

use crate::exit::{Exit, usage};
use crate::interrupt;
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
        let mut on_row = |row: &Row| -> Result<()> {
            if self.json {
                json::write_line(&mut io::stdout().lock(), &JsonRow::of(row))?;
            }
            Ok(())
        };
        let designs = run_all(&plan, &home, &mut on_row)?;
        let is_comparison = plan.candidates.len() > 1;
        if self.json {
            let comparisons = if is_comparison { JsonComparison::of(&designs) } else { Vec::new() };
            comparisons.iter().try_for_each(|one| json::write_line(&mut out, one))?;
            warn_of_refused(&designs);
        } else {
            let shown: Vec<&Finished> = designs.iter().filter_map(|all| all.last()).collect();
            show::results(&mut out, &plan, &shown)?;
            if is_comparison {
                compare::write(&mut out, &designs)?;
            }
            show::trees(&mut out, &plan, &shown)?;
        }
        out.flush()?;
        drop(out);
        if let (true, Some(path)) = (self.keep, &self.db) {
            let _ = writeln!(io::stderr(), "kept in {}", path.display());
        }
        Ok(judge(designs.iter().flatten()))
    }
}

/// Runs every design in turn, as often as the plan says. Answers the repetitions of each.
fn run_all(
    plan: &Plan,
    home: &Home,
    on_row: &mut dyn FnMut(&Row) -> Result<()>,
) -> Result<Vec<Vec<Finished>>> {
    let mut designs: Vec<Vec<Finished>> = plan.candidates.iter().map(|_| Vec::new()).collect();
    for repetition in 1..=plan.repeat {
        for (candidate, repetitions) in plan.candidates.iter().zip(&mut designs) {
            let dir = home.dir_of(candidate, plan);
            let runner = match home {
                Home::Existing(_) => Runner::open_loaded(plan, candidate, dir)?,
                _ => {
                    if repetition > 1 {
                        interrupt::wait_if_ending();
                        interrupt::remove(&dir);
                    }
                    Runner::open_new(plan, candidate, dir)?
                }
            };
            repetitions.push(runner.repetition(repetition).run(on_row)?);
        }
    }
    Ok(designs)
}

/// Standard output is for programs, who may not look at every field.
fn warn_of_refused(designs: &[Vec<Finished>]) {
    for one in designs.iter().filter_map(|repetitions| repetitions.last()) {
        if let Some(note) = show::refused_note(&one.name, one.stats.direct_refused) {
            let _ = writeln!(io::stderr(), "warning: {note}");
        }
    }
}

/// Wrong answers are failures, however fast they were.
fn judge<'a>(finished: impl Iterator<Item = &'a Finished>) -> Exit {
    let mut exit = Exit::Done;
    for row in finished.flat_map(|finished| &finished.rows) {
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
