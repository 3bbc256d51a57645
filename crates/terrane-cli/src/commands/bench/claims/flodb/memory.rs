//! By the size of memory: a burst of writes (Fig. 15), skewed keys (Fig. 16), the ablation (Fig. 17).

use std::convert::Infallible;
use std::path::Path;

use anyhow::Result;

use super::database::{Mix, load, open, run};
use super::setting::{Kind, LIST, Setting, ablations, kinds, mib, name, of};
use super::{Report, alone};
use crate::commands::bench::claims::report::{Claim, times};
use crate::commands::bench::claims::setting::Mode;

pub(super) fn measure(setting: &Setting, dir: &Path, report: &mut Report) -> Result<()> {
    burst(setting, dir, report)?;
    skew(setting, dir, report)?;
    ablation(setting, report);
    Ok(())
}

/// Figures of all kinds for each size of memory.
type BySize<const N: usize> = Vec<Vec<[f64; N]>>;

fn headers(kinds: &[Kind]) -> Vec<&'static str> {
    std::iter::once("memory").chain(kinds.iter().map(|kind| kind.name)).collect()
}

/// Fig. 15.
fn burst(setting: &Setting, dir: &Path, report: &mut Report) -> Result<()> {
    let (kinds, threads) = (kinds(), setting.threads_max());
    let mix = Mix { puts: 50, deletes: 50, ..Mix::default() };
    let mut all: BySize<1> = Vec::new();
    let mut rows = Vec::new();
    for bytes in setting.memory_bytes() {
        let best = setting.best(&kinds, |kind| {
            let dir = dir.join("flodb");
            let db = open(&dir, kind.kind, bytes)?;
            let outcome = run(setting, &db, mix, threads, 2 * setting.duration())?;
            db.close()?;
            std::fs::remove_dir_all(&dir)?;
            anyhow::Ok([outcome.operations])
        })?;
        let figures = best.iter().map(|[operations]| format!("{operations:.0}"));
        rows.push(std::iter::once(mib(bytes) + " MiB").chain(figures).collect());
        all.push(best);
    }
    report.table(
        format!("Fig. 15: a burst of writes, thousand operations a second, {threads} threads"),
        &headers(&kinds),
        rows,
    );
    for mode in Mode::ALL {
        let ratio =
            |best: &Vec<[f64; 1]>| of(&kinds, best, name(mode))[0] / of(&kinds, best, LIST)[0];
        let least = all.iter().map(ratio).fold(f64::INFINITY, f64::min);
        report.claim(Claim::new(
            "Fig. 15",
            "a burst of writes: at least 2.3 times the next best, at every size of memory",
            mode,
            (format!("{} at least", times(least)), least >= 2.3),
            "keys are written ever anew, and each of them has to go to the lower level in the end: \
             with two cores the draining thread takes from the writers what it saves them",
        ));
        let (Some(first), Some(last)) = (all.first(), all.last()) else { continue };
        let growth = of(&kinds, last, name(mode))[0] / of(&kinds, first, name(mode))[0];
        report.claim(Claim::new(
            "Fig. 15",
            "the more memory, the more writes",
            mode,
            (format!("{} from the smallest to the largest", times(growth)), growth > 1.0),
            "",
        ));
    }
    Ok(())
}

