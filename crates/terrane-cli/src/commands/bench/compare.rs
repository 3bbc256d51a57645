//! Designs side by side, with bars.
//!
//! The best design has a full bar, and a design that is half as good has half a bar.

use std::io::{self, Write};

use terrane_lab::bench::{BenchComparison, DesignRun, MetricValue};

use crate::table::{Align, lines, table};
use crate::terminal::Paint;
use terrane_lab::human;

/// The width of a bar, in characters.
const BAR_WIDTH: usize = 12;

/// Writes the designs side by side, one table per workload.
pub(super) fn write(out: &mut impl Write, designs: &[Vec<DesignRun>]) -> io::Result<()> {
    let paint = Paint::stdout();
    for comparison in BenchComparison::of(designs) {
        let medians = match comparison.repetitions {
            1 => String::new(),
            count => format!(", medians of {count}"),
        };
        let title = format!("{} side by side{medians}", comparison.comparison);
        writeln!(out, "\n{}", paint.bold(&title))?;
        let mut headers = vec![("", Align::Left)];
        let names: Vec<&str> = designs.iter().flat_map(|all| all.first()).map(name_of).collect();
        headers.extend(names.iter().map(|name| (*name, Align::Right)));
        let mut table = table(&headers);
        for compared in &comparison.metrics {
            let cells = compared.values.iter().map(cell);
            table.add_row(std::iter::once(compared.metric.to_owned()).chain(cells));
        }
        for line in lines(&table) {
            writeln!(out, "{line}")?;
        }
    }
    writeln!(
        out,
        "{}",
        paint.dim(
            "a full bar marks the best value of a row, half a bar one that is half as good; \
             rewrite amp: bytes written by compactions per byte the user wrote"
        )
    )
}

fn name_of(finished: &DesignRun) -> &str {
    &finished.name
}

fn cell(value: &MetricValue) -> String {
    match (value.value, value.of_best) {
        (Some(value), Some(of_best)) => format!("{} {:>9}", bar(of_best), human::number(value)),
        _ => "-".to_owned(),
    }
}

fn bar(share: f64) -> String {
    let filled = (share * BAR_WIDTH as f64).round() as usize;
    let filled = filled.min(BAR_WIDTH);
    format!("{}{}", "█".repeat(filled), "·".repeat(BAR_WIDTH - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_a_design_is_good() {
        assert_eq!(bar(1.0), "█".repeat(12));
        assert_eq!(bar(0.5), format!("{}{}", "█".repeat(6), "·".repeat(6)));
    }
}
