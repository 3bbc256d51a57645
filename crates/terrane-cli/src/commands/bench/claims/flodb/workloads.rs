//! Operations by the number of threads, on a tree: Fig. 9 to 12.

use std::path::Path;

use anyhow::Result;

use super::database::{Mix, load, open, run};
use super::setting::{LIST, Setting, kinds, name, of};
use super::{Report, setting};
use crate::commands::bench::claims::report::{Claim, times};
use crate::commands::bench::claims::setting::Mode;

/// Half inserts, half deletes (§5.2).
const WRITES: Mix = Mix { puts: 50, deletes: 50, scans: 0, is_skewed: false, one_writer: false };

const MIXES: [(&str, Mix); 3] = [
    ("Fig. 10: lookups", Mix { puts: 0, deletes: 0, ..WRITES }),
    ("Fig. 11: half lookups", Mix { puts: 25, deletes: 25, ..WRITES }),
    ("Fig. 12: one writer, the others read", Mix { one_writer: true, ..WRITES }),
];

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
                    .chain(best.iter().map(|figures| format!("{:.0}", figures[at])))
                    .collect(),
            );
        }
        most = best;
    }
    let headers: Vec<&str> =
        std::iter::once("").chain(kinds.iter().map(|kind| kind.name)).collect();
    report.table("Fig. 9 to 12: thousand operations a second, on a tree", &headers, rows);
    for mode in Mode::ALL {
        let ratio = |at: usize| of(&kinds, &most, name(mode))[at] / of(&kinds, &most, LIST)[at];
        let writes = ratio(0);
        report.claim(Claim::new(
            "Fig. 9",
            "writes: 1.9 to 3.5 times the next best system",
            mode,
            (format!("{} the skip-list", times(writes)), writes >= 1.9),
            "flushes and merges share the cores with the writers, and take what memory gains",
        ));
        let lookups = ratio(1);
        report.claim(Claim::new(
            "Fig. 10",
            "lookups of data on the disk are no slower",
            mode,
            (times(lookups), lookups >= 0.9),
            "",
        ));
        let mixed = ratio(2);
        report.claim(Claim::new(
            "Fig. 11",
            "half lookups: faster than all others",
            mode,
            (times(mixed), mixed > 1.0),
            "lookups of keys that are in tables cost the same for all, and are most of the time",
        ));
        let one = ratio(3);
        report.claim(Claim::new(
            "Fig. 12",
            "one writer: faster than all others",
            mode,
            (times(one), one > 1.0),
            "as above",
        ));
    }
    Ok(())
}

/// Thousands a second of all mixes, writes to an empty tree first.
fn all(
    setting: &Setting,
    dir: &Path,
    kind: &setting::Kind,
    threads: u32,
) -> Result<[f64; 1 + MIXES.len()]> {
    let dir = dir.join("flodb");
    let mut figures = [0.0; 1 + MIXES.len()];
    let db = open(&dir, kind.kind, setting.buffer_bytes())?;
    figures[0] = run(setting, &db, WRITES, threads, setting.duration())?.operations;
    db.close()?;
    std::fs::remove_dir_all(&dir)?;
    let db = open(&dir, kind.kind, setting.buffer_bytes())?;
    load(&db, setting.keys())?;
    for (figure, (_, mix)) in figures.iter_mut().skip(1).zip(MIXES) {
        *figure = run(setting, &db, mix, threads, setting.duration())?.operations;
    }
    db.close()?;
    std::fs::remove_dir_all(&dir)?;
    Ok(figures)
}