/// Fig. 16.
fn skew(setting: &Setting, dir: &Path, report: &mut Report) -> Result<()> {
    let (kinds, threads) = (kinds(), setting.threads_max());
    let mix = Mix { puts: 25, deletes: 25, is_skewed: true, ..Mix::default() };
    let mut all: BySize<1> = Vec::new();
    let mut rows = Vec::new();
    for bytes in setting.memory_bytes() {
        let best = setting.best(&kinds, |kind| {
            let dir = dir.join("flodb");
            let db = open(&dir, kind.kind, bytes)?;
            load(&db, setting.keys())?;
            let outcome = run(setting, &db, mix, threads, 2 * setting.duration())?;
            db.close()?;
            std::fs::remove_dir_all(&dir)?;
            anyhow::Ok([outcome.operations])
        })?;
        let figures = best.iter().map(|[operations]| format!("{operations:.0}"));
        rows.push(std::iter::once(mib(bytes) + " MiB").chain(figures).collect());
        all.push(best);
    }
    report.table(
        format!(
            "Fig. 16: 98 % of operations on 2 % of keys, half lookups, thousand operations a \
             second, {threads} threads"
        ),
        &headers(&kinds),
        rows,
    );
    for mode in Mode::ALL {
        let ratio =
            |best: &Vec<[f64; 1]>| of(&kinds, best, name(mode))[0] / of(&kinds, best, LIST)[0];
        let ratios: Vec<f64> = all.iter().map(ratio).collect();
        let mean = ratios.iter().sum::<f64>() / ratios.len().max(1) as f64;
        report.claim(Claim::new(
            "Fig. 16",
            "skewed: 8 times on average, as nothing is flushed that is overwritten in memory",
            mode,
            (format!("{} on average", times(mean)), mean >= 8.0),
            "the others' flushes are not what holds them back here: the disk takes them beside",
        ));
        let Some(ratio) = ratios.first() else { continue };
        report.claim(Claim::new(
            "Fig. 16",
            "at the smallest memory under skew it is slower than others",
            mode,
            (times(*ratio), *ratio < 1.0),
            "the partitions are parted by where keys lie, not by their first bits, so that hot ones \
             do not share one",
        ));
    }
    Ok(())
}

/// Fig. 17.
fn ablation(setting: &Setting, report: &mut Report) {
    for mode in Mode::ALL {
        let kinds = ablations(mode);
        let mut all: BySize<2> = Vec::new();
        let mut rows = Vec::new();
        for threads in &setting.sizes.threads {
            all.clear();
            for bytes in setting.memory_bytes() {
                let best = setting
                    .best(&kinds, |kind| {
                        Ok::<_, Infallible>(alone::write(setting, kind.kind, bytes, *threads))
                    })
                    .unwrap_or_default();
                let figures =
                    best.iter().map(|[mops, share]| format!("{mops:.2}, {:.0} %", share * 100.0));
                let name = format!("{} MiB, {threads} threads", mib(bytes));
                rows.push(std::iter::once(name).chain(figures).collect());
                all.push(best);
            }
        }
        report.table(
            format!(
                "Fig. 17: memory alone, ever new keys, million writes a second and those that \
                 completed in the Membuffer, {}",
                mode.name()
            ),
            &headers(&kinds),
            rows,
        );
        ablation_claims(mode, &kinds, &all, report);
    }
}

fn ablation_claims(mode: Mode, kinds: &[Kind], all: &BySize<2>, report: &mut Report) {
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return };
    let [none, single, multi] =
        ["no Membuffer", "single inserts", "multi-insert"].map(|name| of(kinds, last, name));
    let gain = multi[0] / none[0];
    let why = "the lower level alone takes new keys as fast as a hash table and a drain do: two \
               levels are for keys that are written again";
    report.claim(Claim::new(
        "Fig. 17",
        "two levels are 3.1 times as fast as one",
        mode,
        (times(gain), gain >= 3.1),
        why,
    ));
    let gain = multi[0] / single[0];
    report.claim(Claim::new(
        "Fig. 17",
        "multi-insert drains are twice as fast as single inserts",
        mode,
        (times(gain), gain >= 2.0),
        "the writer waits for its own misses of the cache more than for the drain",
    ));
    let fall = of(kinds, first, "no Membuffer")[0] / none[0];
    report.claim(Claim::new(
        "Fig. 17",
        "one level is the slower the more memory it has",
        mode,
        (format!("{} with the least", times(fall)), fall > 1.0),
        "",
    ));
    report.claim(Claim::new(
        "Fig. 17",
        "nearly all writes complete in the Membuffer",
        mode,
        (format!("{:.0} %", multi[1] * 100.0), multi[1] > 0.85),
        "",
    ));
    report.claim(Claim::new(
        "Fig. 17",
        "more than 7 million writes a second without a disk",
        mode,
        (format!("{:.2} million", multi[0]), multi[0] > 7.0),
        "that was with eight writers and more",
    ));
}
