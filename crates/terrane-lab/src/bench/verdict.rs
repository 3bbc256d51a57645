//! The verdict of a comparison: at most three lines that say which design is better at what.
//!
//! Speeds are compared by workload, the bytes written and the space by the workload that wrote the
//! most. Differences that another repetition might undo are left out.

use super::compare::{BenchComparison, Better, ComparedMetric};
use crate::output::human;

/// The maximum number of lines.
const LINES_MAX: usize = 3;

/// The maximum number of phrases in a line, so that it need not wrap.
const PHRASES_MAX: usize = 2;

/// Speeds that differ by less are called equal.
const SPEED_RATIO_MIN: f64 = 1.15;

/// Amounts that differ by less are called equal. They repeat more exactly than speeds.
const AMOUNT_RATIO_MIN: f64 = 1.05;

/// A property in which designs differ.
struct Difference {
    best: usize,
    worst: usize,
    ratio: f64,
    /// What the best design does, such as `writes {} less`; the ratio replaces `{}`.
    phrase: String,
}

/// Returns the verdict on some designs, line by line; empty for one design.
pub fn verdict(comparisons: &[BenchComparison]) -> Vec<String> {
    let names = |comparison: &BenchComparison| -> Vec<String> {
        let first = comparison.metrics.first();
        let values = first.map(|metric| &metric.values[..]).unwrap_or_default();
        values.iter().map(|value| value.design.clone()).collect()
    };
    let names = comparisons.first().map(names).unwrap_or_default();
    if names.len() < 2 {
        return Vec::new();
    }
    let mut found = differences(comparisons);
    found.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    if found.is_empty() {
        return vec!["the designs differ by less than the noise of a run".to_owned()];
    }
    if names.len() == 2 { of_two(&names, &found) } else { of_several(&names, &found) }
}

/// One line for each design: what it is better at.
fn of_two(names: &[String], found: &[Difference]) -> Vec<String> {
    // The design with the largest difference comes first.
    let first = found.first().map_or(0, |one| one.best);
    let lines = [first, 1 - first].into_iter().filter_map(|design| {
        let phrases: Vec<String> = found
            .iter()
            .filter(|one| one.best == design)
            .take(PHRASES_MAX)
            .map(|one| one.phrase.replace("{}", &human::ratio(one.ratio)))
            .collect();
        (!phrases.is_empty()).then(|| format!("{} {}", names[design], phrases.join(", ")))
    });
    lines.collect()
}

/// One line for each of the largest differences.
fn of_several(names: &[String], found: &[Difference]) -> Vec<String> {
    let line = |one: &Difference| {
        let phrase = one.phrase.replace("{}", &human::ratio(one.ratio));
        format!("{} {phrase} than {}", names[one.best], names[one.worst])
    };
    found.iter().take(LINES_MAX).map(line).collect()
}

fn differences(comparisons: &[BenchComparison]) -> Vec<Difference> {
    let mut found = Vec::new();
    // The first workload that writes loads the data, and writes the most.
    let writing = comparisons.iter().find(|one| metric(one, "write amp").is_some());
    if let Some(writing) = writing {
        let written = metric(writing, "write amp");
        found.extend(written.and_then(|one| difference(one, AMOUNT_RATIO_MIN, "writes {} less")));
        let space = metric(writing, "space amp");
        found
            .extend(space.and_then(|one| difference(one, AMOUNT_RATIO_MIN, "takes {} less space")));
    }
    for comparison in comparisons {
        let speed = metric(comparison, "ops/s");
        let phrase = phrase_of(&comparison.comparison);
        found.extend(speed.and_then(|one| difference(one, SPEED_RATIO_MIN, &phrase)));
    }
    found
}

fn metric<'a>(comparison: &'a BenchComparison, name: &str) -> Option<&'a ComparedMetric> {
    comparison.metrics.iter().find(|metric| metric.metric == name)
}

/// Returns what a design that is fast at a workload does.
fn phrase_of(workload: &str) -> String {
    let name = workload.split(':').next().unwrap_or(workload);
    let verb = match name {
        "fillseq" | "fillrandom" | "fillbatch" | "fillsync" | "ycsb-load" => "loads",
        "overwrite" => "overwrites",
        "deleterandom" => "deletes",
        "readrandom" | "multireadrandom" => "finds keys",
        "readmissing" => "misses absent keys",
        "seekrandom" => "scans short ranges",
        "readseq" | "readreverse" => "scans everything",
        other => return format!("runs {other} {{}} faster"),
    };
    format!("{verb} {{}} faster")
}

/// Compares the best and the worst value of a metric.
fn difference(metric: &ComparedMetric, ratio_min: f64, phrase: &str) -> Option<Difference> {
    let values = metric.values.iter().map(|value| value.value).enumerate();
    let known: Vec<(usize, f64)> =
        values.filter_map(|(number, value)| Some((number, value?))).collect();
    let least = known.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let most = known.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let ratio = most.1 / least.1;
    let (best, worst) = match metric.better {
        Better::Higher => (most.0, least.0),
        Better::Lower => (least.0, most.0),
    };
    (ratio.is_finite() && ratio >= ratio_min).then(|| Difference {
        best,
        worst,
        ratio,
        phrase: phrase.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::compare::MetricValue;
    use super::*;

    fn metric(metric: &'static str, better: Better, values: &[f64]) -> ComparedMetric {
        let names = ["leveling", "tiering", "lazy"];
        let value = |(name, value): (&&str, &f64)| MetricValue {
            design: (*name).to_owned(),
            value: Some(*value),
            of_best: None,
        };
        ComparedMetric { metric, better, values: names.iter().zip(values).map(value).collect() }
    }

    fn comparison(workload: &str, metrics: Vec<ComparedMetric>) -> BenchComparison {
        BenchComparison::new(workload.to_owned(), 1, metrics)
    }

    #[test]
    fn each_of_two_designs_has_a_line_with_its_strengths() {
        let all = [
            comparison(
                "fillrandom",
                vec![
                    metric("ops/s", Better::Higher, &[100.0, 150.0]),
                    metric("write amp", Better::Lower, &[6.2, 2.0]),
                    metric("space amp", Better::Lower, &[1.1, 1.98]),
                ],
            ),
            comparison("readrandom", vec![metric("ops/s", Better::Higher, &[105.0, 100.0])]),
            comparison("seekrandom:10", vec![metric("ops/s", Better::Higher, &[170.0, 100.0])]),
        ];
        assert_eq!(
            verdict(&all),
            [
                "tiering writes 3.10× less, loads 1.50× faster",
                "leveling takes 1.80× less space, scans short ranges 1.70× faster",
            ]
        );
        assert!(verdict(&all[1..2]).first().unwrap().contains("less than the noise"));
        assert!(verdict(&[]).is_empty());
    }

    #[test]
    fn several_designs_have_the_three_largest_differences() {
        let all: Vec<BenchComparison> = [5.0, 3.0, 2.0, 4.0]
            .iter()
            .zip(["ycsb-a", "readseq", "overwrite", "readmissing"])
            .map(|(ratio, name)| {
                comparison(name, vec![metric("ops/s", Better::Higher, &[1.0, *ratio, 1.5])])
            })
            .collect();
        assert_eq!(
            verdict(&all),
            [
                "tiering runs ycsb-a 5.00× faster than leveling",
                "tiering misses absent keys 4.00× faster than leveling",
                "tiering scans everything 3.00× faster than leveling",
            ]
        );
    }
}
