//! Designs side by side, with bars, and the verdict.
//!
//! The best design has a full bar, and a design that is half as good has half a bar.

use std::io::{self, Write};

use terrane_lab::bench::{BenchComparison, ComparedMetric, MetricValue, verdict};

use crate::table::{Align, lines, table};
use crate::terminal::{Paint, picture_columns};
use terrane_lab::output::human;

/// The widths of a bar, in characters.
const BAR_WIDTHS: std::ops::RangeInclusive<usize> = 4..=12;

/// The columns of a number.
const NUMBER_WIDTH: usize = 10;

/// A row is left out if all its values are at least this share of the best.
const EQUAL_SHARE: f64 = 0.95;

/// Writes the designs side by side, one table per workload, with the metrics in which they differ.
pub(super) fn write(out: &mut impl Write, comparisons: &[BenchComparison]) -> io::Result<()> {
    let paint = Paint::stdout();
    let mut equal = 0;
    for comparison in comparisons {
        let (differing, same): (Vec<_>, Vec<_>) =
            comparison.metrics.iter().partition(|compared| differs(compared));
        equal += same.len();
        if differing.is_empty() {
            continue;
        }
        let medians = match comparison.repetitions {
            1 => String::new(),
            count => format!(", medians of {count}"),
        };
        let title = format!("{} side by side{medians}", comparison.comparison);
        writeln!(out, "\n{}", paint.bold(&title))?;
        write_metrics(out, &differing)?;
    }
    let mut notes = vec![
        "a full bar marks the best value of a row, half a bar one that is half as good".to_owned(),
        "rewrite amp: bytes written by compactions per byte the user wrote".to_owned(),
    ];
    if equal > 0 {
        let rows = human::counted(equal as u64, "row");
        notes.push(format!("{rows} with values within 5 % left out; --json has them"));
    }
    notes.iter().try_for_each(|note| writeln!(out, "{}", paint.dim(note)))
}

/// Writes the verdict of the comparison.
pub(super) fn write_verdict(
    out: &mut impl Write,
    comparisons: &[BenchComparison],
) -> io::Result<()> {
    let paint = Paint::stdout();
    writeln!(out, "\n{}", paint.bold("Verdict"))?;
    verdict(comparisons).iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// The metrics that are counts.
const COUNTS: [&str; 6] =
    ["compactions", "moved only", "cache misses", "tombstones left", "sorted runs", "tables"];

fn differs(compared: &ComparedMetric) -> bool {
    let values = &compared.values;
    let is_known = |value: &MetricValue| value.value.is_some();
    values.iter().any(is_known) != values.iter().all(is_known)
        || values.iter().filter_map(|value| value.of_best).any(|share| share < EQUAL_SHARE)
}

fn write_metrics(out: &mut impl Write, metrics: &[&ComparedMetric]) -> io::Result<()> {
    let values = metrics.first().map(|first| &first.values[..]).unwrap_or_default();
    let names: Vec<&str> = values.iter().map(|value| value.design.as_str()).collect();
    let longest = metrics.iter().map(|compared| compared.metric.chars().count()).max();
    let bar_width = bar_width(picture_columns(), longest.unwrap_or(0), names.len());
    let mut headers = vec![("", Align::Left)];
    headers.extend(names.iter().map(|name| (*name, Align::Right)));
    let mut table = table(&headers);
    for compared in metrics {
        let is_count = COUNTS.contains(&compared.metric);
        let cells = compared.values.iter().map(|value| cell(value, is_count, bar_width));
        table.add_row(std::iter::once(compared.metric.to_owned()).chain(cells));
    }
    lines(&table).try_for_each(|line| writeln!(out, "{line}"))
}

/// Returns the width at which the bars of all designs fit side by side, or the minimum width.
fn bar_width(columns: usize, name_width: usize, designs: usize) -> usize {
    let room = columns.saturating_sub(name_width) / designs.max(1);
    room.saturating_sub(NUMBER_WIDTH + 3).clamp(*BAR_WIDTHS.start(), *BAR_WIDTHS.end())
}

/// Formats a value with its bar; a whole count has no decimal places, unlike a median of two counts.
fn cell(value: &MetricValue, is_count: bool, bar_width: usize) -> String {
    match (value.value, value.of_best) {
        (Some(value), Some(of_best)) => {
            let number = match is_count && value.fract() == 0.0 {
                true => human::count(value as u64),
                false => human::number(value),
            };
            format!("{} {number:>NUMBER_WIDTH$}", bar(of_best, bar_width))
        }
        _ => "-".to_owned(),
    }
}

fn bar(share: f64, width: usize) -> String {
    let filled = ((share * width as f64).round() as usize).min(width);
    format!("{}{}", "█".repeat(filled), "·".repeat(width - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_a_design_is_good() {
        assert_eq!(bar(1.0, 12), "█".repeat(12));
        assert_eq!(bar(0.5, 12), format!("{}{}", "█".repeat(6), "·".repeat(6)));
    }

    #[test]
    fn counts_are_whole_numbers() {
        let shown = |value, is_count| {
            let value =
                MetricValue { design: String::new(), value: Some(value), of_best: Some(1.0) };
            cell(&value, is_count, 1).trim_start_matches('█').trim().to_owned()
        };
        assert_eq!([shown(5.0, true), shown(41.0, true), shown(2.5, true)], ["5", "41", "2.50"]);
        assert_eq!(shown(5.0, false), "5.00");
    }

    #[test]
    fn bars_of_several_designs_fit_next_to_each_other() {
        assert_eq!(bar_width(200, 20, 2), 12);
        assert_eq!(bar_width(80, 15, 3), 8);
        // More designs than fit are printed below each other.
        assert_eq!(bar_width(80, 15, 9), 4);
    }
}
