//! Partitioned merges: Fig. 1, 15 to 18.

use anyhow::Result;
use terrane_sim::{Arrival, SimulationOutcome};

use super::setting::{HEADERS, Setting, p99, partitioned, row};
use crate::document::Document;
use crate::human;
use crate::human::seconds;

/// Sizes of tables, and the authors' greatest rates and p99 latencies, the latter in microseconds
/// (Fig. 18): round-robin, then choose-best.
const TABLES: [&str; 5] = ["8MiB", "64MiB", "512MiB", "4GiB", "32GiB"];
const AUTHORS_RATES: [[f64; 5]; 2] =
    [[4224.0, 4478.0, 4076.0, 4056.0, 4177.0], [3972.0, 4352.0, 4014.0, 4056.0, 4182.0]];
const AUTHORS_P99: [[f64; 5]; 2] = [
    [27_391.0, 35_967.0, 39_023.0, 17_524_671.0, 1_087_373_311.0],
    [66_751.0, 34_207.0, 39_375.0, 15_138_495.0, 1_017_373_311.0],
];

const MOVEMENTS: [(&str, &str); 2] =
    [("round-robin", "round-robin"), ("choose-best", "least-overlap")];

pub(super) fn play(setting: &Setting, document: &mut Document) -> Result<()> {
    production(setting, document)?;
    elastic(setting, document)?;
    sizes(setting, document)
}

/// Fig. 1: RocksDB's tree, as fast as it takes writes.
fn production(setting: &Setting, document: &mut Document) -> Result<()> {
    let design = "1-leveling T=10; granularity=level,file; L0=4; base=256MiB; buffer=64MiB; \
                  buffers=1; table=64MiB; delay=20; stop=36";
    let outcome = setting.under(design, Arrival::Closed)?;
    let length = outcome.seconds / outcome.windows.len().max(1) as f64;
    let skip = (300.0 / 7200.0 * setting.seconds() / length) as usize;
    let (early, late) = outcome.windows.split_at(skip.min(outcome.windows.len()));
    let mean = |windows: &[terrane_sim::SimulationWindow]| {
        windows.iter().map(|window| window.rate).sum::<f64>() / windows.len().max(1) as f64
    };
    let slow = late.iter().filter(|window| window.rate < 0.5 * mean(early)).count();
    document.claim(
        "Fig. 1, S3-50",
        "RocksDB's tree: after some minutes the rate falls again and again, as merges lag behind",
        (
            format!(
                "{} writes/s at first; below half of it for {:.0} % of the time afterwards",
                human::number(mean(early)),
                slow as f64 / late.len().max(1) as f64 * 100.0
            ),
            slow > 0,
        ),
        "",
    );
    document.table(
        "Fig. 1: RocksDB's tree, as fast as it takes writes",
        &HEADERS,
        &[row("RocksDB", &outcome, 0.0)],
    );
    Ok(())
}

/// The first time at which writers were stopped, in seconds.
fn first_stall(outcome: &SimulationOutcome) -> f64 {
    outcome
        .stalls
        .iter()
        .find(|stall| stall.until - stall.from > 1.0)
        .map_or(f64::INFINITY, |stall| stall.from)
}

/// Fig. 15, 16 and 17.
fn elastic(setting: &Setting, document: &mut Document) -> Result<()> {
    let mut rows = Vec::new();
    let mut rates = Vec::new();
    let mut shapes = Vec::new();
    for (name, movement) in MOVEMENTS {
        let design = partitioned("64MiB", movement);
        // Elastic: all runs of level 0 at once, in both phases.
        let testing = setting.under(&design, Arrival::Closed)?;
        let rate = testing.rate_from(setting.warm_up());
        let running = setting.under(&design, Arrival::Constant(0.95 * rate))?;
        let exact = setting.under(&format!("{design}; intake=exact"), Arrival::Closed)?;
        let exact_rate = exact.rate_from(setting.warm_up());
        let sustained = setting.under(&design, Arrival::Constant(0.95 * exact_rate))?;
        rows.push(row(&format!("{name}, elastic, testing"), &testing, setting.warm_up()));
        rows.push(row(&format!("{name}, elastic, running"), &running, 0.0));
        rows.push(row(&format!("{name}, exact, testing"), &exact, setting.warm_up()));
        rows.push(row(&format!("{name}, running at 95 % of it"), &sustained, 0.0));
        rates.push((rate, exact_rate));
        if movement == "round-robin" {
            document.claim(
                "Fig. 15, S3-60",
                "partitioned: the rate that is measured with elastic merges cannot be sustained",
                (
                    format!(
                        "p99 {}; stalls from {} on",
                        seconds(p99(&running)),
                        seconds(first_stall(&running))
                    ),
                    p99(&running) > 1.0,
                ),
                "",
            );
            document.claim(
                "Fig. 17, S3-62",
                "partitioned: 95 % of the rate that is measured with exact merges can be sustained",
                (format!("p99 {}", seconds(p99(&sustained))), p99(&sustained) < 1.0),
                "",
            );
            let level1 = |outcome: &SimulationOutcome| {
                let last = outcome.windows.last();
                last.and_then(|window| window.level_bytes.get(1).copied()).unwrap_or(0)
            };
            shapes.push((level1(&testing), level1(&exact)));
            shape(document, &testing, &exact);
        }
    }
    let (elastic, exact) = rates[0];
    document.claim(
        "Fig. 17, S3-62",
        "partitioned: that rate is about a third lower",
        (
            format!("{} instead of {}", human::number(exact), human::number(elastic)),
            (0.5..0.9).contains(&(exact / elastic)),
        ),
        "",
    );
    let (robin, best) = (rates[0].1, rates[1].1);
    document.claim(
        "§6.1",
        "partitioned: which table moves has little effect under uniform updates",
        (
            format!("{} and {}", human::number(robin), human::number(best)),
            (best / robin - 1.0).abs() < 0.2,
        ),
        "the table with the least overlap is merged with about a third fewer bytes; the paper's merges \
         take tables of a level in turn or by count of overlapping tables, and all have the same size there",
    );
    document.table("Fig. 15, 17: partitioned leveling, tables of 64 MiB", &HEADERS, &rows);
    Ok(())
}

