//! Full merges: Fig. 7 to 14.

use anyhow::Result;
use terrane_sim::{Arrival, SimulationOutcome, TwoPhases};

use super::ratios;
use super::setting::{HEADERS, LONG, SHORT, Setting, leveling, p99, row, tiering};
use crate::document::Document;
use crate::human;
use crate::human::seconds;

const SCHEDULERS: [&str; 3] = ["single", "fair", "greedy"];
/// A filter passes one key of a hundred that is not there (§3.1).
const FALSE_POSITIVES: f64 = 0.01;

pub(super) fn play(setting: &Setting, document: &mut Document) -> Result<()> {
    let mut phases = Vec::new();
    for (name, design) in [("tiering", tiering(3)), ("leveling", leveling(10))] {
        testing(setting, document, name, &design)?;
        phases.push(running(setting, document, name, &design)?);
    }
    queries(document, &phases);
    ratios::play(setting, document)?;
    constraints(setting, document)?;
    bursts(setting, document)
}

/// Fig. 7: each scheduler as fast as it takes writes.
fn testing(setting: &Setting, document: &mut Document, name: &str, design: &str) -> Result<()> {
    let mut outcomes = Vec::new();
    for scheduler in SCHEDULERS {
        let design = format!("{design}; scheduler={scheduler}");
        outcomes.push(setting.under(&design, Arrival::Closed)?);
    }
    let rows: Vec<_> = SCHEDULERS
        .iter()
        .zip(&outcomes)
        .map(|(scheduler, outcome)| row(scheduler, outcome, setting.warm_up()))
        .collect();
    let [single, fair, greedy] = &outcomes[..] else { return Ok(()) };
    let (source, says) = if name == "tiering" {
        ("Fig. 7a, S3-52", "tiering: one merge at a time pauses for far longer than fair does")
    } else {
        ("Fig. 7b, S3-52", "leveling: one merge at a time pauses for far longer than fair does")
    };
    let pauses = (single.longest_stall(), fair.longest_stall());
    document.claim(
        source,
        says,
        (format!("{} and {}", seconds(pauses.0), seconds(pauses.1)), pauses.0 > 2.0 * pauses.1),
        "",
    );
    let rate = |outcome: &SimulationOutcome| outcome.rate_from(setting.warm_up());
    let rates = [rate(single), rate(fair), rate(greedy)];
    let spread = rates.iter().copied().fold(0.0, f64::max)
        / rates.iter().copied().fold(f64::INFINITY, f64::min);
    let (same, more) = if name == "tiering" {
        (
            "tiering: the scheduler hardly changes the greatest rate",
            "tiering: greedy shows a higher rate than fair, as large merges starve",
        )
    } else {
        (
            "leveling: the scheduler hardly changes the greatest rate",
            "leveling: greedy shows a higher rate than fair, as large merges starve",
        )
    };
    let told = rates.map(human::number).join(", ");
    document.claim("§5.2.2, S3-65", same, (format!("{told} writes/s"), spread < 1.25), "");
    document.claim(
        "§5.2.2, S3-65",
        more,
        (
            format!("{} and {}", human::number(rates[2]), human::number(rates[1])),
            rates[2] > 1.01 * rates[1],
        ),
        "both make as many writes in the end: what greedy gains by starving the largest merge it loses \
         in one long pause for it, which the paper has as well",
    );
    document.table(&format!("Fig. 7: testing phase, {name}"), &HEADERS, &rows);
    Ok(())
}

/// Fig. 8 and 9.
fn running(
    setting: &Setting,
    document: &mut Document,
    name: &str,
    design: &str,
) -> Result<Vec<TwoPhases>> {
    let mut all = Vec::new();
    for scheduler in SCHEDULERS {
        all.push(setting.phases(&format!("{design}; scheduler={scheduler}"))?);
    }
    let rows: Vec<_> =
        SCHEDULERS.iter().zip(&all).map(|(name, phases)| row(name, &phases.running, 0.0)).collect();
    let [single, fair, greedy] = [0, 1, 2].map(|at| &all[at].running);
    if name == "tiering" {
        stable_tiering(document, [single, fair, greedy]);
    } else {
        stable_leveling(document, [single, fair, greedy]);
    }
    if name == "leveling" {
        six_runs(setting, document, design)?;
    }
    let source = if name == "tiering" { "Fig. 8b" } else { "Fig. 9b" };
    document.claim(
        source,
        if name == "tiering" {
            "tiering: greedy has the fewest runs"
        } else {
            "leveling: greedy has the fewest runs"
        },
        (
            format!(
                "{:.1} on average, fair {:.1}, single {:.1}",
                greedy.mean_runs(),
                fair.mean_runs(),
                single.mean_runs()
            ),
            greedy.mean_runs() < fair.mean_runs() && greedy.mean_runs() < single.mean_runs(),
        ),
        "",
    );
    document.table(
        &format!("Fig. {}: running phase at 95 %, {name}", if name == "tiering" { 8 } else { 9 }),
        &HEADERS,
        &rows,
    );
    Ok(all)
}

