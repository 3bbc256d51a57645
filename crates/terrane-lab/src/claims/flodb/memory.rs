//! By the size of memory: a burst of writes (Fig. 15), skewed keys (Fig. 16), the ablation (Fig. 17).

use std::convert::Infallible;
use std::path::Path;

use anyhow::Result;

use super::database::{Mix, Outcome, load, open, run};
use super::setting::{Kind, LIST, Setting, ablations, cores, kinds, mib, name, of};
use super::{Report, alone};
use crate::claims::report::{Claim, nanos, times};
use crate::claims::setting::Mode;

pub(super) fn measure(setting: &Setting, dir: &Path, report: &mut Report) -> Result<()> {
    burst(setting, dir, report)?;
    skew(setting, dir, report)?;
    ablation(setting, report);
    Ok(())
}

/// Operations of a run, and what tells why they are not more.
fn figures_of(outcome: &Outcome) -> [f64; 5] {
    let Outcome { operations, background, draining, waited, in_membuffer, .. } = *outcome;
    [operations, background, draining, waited, in_membuffer]
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
    let mut all: BySize<5> = Vec::new();
    let mut rows = Vec::new();
    for bytes in setting.memory_bytes() {
        let best = setting.best(&kinds, |kind| {
            let dir = dir.join("flodb");
            let db = open(&dir, kind.kind, bytes)?;
            let outcome = run(setting, &db, mix, threads, 2 * setting.duration())?;
            db.close()?;
            std::fs::remove_dir_all(&dir)?;
            anyhow::Ok(figures_of(&outcome))
        })?;
        let figures = best.iter().map(|[operations, ..]| format!("{operations:.0}"));
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
            |best: &Vec<[f64; 5]>| of(&kinds, best, name(mode))[0] / of(&kinds, best, LIST)[0];
        let least = all.iter().map(ratio).fold(f64::INFINITY, f64::min);
        report.claim(Claim::new(
            "Fig. 15",
            "a burst of writes: at least 2.3 times the next best, at every size of memory",
            mode,
            (format!("{} at least", times(least)), least >= 2.3),
            all.last().map_or(String::new(), |best| {
                let [_, background, draining, _, in_membuffer] = of(&kinds, best, name(mode));
                format!(
                    "with the most memory {in_membuffer:.0} % of writes complete in the Membuffer; \
                     draining takes {draining:.0} % of a core, flushes and merges {background:.0} %, \
                     beside {threads} writers on {} cores",
                    cores()
                )
            }),
        ));
        let (Some(first), Some(last)) = (all.first(), all.last()) else { continue };
        let growth = of(&kinds, last, name(mode))[0] / of(&kinds, first, name(mode))[0];
        report.claim(Claim::new(
            "Fig. 15",
            "the more memory, the more writes",
            mode,
            (format!("{} from the smallest to the largest", times(growth)), growth > 1.0),
            format!(
                "flushes and merges take {:.0} % of a core with the least memory, and {:.0} % with \
                 the most",
                of(&kinds, first, name(mode))[1],
                of(&kinds, last, name(mode))[1]
            ),
        ));
    }
    Ok(())
}