/// Fig. 16: the shape of a tree under elastic and under exact merges.
fn shape(document: &mut Document, elastic: &SimulationOutcome, exact: &SimulationOutcome) {
    // The mean over the second half: how large levels are, not when.
    let mean = |outcome: &SimulationOutcome| {
        let half = &outcome.windows[outcome.windows.len() / 2..];
        let levels = half.iter().map(|window| window.level_bytes.len()).max().unwrap_or(0);
        (0..levels)
            .map(|level| {
                let bytes =
                    half.iter().map(|window| window.level_bytes.get(level).copied().unwrap_or(0));
                bytes.sum::<u64>() / half.len().max(1) as u64
            })
            .collect::<Vec<u64>>()
    };
    let (elastic, exact) = (mean(elastic), mean(exact));
    let waste = |levels: &[u64]| {
        let last = levels.last().copied().unwrap_or(1).max(1);
        levels.iter().rev().skip(1).sum::<u64>() as f64 / last as f64
    };
    document.claim(
        "Fig. 16, S3-70",
        "elastic merges change the shape: upper levels are larger than they should be, and space is wasted",
        (
            format!(
                "level 1 {} instead of {}; levels above the last {:.0} % and {:.0} % of it",
                human::bytes(elastic.get(1).copied().unwrap_or(0)),
                human::bytes(exact.get(1).copied().unwrap_or(0)),
                waste(&elastic) * 100.0,
                waste(&exact) * 100.0
            ),
            elastic.get(1) > exact.get(1) && waste(&elastic) > waste(&exact),
        ),
        "",
    );
    let row = |name: &str, levels: &[u64]| {
        let sizes = (0..5)
            .map(|level| levels.get(level).map_or(String::new(), |bytes| human::bytes(*bytes)));
        std::iter::once(name.to_owned()).chain(sizes).collect::<Vec<_>>()
    };
    let headers = ["", "level 0", "level 1", "level 2", "level 3", "level 4"];
    let rows = [row("elastic", &elastic), row("exact", &exact)];
    document.table("Fig. 16: sizes of levels in the second half, round-robin", &headers, &rows);
}

/// Fig. 18.
fn sizes(setting: &Setting, document: &mut Document) -> Result<()> {
    let mut rows = Vec::new();
    let mut rates: [Vec<f64>; 2] = Default::default();
    let mut latencies: [Vec<f64>; 2] = Default::default();
    for (movement, (name, rule)) in MOVEMENTS.into_iter().enumerate() {
        for (at, table) in TABLES.into_iter().enumerate() {
            // One merge at a time in both phases, as LevelDB has it.
            let design = partitioned(table, rule);
            let testing = setting.under(&format!("{design}; intake=exact"), Arrival::Closed)?;
            let rate = testing.rate_from(setting.warm_up());
            let running = setting.under(&design, Arrival::Constant(0.95 * rate))?;
            let latency = p99(&running);
            rates[movement].push(rate);
            latencies[movement].push(latency);
            rows.push(vec![
                format!("{name}, {table}"),
                human::number(rate),
                human::number(AUTHORS_RATES[movement][at]),
                seconds(latency),
                seconds(AUTHORS_P99[movement][at] / 1e6),
            ]);
        }
    }
    let spread = |rates: &[f64]| {
        rates.iter().copied().fold(0.0, f64::max)
            / rates.iter().copied().fold(f64::INFINITY, f64::min)
    };
    document.claim(
        "Fig. 18a",
        "the size of tables has little effect on the rate",
        (
            format!(
                "the fastest over the slowest is {:.2} with round-robin, {:.2} with choose-best; the authors' {:.2} and {:.2}",
                spread(&rates[0]),
                spread(&rates[1]),
                spread(&AUTHORS_RATES[0]),
                spread(&AUTHORS_RATES[1])
            ),
            spread(&rates[0]) < 1.3 && spread(&rates[1]) < 1.3,
        ),
        "",
    );
    let short = latencies.iter().flat_map(|list| &list[..3]).copied().fold(0.0, f64::max);
    document.claim(
        "Fig. 18b, S3-71",
        "one merge at a time is enough for tables of up to 512 MB",
        (format!("p99 at most {}", seconds(short)), short < 1.0),
        "",
    );
    let long = latencies.iter().map(|list| list[4]).fold(f64::INFINITY, f64::min);
    document.claim(
        "Fig. 18b, S3-71",
        "with tables that are all of a level latencies explode",
        (format!("p99 {} at 32 GB", seconds(long)), long > 10.0 && long > 10.0 * short),
        "",
    );
    let headers = ["tables", "writes/s", "authors", "p99", "authors"];
    document.table("Fig. 18: sizes of tables", &headers, &rows);
    Ok(())
}