/// The p99 latencies of some phases.
fn told(outcomes: &[&SimulationOutcome]) -> String {
    let p99s = outcomes.iter().map(|outcome| seconds(p99(outcome)));
    format!("p99 {}", p99s.collect::<Vec<_>>().join(", "))
}

/// What Fig. 8 says.
fn stable_tiering(document: &mut Document, [single, fair, greedy]: [&SimulationOutcome; 3]) {
    document.claim(
        "Fig. 8, S3-66",
        "tiering at 95 %: fair and greedy are stable",
        (told(&[fair, greedy]), p99(fair) < SHORT && p99(greedy) < SHORT),
        "",
    );
    document.claim(
        "Fig. 8, S3-66",
        "tiering at 95 %: one merge at a time stalls",
        (told(&[single]), p99(single) > LONG),
        "",
    );
    document.claim(
        "Fig. 8b",
        "tiering: the runs never reach their limit under fair and greedy",
        (
            format!("{} and {} at most", fair.totals.most_runs, greedy.totals.most_runs),
            fair.stalls.is_empty() && greedy.stalls.is_empty(),
        ),
        "",
    );
}

/// What Fig. 9 says.
fn stable_leveling(document: &mut Document, [single, fair, greedy]: [&SimulationOutcome; 3]) {
    document.claim(
        "Fig. 9, S3-66",
        "leveling at 95 %: one merge at a time stalls",
        (told(&[single]), p99(single) > LONG),
        "",
    );
    document.claim(
        "Fig. 9, S3-66",
        "leveling at 95 %: greedy is stable",
        (told(&[greedy]), p99(greedy) < SHORT),
        "",
    );
    document.claim(
        "Fig. 9, S3-66",
        "leveling at 95 %: fair is not; its latencies are far above those of greedy",
        (
            format!(
                "p99.9 {} and {}, stalled {} and {}",
                seconds(fair.latencies.quantile(0.999)),
                seconds(greedy.latencies.quantile(0.999)),
                seconds(fair.stalled_seconds(None)),
                seconds(greedy.stalled_seconds(None)),
            ),
            fair.latencies.quantile(0.999) > 10.0 * greedy.latencies.quantile(0.999),
        ),
        "writers that are to stop go on until their memtable is full, and with the limit as wide as it is \
         here merges have caught up by then; see the claim with six runs",
    );
}

/// The paper's limit of twice the number of levels, flushed runs not counted as one (§5.1.1).
fn six_runs(setting: &Setting, document: &mut Document, design: &str) -> Result<()> {
    let with = |scheduler| format!("{design}; limit=global(6); scheduler={scheduler}");
    let (fair, greedy) = (setting.phases(&with("fair"))?, setting.phases(&with("greedy"))?);
    let latencies = (p99(&fair.running), p99(&greedy.running));
    document.claim(
        "Fig. 9, S3-66",
        "leveling at 95 % with six runs at most, as in the paper: only greedy is stable",
        (
            format!("p99 {} and {}", seconds(latencies.0), seconds(latencies.1)),
            latencies.0 > SHORT && latencies.1 < SHORT,
        ),
        "",
    );
    document.table(
        "Fig. 9: the same with six runs at most",
        &HEADERS,
        &[row("fair", &fair.running, 0.0), row("greedy", &greedy.running, 0.0)],
    );
    Ok(())
}

/// What queries cost by what trees look like on average: reads of a point lookup and of the start of
/// a scan, and bytes of a long scan.
fn query_costs(outcome: &SimulationOutcome) -> [f64; 3] {
    let runs = outcome.mean_runs();
    let bytes: u64 = outcome.windows.iter().flat_map(|window| &window.level_bytes).sum();
    [1.0 + FALSE_POSITIVES * (runs - 1.0), runs, bytes as f64 / outcome.windows.len().max(1) as f64]
}

/// Fig. 13 and 14: query throughput by what queries read.
fn queries(document: &mut Document, phases: &[Vec<TwoPhases>]) {
    let gains: Vec<[f64; 3]> = phases
        .iter()
        .map(|all| {
            let (fair, greedy) = (query_costs(&all[1].running), query_costs(&all[2].running));
            [0, 1, 2].map(|kind| fair[kind] / greedy[kind])
        })
        .collect();
    let rows: Vec<_> = ["tiering", "leveling"]
        .iter()
        .zip(&gains)
        .map(|(name, gains)| {
            let cells = gains.iter().map(|gain| format!("{gain:.3}×"));
            std::iter::once((*name).to_owned()).chain(cells).collect()
        })
        .collect();
    let told = |kind: usize| format!("{:.2}× and {:.2}×", gains[0][kind], gains[1][kind]);
    document.claim(
        "Fig. 13, 14, S3-69",
        "greedy makes queries faster than fair, with tiering and with leveling",
        (told(1), gains[0][1] > 1.0 && gains[1][1] > 1.0),
        "",
    );
    document.claim(
        "Fig. 13, 14, S3-69",
        "more with tiering than with leveling",
        (told(1), gains[0][1] > gains[1][1]),
        "",
    );
    document.claim(
        "Fig. 13, 14, S3-69",
        "more for short scans than for long ones",
        (format!("tiering {:.2}× and {:.2}×", gains[0][1], gains[0][2]), gains[0][1] > gains[0][2]),
        "",
    );
    document.table(
        "Fig. 13, 14: queries under greedy, times as many as under fair, by what they read",
        &["", "point", "short scan", "long scan"],
        &rows,
    );
}

