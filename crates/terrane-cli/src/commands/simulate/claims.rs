//! `terrane simulate claims`: what the paper on stability says, at its scale, in virtual time.
//!
//! Each claim is a check on numbers: what the paper says, what came out, and whether it holds. The
//! result is a document, `docs/stability-simulated.md`.
//!
//! | module | one line |
//! |---|---|
//! | [`setting`] | the paper's machine, records and designs |
//! | [`full`] | full merges: schedulers, constraints, bursts, queries (Fig. 7 to 9, 11 to 14) |
//! | [`ratios`] | their size ratios (Fig. 10) |
//! | [`spring`] | bLSM (Fig. 6) |
//! | [`partitioned`] | partitioned merges (Fig. 1, 15 to 18) |

mod full;
mod partitioned;
mod ratios;
mod setting;
mod spring;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::document::Document;
use super::write_document;
use crate::exit::Exit;
use crate::quantity::{count_in, number_in};
use setting::Setting;

/// Check what "On Performance Stability in LSM-based Storage Systems" (VLDB 2019) says, at its scale
#[derive(Debug, Clone, Args)]
pub(super) struct ClaimsArgs {
    /// How long each phase is, in hours of virtual time; the paper has two
    #[arg(long, value_name = "HOURS", default_value_t = 2.0, value_parser = number_in(0.01..=100.0))]
    hours: f64,

    /// Records that there are; the paper has a hundred million
    #[arg(long, value_name = "N", default_value = "100M", value_parser = count_in::<u64>(100_000..=1_000_000_000_000))]
    records: u64,

    /// Write the document to a file [default: to standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ClaimsArgs {
    /// Plays everything, and writes the document.
    pub(super) fn run(&self) -> Result<Exit> {
        let setting = Setting { hours: self.hours, records: self.records as f64 };
        let mut document = Document::default();
        spring::play(&setting, &mut document)?;
        full::play(&setting, &mut document)?;
        partitioned::play(&setting, &mut document)?;
        let held = document.claims.iter().filter(|claim| claim.holds).count();
        let introduction = format!(
            "{INTRODUCTION}{} million records, {} hours a phase, of which a sixth is left out of the \
             testing phase.\n\n{held} of {} claims hold.\n",
            self.records as f64 / 1e6,
            self.hours,
            document.claims.len()
        );
        write_document(self.output.as_deref(), &document.write(&introduction))?;
        Ok(Exit::Done)
    }
}

const INTRODUCTION: &str = "\
# Stability of writes, simulated

What *On Performance Stability in LSM-based Storage Systems* (Luo and Carey, VLDB 2019) says, checked at its
scale in the [simulator](simulator.md): records of 1 KiB, 100 MB a second for flushes and merges together,
memtables of 128 MiB, two of them, updates of uniform keys unless said otherwise. Written by

```sh
terrane simulate claims --output docs/stability-simulated.md
```

The paper's testing phase has writers that do not wait, the fair scheduler and exact merges; its running phase
has writes that come at 95 % of the rate measured then. Latencies are from when a write came. *Stalled* is
the time for which writers were stopped. *Authors'* numbers are constants in the scripts of their experiments.

Rates here are about a quarter above the authors', throughout (Fig. 10): 100 MB/s are 100 MB of tables here, and
nothing else is scarce. So shapes are compared, and not rates. Trees whose levels move as a whole begin loaded
in random order; partitioned ones begin with all levels full.

";
