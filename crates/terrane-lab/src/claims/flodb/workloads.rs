//! Operations by the number of threads, on a tree: Fig. 9 to 12.

use std::path::Path;

use anyhow::Result;

use super::database::{Mix, Outcome, load, open, run};
use super::setting::{LIST, Setting, cores, kinds, name, of};
use super::{Report, setting};
use crate::claims::report::{Claim, times};
use crate::claims::setting::Mode;

/// Half inserts, half deletes (§5.2).
const WRITES: Mix = Mix { puts: 50, deletes: 50, scans: 0, is_skewed: false, one_writer: false };

const MIXES: [(&str, Mix); 3] = [
    ("Fig. 10: lookups", Mix { puts: 0, deletes: 0, ..WRITES }),
    ("Fig. 11: half lookups", Mix { puts: 25, deletes: 25, ..WRITES }),
    ("Fig. 12: one writer, the others read", Mix { one_writer: true, ..WRITES }),
];

/// Of each: thousands of operations a second, the share of flushes and merges, and that of writes
/// that completed in the Membuffer.
const FIGURES: usize = 3;

/// Of all mixes, writes to an empty tree first.
type Measured = [f64; (1 + MIXES.len()) * FIGURES];

pub(super) fn measure(setting: &Setting, dir: &Path, report: &mut Report) -> Result<()> {
    let kinds = kinds();
    let mut rows = Vec::new();
    let mut most = Vec::new();
    for threads in &setting.sizes.threads {
        let best = setting.best(&kinds, |kind| all(setting, dir, kind, *threads))?;
        let titles = std::iter::once("Fig. 9: writes to an empty tree")
            .chain(MIXES.iter().map(|(title, _)| *title));
        for (at, title) in titles.enumerate() {
            rows.push(
                std::iter::once(format!("{title}, {threads} threads"))
                    .chain(best.iter().map(|figures| format!("{:.0}", figures[at * FIGURES])))
                    .collect(),
            );
        }
        most = best;
    }
    let headers: Vec<&str> =
        std::iter::once("").chain(kinds.iter().map(|kind| kind.name)).collect();
    report.table("Fig. 9 to 12: thousand operations a second, on a tree", &headers, rows);
    claims(setting, &kinds, &most, report);
    Ok(())
}

/// What the largest number of threads shows.
fn claims(setting: &Setting, kinds: &[setting::Kind], most: &[Measured], report: &mut Report) {
    for mode in Mode::ALL {
        let own = of(kinds, most, name(mode));
        let ratio = |at: usize| own[at * FIGURES] / of(kinds, most, LIST)[at * FIGURES];
        let beside = |at: usize| {
            let [_, background, in_membuffer] = [0, 1, 2].map(|figure| own[at * FIGURES + figure]);
            format!(
                "flushes and merges take {background:.0} % of a core, and {in_membuffer:.0} % of \
                 writes complete in the Membuffer, with {} threads on {} cores",
                setting.threads_max(),
                cores()
            )
        };
        let writes = ratio(0);
        report.claim(Claim::new(
            "Fig. 9",
            "writes: 1.9 to 3.5 times the next best system",
            mode,
            (format!("{} the skip-list", times(writes)), writes >= 1.9),
            beside(0),
        ));
        let lookups = ratio(1);
        report.claim(Claim::new(
            "Fig. 10",
            "lookups of data on the disk are no slower",
            mode,
            (times(lookups), lookups >= 0.9),
            format!(
                "no memtable holds what is looked up; the B-link tree is at {} of the skip-list too",
                times(of(kinds, most, "B-link tree")[FIGURES] / of(kinds, most, LIST)[FIGURES])
            ),
        ));
        let mixed = ratio(2);
        report.claim(Claim::new(
            "Fig. 11",
            "half lookups: faster than all others",
            mode,
            (times(mixed), mixed > 1.0),
            format!(
                "at the rates of Fig. 9 and 10 its writes would take {:.0} % of this time, and its \
                 lookups {:.0} %; {}",
                own[2 * FIGURES] * 50.0 / own[0],
                own[2 * FIGURES] * 50.0 / own[FIGURES],
                beside(2)
            ),
        ));
        let one = ratio(3);
        report.claim(Claim::new(
            "Fig. 12",
            "one writer: faster than all others",
            mode,
            (times(one), one > 1.0),
            beside(3),
        ));
    }
}

/// Thousands a second of all mixes, writes to an empty tree first.
fn all(setting: &Setting, dir: &Path, kind: &setting::Kind, threads: u32) -> Result<Measured> {
    let dir = dir.join("flodb");
    let mut figures = [0.0; (1 + MIXES.len()) * FIGURES];
    let mut take = |at: usize, outcome: Outcome| {
        let found = [outcome.operations, outcome.background, outcome.in_membuffer];
        figures[at * FIGURES..][..FIGURES].copy_from_slice(&found);
    };
    let db = open(&dir, kind.kind, setting.buffer_bytes())?;
    take(0, run(setting, &db, WRITES, threads, setting.duration())?);
    db.close()?;
    std::fs::remove_dir_all(&dir)?;
    let db = open(&dir, kind.kind, setting.buffer_bytes())?;
    load(&db, WRITES, setting.keys())?;
    for (at, (_, mix)) in MIXES.into_iter().enumerate() {
        take(at + 1, run(setting, &db, mix, threads, setting.duration())?);
    }
    db.close()?;
    std::fs::remove_dir_all(&dir)?;
    Ok(figures)
}