/// Fig. 11: the same arrivals, with runs limited level by level or in all.
fn constraints(setting: &Setting, document: &mut Document) -> Result<()> {
    let mut rows = Vec::new();
    let mut all = Vec::new();
    for (name, design) in [("tiering", tiering(3)), ("leveling", leveling(10))] {
        for scheduler in ["fair", "greedy"] {
            let design = format!("{design}; scheduler={scheduler}");
            let phases = setting.phases(&design)?;
            let local = format!("{design}; limit=local(2x)");
            let local = setting.under(&local, Arrival::Constant(phases.arrival_rate))?;
            let global = phases.running;
            let late = |outcome: &SimulationOutcome| outcome.latencies.quantile(0.999);
            rows.push(vec![
                format!("{name}, {scheduler}"),
                seconds(late(&global)),
                seconds(late(&local)),
                seconds(global.stalled_seconds(None)),
                seconds(local.stalled_seconds(None)),
            ]);
            all.push((late(&global), late(&local)));
        }
    }
    let [tier_fair, tier_greedy, level_fair, level_greedy] = [0, 1, 2, 3].map(|at| all[at]);
    let told = |pair: (f64, f64)| format!("{} and {}", seconds(pair.0), seconds(pair.1));
    document.claim(
        "Fig. 11, S3-67",
        "leveling: a global limit has far shorter latencies than a local one",
        (
            format!("p99.9 fair {}, greedy {}", told(level_fair), told(level_greedy)),
            level_fair.1 > level_fair.0 && level_greedy.1 > 10.0 * level_greedy.0,
        ),
        "it holds for fair; greedy is held up by neither, as writers go on until their memtable is full",
    );
    document.claim(
        "Fig. 11, S3-67",
        "tiering: which limit there is has little effect",
        (
            format!("p99.9 fair {}, greedy {}", told(tier_fair), told(tier_greedy)),
            (tier_fair.1 - tier_fair.0).abs() < SHORT
                && (tier_greedy.1 - tier_greedy.0).abs() < SHORT,
        ),
        "",
    );
    document.claim(
        "Fig. 11, S3-67",
        "a local limit hurts greedy more than fair",
        (
            format!("leveling, p99.9 {} and {}", seconds(level_greedy.1), seconds(level_fair.1)),
            level_greedy.1 - level_greedy.0 > level_fair.1 - level_fair.0,
        ),
        "greedy is stopped for less time than fair here: what comes into a level while its run is on the \
         way out becomes its next run, so that a small merge seldom has to wait for the level below",
    );
    let headers = ["", "p99.9 global", "p99.9 local", "stalled global", "stalled local"];
    document.table("Fig. 11: limits of all runs and of each level's", &headers, &rows);
    Ok(())
}

/// Fig. 12.
fn bursts(setting: &Setting, document: &mut Document) -> Result<()> {
    // Rates here are above the paper's, so the burst is as far above what can be had.
    let design = format!("{}; scheduler=greedy", leveling(10));
    let greatest = setting.phases(&design)?.greatest_rate;
    let authors = ratios::AUTHORS_LEVELING[4] / 0.95;
    let rate = |theirs: f64| theirs / authors * greatest;
    let scale = setting.seconds() / 7200.0;
    let arrival = Arrival::Burst {
        low: rate(2000.0),
        low_seconds: 1500.0 * scale,
        high: rate(8000.0),
        high_seconds: 300.0 * scale,
    };
    let free = setting.under(&design, arrival)?;
    let most = rate(4000.0) as u32;
    let limited = setting.under(&format!("{design}; max-rate={most}"), arrival)?;
    let rows = [row("no limit", &free, 0.0), row(&format!("limit {most}"), &limited, 0.0)];
    let stalled = (free.stalled_seconds(None), limited.stalled_seconds(None));
    document.claim(
        "Fig. 12a, S3-68",
        "bursts: writers that may go as fast as they can are stopped at times, limited ones are not",
        (
            format!("stalled {} and {}", seconds(stalled.0), seconds(stalled.1)),
            stalled.0 > 0.0 && stalled.1 < 0.1 * stalled.0,
        ),
        "",
    );
    let latencies = (p99(&free), p99(&limited));
    document.claim(
        "Fig. 12b, S3-68",
        "bursts: yet their latencies are shorter",
        (
            format!("p99 {} and {}", seconds(latencies.0), seconds(latencies.1)),
            latencies.0 < latencies.1,
        ),
        "",
    );
    document.table("Fig. 12: bursts under leveling and greedy", &HEADERS, &rows);
    Ok(())
}