/// Fig. 16.
fn skew(setting: &Setting, dir: &Path, report: &mut Report) -> Result<()> {
    let (kinds, threads) = (kinds(), setting.threads_max());
    let mix = Mix { puts: 25, deletes: 25, is_skewed: true, ..Mix::default() };
    let mut all: BySize<5> = Vec::new();
    let mut rows = Vec::new();
    for bytes in setting.memory_bytes() {
        let best = setting.best(&kinds, |kind| {
            let dir = dir.join("flodb");
            let db = open(&dir, kind.kind, bytes)?;
            load(&db, mix, setting.keys())?;
            let outcome = run(setting, &db, mix, threads, 2 * setting.duration())?;
            db.close()?;
            std::fs::remove_dir_all(&dir)?;
            anyhow::Ok(figures_of(&outcome))
        })?;
        let figures = best.iter().map(|[operations, ..]| format!("{operations:.0}"));
        rows.push(std::iter::once(mib(bytes) + " MiB").chain(figures).collect());
        all.push(best);
    }
    report.table(
        format!(
            "Fig. 16: 98 % of operations on 2 % of keys that lie together, half lookups, thousand \
             operations a second, {threads} threads"
        ),
        &headers(&kinds),
        rows,
    );
    for mode in Mode::ALL {
        let ratio =
            |best: &Vec<[f64; 5]>| of(&kinds, best, name(mode))[0] / of(&kinds, best, LIST)[0];
        let ratios: Vec<f64> = all.iter().map(ratio).collect();
        let most_of = |figure: usize| {
            all.iter().map(|best| of(&kinds, best, LIST)[figure]).fold(0.0, f64::max)
        };
        let mean = ratios.iter().sum::<f64>() / ratios.len().max(1) as f64;
        report.claim(Claim::new(
            "Fig. 16",
            "skewed: 8 times on average, as nothing is flushed that is overwritten in memory",
            mode,
            (format!("{} on average", times(mean)), mean >= 8.0),
            format!(
                "the skip-list's writers wait for flushes and merges {:.0} % of the time, and those \
                 take {:.0} % of a core, both at the most: flushing less saves no more than that",
                most_of(3),
                most_of(1)
            ),
        ));
        let Some(ratio) = ratios.first() else { continue };
        report.claim(Claim::new(
            "Fig. 16",
            "at the smallest memory under skew it is slower than others",
            mode,
            (times(*ratio), *ratio < 1.0),
            format!(
                "{:.0} % of its writes complete in the Membuffer, though all that are hot lie in one \
                 place: they are few enough for a partition or two",
                all.first().map_or(f64::NAN, |best| of(&kinds, best, name(mode))[4])
            ),
        ));
    }
    Ok(())
}

/// The last of the ablations.
const MULTI: &str = "multi-insert";

/// Fig. 17.
fn ablation(setting: &Setting, report: &mut Report) {
    for mode in Mode::ALL {
        let kinds = ablations(mode);
        let mut all: BySize<2> = Vec::new();
        let mut rows = Vec::new();
        let mut with_fewest = None;
        for threads in &setting.sizes.threads {
            with_fewest = with_fewest.or(all.last().map(|best| of(&kinds, best, MULTI)[1]));
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
        ablation_claims(setting, mode, (&kinds, &all), with_fewest, report);
    }
}

/// What the last number of threads shows; `with_fewest` is the share of writes that complete in the
/// Membuffer with the first.
fn ablation_claims(
    setting: &Setting,
    mode: Mode,
    (kinds, all): (&[Kind], &BySize<2>),
    with_fewest: Option<f64>,
    report: &mut Report,
) {
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return };
    let [none, single, multi] =
        ["no Membuffer", "single inserts", MULTI].map(|name| of(kinds, last, name));
    let (threads, cores) = (setting.threads_max(), cores());
    let nanos_each = |mops: f64| nanos(f64::from(threads) * 1e3 / mops);
    let gain = multi[0] / none[0];
    let why = format!(
        "a write takes a thread {} with one level and {} with two, whose drain is beside: every key \
         is new, and two levels are for keys that are written again",
        nanos_each(none[0]),
        nanos_each(multi[0])
    );
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
        format!(
            "{:.0} % of writes complete in the Membuffer with single inserts, and {:.0} % with multi: \
             only the others are as slow as the drain, which shares {cores} cores with {threads} \
             writers",
            single[1] * 100.0,
            multi[1] * 100.0
        ),
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
        with_fewest.map_or(String::new(), |share| {
            format!(
                "with the fewest threads they are {:.0} %; {threads} and one that drains share \
                 {cores} cores",
                share * 100.0
            )
        }),
    ));
    report.claim(Claim::new(
        "Fig. 17",
        "more than 7 million writes a second without a disk",
        mode,
        (format!("{:.2} million", multi[0]), multi[0] > 7.0),
        format!("the paper has eight writers on twenty cores, this {threads} on {cores}"),
    ));
}
