//! The claims of papers, measured here.
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
mod sweeps;

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::experiments::{self, ExperimentOptions};
use crate::machine::Machine;
use crate::scratch::Scratch;
use report::Report;
use setting::Setting;

/// A paper whose claims are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paper {
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

/// Sizes and repetitions of a measurement of claims.
#[derive(Debug, Clone)]
pub struct ClaimsOptions {
    /// Sizes, as a share of the paper's.
    pub scale: f64,
    /// Rounds: operations are taken at the best of them, whole runs at their median.
    pub rounds: usize,
    /// Numbers of threads, for [`Paper::Flodb`] and [`Paper::Memtables`].
    pub threads: Vec<u32>,
    /// The seed of all random choices.
    pub seed: u64,
    /// Dent's own program, to run next to ours; for [`Paper::Dent`] only.
    pub beside: Option<PathBuf>,
}

/// Measures the claims of a paper and returns the document, in Markdown.
///
/// # Errors
///
/// If a database or a program fails.
pub fn document(paper: Paper, options: &ClaimsOptions) -> Result<String> {
    let ClaimsOptions { scale, rounds, ref threads, seed, ref beside } = *options;
    if paper == Paper::Dent {
        return dent::document(&dent::Setting { scale, rounds, seed, beside: beside.clone() });
    }
    let scratch = Scratch::temporary("terrane-claims-")?;
    let machine = Machine::here(scratch.path()).to_string();
    match paper {
        Paper::Memtables => memtables(options, &scratch, &machine),
        Paper::Compaction => measured("compaction", options),
        Paper::Stability => measured("stability", options),
        Paper::Flodb | Paper::Dent => {
            let sizes = flodb::Sizes { scale, rounds, seed, threads: threads.clone() };
            flodb::document(sizes, scratch.path(), &machine)
        }
    }
}

/// Simulates the claims on stability at the paper's scale, and returns the document, in Markdown:
/// phases of `hours` of virtual time on trees of `records` records.
///
/// # Errors
///
/// If a design cannot be parsed.
pub fn simulated(hours: f64, records: u64) -> Result<String> {
    let options = ExperimentOptions { phase_hours: hours, records, ..ExperimentOptions::default() };
    let experiment = experiments::find("stability-simulated").context("no such experiment")?;
    experiments::document(&experiment.run(&options)?)
}

/// The document of an experiment whose claims are data.
fn measured(name: &str, options: &ClaimsOptions) -> Result<String> {
    let ClaimsOptions { scale, rounds, ref threads, seed, ref beside } = *options;
    let options = ExperimentOptions {
        scale,
        rounds,
        threads: threads.clone(),
        seed,
        dent_program: beside.clone(),
        ..ExperimentOptions::default()
    };
    let experiment = experiments::find(name).context("the experiment is missing")?;
    experiments::document(&experiment.run(&options)?)
}

fn memtables(options: &ClaimsOptions, scratch: &Scratch, machine: &str) -> Result<String> {
    let setting = Setting::new(options.scale, options.rounds, options.seed);
    let mut report = Report::default();
    let insertion = insertion::measure(&setting, &mut report);
    let lookup = lookup::measure(&setting, &mut report);
    footprint::measure(&setting, &mut report);
    range::measure(&setting, &mut report);
    flushing::measure(&setting, scratch.path(), &mut report)?;
    flush_choices::measure(&setting, scratch.path(), &mut report)?;
    logged::measure(&setting, scratch.path(), &mut report)?;
    nine::measure(&setting, &mut report);
    sweeps::measure(&setting, &options.threads, &mut report);
    let open = phases::measure(&setting, &mut report)?;
    let guide = guide::answers(&setting, &insertion, &lookup, &open);
    Ok(report.document(&setting, machine, &guide))
}
