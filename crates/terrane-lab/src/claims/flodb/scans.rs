//! Scans beside writes: Fig. 13, 14, and how often the paper's scans begin again.

use std::path::Path;

use anyhow::Result;
use terrane_policy::MemtableKind;
use terrane_policy::flodb::ScanMode;

use super::Report;
use super::database::{Mix, load, open, run};
use super::setting::{Kind, LIST, Setting, of, scanning};
use crate::claims::report::{Claim, times};
use crate::claims::setting::Mode;

/// Scans of 100 operations; the first is the paper's usual mix.
const SHARES: [u64; 3] = [5, 20, 50];

/// Of a share: thousands of keys and of operations a second, restarts and fallbacks of 1000 scans.
const SHOWN: usize = 4;

/// And what tells why: those that took another's moment, and writes that completed in the Membuffer.
const FIGURES: usize = 6;

pub(super) fn measure(setting: &Setting, dir: &Path, report: &mut Report) -> Result<()> {
    let versioned = |mode| scanning(mode, ScanMode::Versioned);
    let kinds = [
        Kind { name: LIST, kind: MemtableKind::SKIP_LIST },
        Kind { name: "B-link tree", kind: MemtableKind::BTree },
        Kind { name: "restarting, published", kind: scanning(Mode::Published, ScanMode::Restart) },
        Kind { name: "restarting, ours", kind: scanning(Mode::Ours, ScanMode::Restart) },
        Kind { name: "versioned, published", kind: versioned(Mode::Published) },
        Kind { name: "versioned, ours", kind: versioned(Mode::Ours) },
    ];
    let threads = setting.threads_max();
    let best = setting.best(&kinds, |kind| all(setting, dir, kind.kind, threads))?;
    let rows = kinds.iter().zip(&best).flat_map(|(kind, figures)| {
        SHARES.iter().zip(figures.chunks(FIGURES)).map(|(share, figures)| {
            std::iter::once(format!("{}, {share} % scans", kind.name))
                .chain(figures[..SHOWN].iter().map(|figure| format!("{figure:.0}")))
                .collect()
        })
    });
    report.table(
        format!("Fig. 13, 14: scans of 100 keys beside writes, {threads} threads"),
        &[
            "",
            "thousand keys a second",
            "thousand operations a second",
            "restarts of 1000 scans",
            "fallbacks of 1000 scans",
        ],
        rows.collect(),
    );
    claims(&kinds, &best, report);
    Ok(())
}

fn claims(kinds: &[Kind], best: &[[f64; SHARES.len() * FIGURES]], report: &mut Report) {
    for mode in Mode::ALL {
        let figures = |scan: &str| of(kinds, best, &format!("{scan}, {}", mode.name()));
        let list = of(kinds, best, LIST);
        let (restarting, versioned) = (figures("restarting"), figures("versioned"));
        let gain = restarting[0] / list[0];
        report.claim(Claim::new(
            "Fig. 13",
            "5 % scans: the paper's are faster than those of other systems",
            mode,
            (format!("{} the skip-list", times(gain)), gain > 1.0),
            format!(
                "a scan drains what the {} writes since the last one left in the Membuffer, of which \
                 {:.0} % go there; {:.0} % of scans share the moment of another, and drain nothing",
                (100 - SHARES[0]) / SHARES[0],
                restarting[SHOWN + 1],
                restarting[SHOWN] / 10.0
            ),
        ));
        let gain = versioned[0] / list[0];
        report.claim(Claim::new(
            "Fig. 13",
            "the same for scans that neither restart nor stop writers",
            mode,
            (format!("{} the skip-list", times(gain)), gain > 1.0),
            format!(
                "{:.0} % of writes go to the Membuffer, and a scan drains the partition that it \
                 comes to, which a list alone needs not",
                versioned[SHOWN + 1]
            ),
        ));
        let last = (SHARES.len() - 1) * FIGURES;
        let (keys, operations) =
            (restarting[last] / restarting[0], restarting[last + 1] / restarting[1]);
        report.claim(Claim::new(
            "Fig. 14",
            "more scans: fewer operations, more keys",
            mode,
            (
                format!("keys {}, operations {}", times(keys), times(operations)),
                keys > 1.0 && operations < 1.0,
            ),
            format!(
                "{:.0} of 1000 scans restart where they are {} % of operations, and {:.0} where they \
                 are {} %",
                restarting[last + 2],
                SHARES[SHARES.len() - 1],
                restarting[2],
                SHARES[0]
            ),
        ));
        let [.., restarts, fallbacks] = restarting[..SHOWN] else { continue };
        report.claim(Claim::new(
            "§5.2",
            "fallback scans are rare: below 1 of 100",
            mode,
            (
                format!("{restarts:.0} restarts and {fallbacks:.1} fallbacks of 1000"),
                fallbacks < 10.0,
            ),
            "",
        ));
    }
}

fn all(
    setting: &Setting,
    dir: &Path,
    kind: MemtableKind,
    threads: u32,
) -> Result<[f64; SHARES.len() * FIGURES]> {
    let dir = dir.join("flodb");
    let db = open(&dir, kind, setting.buffer_bytes())?;
    load(&db, Mix::default(), setting.keys())?;
    let mut figures = [0.0; SHARES.len() * FIGURES];
    for (figures, scans) in figures.chunks_mut(FIGURES).zip(SHARES) {
        let writes = 100 - scans;
        let mix = Mix { puts: writes / 2, deletes: writes - writes / 2, scans, ..Mix::default() };
        let outcome = run(setting, &db, mix, threads, setting.duration())?;
        figures.copy_from_slice(&[
            outcome.keys,
            outcome.operations,
            outcome.restarts,
            outcome.fallbacks,
            outcome.shared,
            outcome.in_membuffer,
        ]);
    }
    db.close()?;
    std::fs::remove_dir_all(&dir)?;
    Ok(figures)
}
