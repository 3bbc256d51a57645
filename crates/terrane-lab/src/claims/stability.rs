//! Stability of writes: what *On Performance Stability in LSM-based Storage Systems* says, measured
//! on this engine and on files.
//!
//! Everything is smaller than in the paper by the same factor, the budget of flushes and merges too,
//! and the budget is what is scarce. So many databases can run side by side, each in a phase of its
//! own, without taking from each other, and what else the machine does hardly shows.
//!
//! | module | one line |
//! |---|---|
//! | [`setting`] | sizes, times and designs |
//! | [`trial`] | one phase of one design |
//! | [`stage`] | phases that run at the same time |
//! | [`rows`] | phases in tables |
//! | [`simulated`] | the same in the simulator |
//! | [`full`] | full merges: schedulers, limits, bursts (Fig. 7 to 9, 11, 12) |
//! | [`ratios`] | their size ratios (Fig. 10) |
//! | [`queries`] | queries beside the writers (Fig. 13, 14) |
//! | [`spring`] | bLSM (Fig. 6) |
//! | [`partitioned`] | partitioned merges (Fig. 1, 15 to 18) |
//! | [`indexes`] | secondary indexes, of the extended version |
//! | [`defaults`] | the scheduler and the limit of the default design |

mod defaults;
mod full;
mod indexes;
mod partitioned;
mod queries;
mod ratios;
mod rows;
mod setting;
mod simulated;
mod spring;
mod stage;
mod trial;

use std::path::Path;

use anyhow::Result;

use super::report::Report;
use crate::human;
use crate::progress;
use setting::Setting;
use stage::Stage;

/// Measures, and writes the document.
pub(super) fn document(
    scale: f64,
    rounds: usize,
    seed: u64,
    dir: &Path,
    machine: &str,
) -> Result<String> {
    let setting = Setting { scale, rounds, seed };
    let spinner = progress::spinner("stability claims");
    let mut report = Report::default();

    // The testing phases.
    let mut stage = Stage::new(&setting, dir);
    let spring = spring::testing(&setting, &mut stage);
    let full = full::testing(&setting, &mut stage);
    let ratios = ratios::testing(&setting, &mut stage);
    let partitioned = partitioned::testing(&setting, &mut stage);
    let indexes = indexes::testing(&setting, &mut stage);
    let defaults = defaults::testing(&setting, &mut stage);
    spinner.set_message(format!("testing phases: {} databases", stage.len()));
    let maxima = stage.play()?;
    let mut phases = maxima.len();

    // The running phases, at shares of what the testing phases gave.
    let mut stage = Stage::new(&setting, dir);
    let spring = spring.running(&setting, &mut stage, &maxima);
    let full = full.running(&setting, &mut stage, &maxima);
    let ratios = ratios.running(&setting, &mut stage, &maxima);
    let partitioned = partitioned.running(&setting, &mut stage, &maxima);
    let indexes = indexes.running(&setting, &mut stage, &maxima);
    spinner.set_message(format!("running phases: {} databases", stage.len()));
    let played = stage.play()?;
    phases += played.len();

    // Readers take all processors, so they have a time of their own.
    let mut stage = Stage::new(&setting, dir);
    let queries = full.queries(&setting, &mut stage);
    spinner.set_message(format!("queries: {} databases", stage.len()));
    let answered = stage.play()?;
    phases += answered.len();

    spinner.set_message("the simulator");
    spring.judge(&setting, &maxima, &played, &mut report);
    full.judge(&setting, &maxima, &played, &mut report);
    ratios.judge(&setting, &maxima, &played, &mut report)?;
    queries.judge(&answered, &mut report);
    partitioned.judge(&setting, &maxima, &played, &mut report)?;
    indexes.judge(&setting, &maxima, &played, &mut report);
    phases += defaults.measure(&setting, dir, &maxima, &spinner, &mut report)?;
    spinner.finish_and_clear();
    Ok(write(&setting, machine, phases, &report))
}

fn write(setting: &Setting, machine: &str, phases: usize, report: &Report) -> String {
    let held = report.claims.iter().filter(|claim| claim.holds).count();
    format!(
        "# Stability of writes, measured\n\n\
         What *On Performance Stability in LSM-based Storage Systems* (Luo and Carey, VLDB 2019) says, \
         measured\non this engine and on files: its [two-phase evaluation](stability.md), smaller. \
         Written by\n\n\
         ```sh\nterrane bench claims stability --scale {} --rounds {} --output \
         docs/stability-claims.md\n```\n\n\
         on this machine: {machine}.\n\n\
         | | paper | here |\n|---|---:|---:|\n\
         | flushes and merges together write | 100 MB/s | {}/s |\n\
         | memtable, of two | 128 MiB | {} |\n\
         | records of 1 KiB | 100,000,000 | {} |\n\
         | a phase | 7,200 s | {} s |\n\
         | memtables that the budget can write in a phase | 5,364 | {:.0} |\n\n\
         Everything is smaller, the budget too, and so much smaller that it alone is scarce: so {phases} \
         phases run, many\nside by side, each on a database of its own that was loaded in random order \
         under its own design. A sixth of\na testing phase is left out. Nothing is \
         forced to disk, as the syncs of one database would hold up all others.\nA memtable is written {:.1} \
         times as quickly here as in the paper, so that {} here\nare five seconds there: latencies below \
         that are called short. Rates are compared after the ratio of the\nbudgets. *Stopped* is the \
         time for which the engine held writers up. *Merges* are those out of each level, from\nlevel 0 \
         on. [stability-simulated.md](stability-simulated.md) has the same claims at the paper's size, \
         simulated.\n\n{held} of {} checks hold. What follows **no** is an explanation.\n\n{}",
        setting.scale,
        setting.rounds,
        human::bytes(setting.budget()),
        human::bytes(setting.buffer_bytes()),
        human::count(setting.records()),
        human::number(setting.seconds()),
        setting.seconds() * setting.budget() as f64 / setting.buffer_bytes() as f64,
        setting.quicker(),
        rows::seconds(setting.short()),
        report.claims.len(),
        report.results(),
    )
}
