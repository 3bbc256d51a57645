//! What the paper on stability says, at its scale, in virtual time.
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

use anyhow::Result;

use crate::document::Document;
use setting::Setting;

/// Plays everything and returns the document, in Markdown: phases of `hours` of virtual time on
/// trees of `records` records.
///
/// # Errors
///
/// If a design cannot be parsed.
pub fn document(hours: f64, records: u64) -> Result<String> {
    let setting = Setting { hours, records: records as f64 };
    let mut document = Document::default();
    spring::play(&setting, &mut document)?;
    full::play(&setting, &mut document)?;
    partitioned::play(&setting, &mut document)?;
    let held = document.claims.iter().filter(|claim| claim.holds).count();
    let introduction = format!(
        "{INTRODUCTION}{} million records, {} hours a phase, of which a sixth is left out of the \
         testing phase.\n\n{held} of {} claims hold.\n",
        records as f64 / 1e6,
        hours,
        document.claims.len()
    );
    Ok(document.write(&introduction))
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
