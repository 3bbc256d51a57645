//! `terrane sweep`: many experiments from a plan; an interrupted sweep resumes.
//!
//! The compaction paper rests on more than two thousand experiments (§1), so a sweep must survive
//! interruptions. [`terrane_lab::sweep`] runs the experiments; this module prints.

mod arguments;
mod show;

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use terrane_lab::sweep::{self, SweepExperiment};

pub(crate) use arguments::SweepArgs;
use arguments::SweepCommand;

use crate::exit::{Exit, usage};
use crate::output;
use terrane_lab::output::human;

impl SweepArgs {
    /// Runs the rest of a sweep, or shows its results.
    pub(crate) fn run(&self) -> Result<Exit> {
        if let Some(SweepCommand::Show(args)) = &self.command {
            return args.run();
        }
        let out = self
            .out
            .as_deref()
            .ok_or_else(|| usage("--out DIR is missing; it names the directory of the results"))?;
        let tables = sweep::tables(self.plan.as_deref(), &self.set)?;
        let experiments = sweep::experiments(&tables, self.player())?;
        if self.dry_run {
            return self.list(&experiments, out);
        }
        let wrong = self.options(out).run(&experiments)?;
        if wrong > 0 {
            let _ = writeln!(io::stderr(), "error: {wrong} wrong answers; please report it");
            return Ok(Exit::Failed);
        }
        Ok(Exit::Done)
    }

    fn list(&self, experiments: &[SweepExperiment], out: &Path) -> Result<Exit> {
        let options = self.options(out);
        let done = sweep::read(out)?;
        let due = options.due(experiments, &done);
        if let Some(of_others) = sweep::of_other_programs(&done) {
            let _ = writeln!(io::stderr(), "{of_others}");
        }
        let mut out = output::text();
        for (round, one) in &due {
            writeln!(out, "{} round {round}: {}", one.key(*round), one.name())?;
        }
        writeln!(
            out,
            "{} to run, about {}; {} done",
            human::counted(due.len() as u64, "experiment"),
            human::seconds(options.estimate(&due, &done)),
            experiments.len() * self.rounds as usize - due.len()
        )?;
        Ok(Exit::Done)
    }
}
