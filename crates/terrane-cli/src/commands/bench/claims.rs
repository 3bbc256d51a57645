//! `terrane bench claims`: what a paper says, measured here.
//!
//! Each claim is a check on numbers: what the paper says, what came out, and whether it holds. Those of
//! memtables are checked twice, for memtables that work as the paper's program does and for ours. The
//! result is a document.
//!
//! | module | one line |
//! |---|---|
//! | [`report`] | claims, tables, and their text |
//! | [`setting`] | sizes, and the memtables of both programs |
//! | [`footprint`] | memory of N entries (Fig. 3) |
//! | [`insertion`] | inserting (Fig. 1b, §3.4) |
//! | [`lookup`] | lookups between inserts (Fig. 1a, 2b, 4) |
//! | [`range`] | ranges, and mixes of all (Fig. 2a, 5) |
//! | [`dent`] | Dent's tree beside his own program |
//! | [`flushing`] | flushes and compactions (Fig. 6) |
//! | [`flush_choices`] | what flushes do with level 0 (§3.5) |
//! | [`logged`] | with the log and without it (§3.1) |
//! | [`nine`] | the later program's nine buffers, of which [`others`] has those that are not ours |
//! | [`sweeps`] | threads, sizes, common prefixes, selectivities |
//! | [`phases`] | `memtable=auto` on a workload that changes |
//! | [`guide`] | the paper's questions, answered |
//! | [`flodb`] | another paper: two levels in memory |
//! | [`compaction`] | the other paper: compaction strategies |
//! | [`stability`] | another: write stalls and merge schedulers |

mod compaction;
mod dent;
mod flodb;
mod flush_choices;
mod flushing;
mod footprint;
mod guide;
mod insertion;
mod logged;
mod lookup;
mod nine;
mod others;
mod phases;
mod range;
mod report;
mod setting;
mod stability;
mod sweeps;

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::exit::{Exit, usage};
use crate::machine::Machine;
use crate::quantity::{count, count_in, number_in};
use crate::scratch::Scratch;
use report::Report;
use setting::Setting;

/// Which paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Paper {
    /// Anatomy of the LSM Memory Buffer (`DBTest` 2024)
    Memtables,
    /// Constructing and Analyzing the LSM Compaction Design Space (VLDB 2021)
    Compaction,
    /// `FloDB` (`EuroSys` 2017)
    Flodb,
    /// On Performance Stability in LSM-based Storage Systems (VLDB 2019)
    Stability,
    /// Dent's report on his tree (CS 265)
    Dent,
}

/// Measure what a paper says, and tell whether it holds here
#[derive(Debug, Clone, Args)]
pub(super) struct ClaimsArgs {
    /// The paper
    #[arg(value_enum)]
    paper: Paper,

    /// Sizes, as a share of the paper's
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = number_in(0.001..=100.0))]
    scale: f64,

    /// Every operation is taken at its best of so many rounds; whole runs at the median of them
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = count_in::<usize>(1..=1000))]
    rounds: usize,

    /// Numbers of threads, with commas, of flodb and memtables
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2",
          value_parser = count_in::<u32>(1..=1024))]
    threads: Vec<u32>,

    /// Where all choices come from; the same seed makes the same choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count)]
    seed: u64,

    /// Dent's own program, built, to run beside ours
    #[arg(long, value_name = "PROGRAM")]
    beside: Option<PathBuf>,

    /// Write the document to a file [default: to standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ClaimsArgs {
    /// Measures, and writes the document.
    pub(super) fn run(&self) -> Result<Exit> {
        if self.beside.is_some() && self.paper != Paper::Dent {
            return Err(usage("--beside is for the claims of 'dent'"));
        }
        let text = match self.paper {
            Paper::Memtables => self.memtables()?,
            Paper::Flodb => self.flodb()?,
            Paper::Dent => self.dent()?,
            Paper::Compaction => self.compaction()?,
            Paper::Stability => self.stability()?,
        };
        match &self.output {
            Some(path) => std::fs::write(path, text)
                .with_context(|| format!("cannot write {}", path.display()))?,
            None => io::stdout().lock().write_all(text.as_bytes())?,
        }
        Ok(Exit::Done)
    }

    fn dent(&self) -> Result<String> {
        let beside = self.beside.as_deref().map(|path| {
            let found = std::fs::canonicalize(path);
            found.map_err(|error| usage(format!("--beside {}: {error}", path.display())))
        });
        dent::document(&dent::Setting {
            scale: self.scale,
            rounds: self.rounds,
            seed: self.seed,
            beside: beside.transpose()?,
        })
    }

    fn compaction(&self) -> Result<String> {
        let scratch = Scratch::temporary("terrane-claims-")?;
        let machine = Machine::here(scratch.path()).to_string();
        compaction::document(self.scale, self.rounds, self.seed, scratch.path(), &machine)
    }

    fn stability(&self) -> Result<String> {
        let scratch = Scratch::temporary("terrane-claims-")?;
        let machine = Machine::here(scratch.path()).to_string();
        stability::document(self.scale, self.rounds, self.seed, scratch.path(), &machine)
    }

    fn flodb(&self) -> Result<String> {
        let scratch = Scratch::temporary("terrane-claims-")?;
        let machine = Machine::here(scratch.path()).to_string();
        let (scale, rounds, seed) = (self.scale, self.rounds, self.seed);
        let sizes = flodb::Sizes { scale, rounds, seed, threads: self.threads.clone() };
        flodb::document(sizes, scratch.path(), &machine)
    }

    fn memtables(&self) -> Result<String> {
        let scratch = Scratch::temporary("terrane-claims-")?;
        let setting = Setting::new(self.scale, self.rounds, self.seed);
        let mut report = Report::default();
        let insertion = insertion::measure(&setting, &mut report);
        let lookup = lookup::measure(&setting, &mut report);
        footprint::measure(&setting, &mut report);
        range::measure(&setting, &mut report);
        flushing::measure(&setting, scratch.path(), &mut report)?;
        flush_choices::measure(&setting, scratch.path(), &mut report)?;
        logged::measure(&setting, scratch.path(), &mut report)?;
        nine::measure(&setting, &mut report);
        sweeps::measure(&setting, &self.threads, &mut report);
        let open = phases::measure(&setting, &mut report)?;
        let guide = guide::answers(&setting, &insertion, &lookup, &open);
        let machine = Machine::here(scratch.path());
        Ok(report.document(&setting, &machine.to_string(), &guide))
    }
}
