//! Compaction strategies: what *Constructing and Analyzing the LSM Compaction Design Space* (§5)
//! says, measured on this engine.
//!
//! | module | one line |
//! |---|---|
//! | [`setting`] | sizes, strategies, keys |
//! | [`tree`] | a tree that is loaded and asked; the metrics of §4.2 |
//! | [`defaults`] | the default design beside others |
//! | [`check`] | numbers of several strategies, compared |
//! | [`loading`] | inserts, lookups, ranges, and all together: O1 to O11 |
//! | [`proportions`] | lookups and ranges of trees with the paper's tables and cache: O6 to O9, O13 |
//! | [`shares`] | distributions, updates, deletes: O12 to O18 |
//! | [`warming`] | what jobs put into the cache: O11 |
//! | [`tuning`] | sizes and settings: O19 to O23 |
//! | [`appendix`] | footnotes and appendix: sizes of filters and indexes, pages, caches, bits |

mod appendix;
mod check;
mod defaults;
mod loading;
mod proportions;
mod setting;
mod shares;
mod tree;
mod tuning;
mod warming;

use std::path::Path;

use anyhow::Result;
use terrane_workload::Distribution;

use super::report::Report;
use crate::human;
use crate::progress;
use setting::{Keys, Setting};

/// Measures, and writes the document.
pub(super) fn document(
    scale: f64,
    rounds: usize,
    seed: u64,
    dir: &Path,
    machine: &str,
) -> Result<String> {
    let setting = Setting { scale, rounds, seed };
    let keys = Keys::new(&setting, Distribution::Uniform, setting.entries());
    let mut report = Report::default();
    let dir = dir.join("tree");
    let spinner = progress::spinner("compaction claims");
    spinner.set_message("loading and asking (O1 to O11)");
    let loaded = loading::measure(&setting, &keys, &dir, &mut report)?;
    spinner.set_message("the paper's proportions (O6 to O9, O13)");
    proportions::measure(&setting, &dir, &mut report)?;
    spinner.set_message("what jobs put into the cache (O11)");
    warming::measure(&setting, &keys, &loaded, &dir, &mut report)?;
    spinner.set_message("distributions (O12 to O14)");
    shares::distributions(&setting, &keys, &loaded, &dir, &mut report)?;
    spinner.set_message("updates and deletes (O15 to O18)");
    shares::updates(&setting, &keys, &dir, &mut report)?;
    shares::deletes(&setting, &keys, &dir, &mut report)?;
    spinner.set_message("sizes and settings (O19 to O23)");
    tuning::measure(&setting, &keys, &dir, &mut report)?;
    spinner.set_message("footnotes and appendix");
    appendix::measure(&setting, &keys, &dir, &mut report)?;
    spinner.set_message("the default design");
    defaults::measure(&setting, &dir, &mut report)?;
    spinner.finish_and_clear();
    let held = report.claims.iter().filter(|claim| claim.holds).count();
    Ok(format!(
        "# Compaction strategies\n\n\
         `terrane design list` has the strategies of the paper *Constructing and Analyzing the LSM \
         Compaction\nDesign Space* (VLDB 2021), Table 2, and 1-leveling. This page runs them on \
         this engine, asks of each\nobservation of the paper whether it holds here, and holds the \
         default design against others. It is\nwritten by\n\n\
         ```sh\nterrane bench claims compaction --scale {scale} --rounds {rounds} --output \
         docs/compaction.md\n```\n\n\
         on this machine: {machine}.\n{} entries of 128 bytes with keys of 4, buffers of {}, T=10, \
         10 filter bits a key, pages of 4 KiB,\na cache of at most 1 MiB for all of it, seed {seed}. \
         The paper has 64 times as many entries and buffers\nas large at scale 1, so the levels are \
         the same.\n\n\
         Who writes does the compactions that are due before the next write, under a clock that \
         moves with each\noperation and with files in memory. So all counts are the same in every \
         run, and checks are on counts\nwherever the paper has times that a disk makes: bytes \
         moved. Times of lookups and ranges are medians,\nof the median of the rounds; that half of \
         a compaction is processor time (O4) is not asked, as no disk\nis waited for.\n\n\
         *Read* and *written* are bytes that compactions moved for each byte that was written; \
         written is write\namplification as §4.2 has it, without flushes. SA is the bytes of tables \
         beyond valid entries, for each\nof these. Pages are what a lookup reads, of data, index \
         and filters. Where a claim fails, what follows\n**no** is an explanation. Of {} checks, \
         {held} hold.\n\n{}",
        human::count(setting.entries() as u64),
        human::bytes(setting.buffer_bytes()),
        report.claims.len(),
        report.results(),
    ))
}
