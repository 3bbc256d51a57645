//! One figure as text: the paper's points and ours, and the claims on it.

use std::fmt::Write;

use anyhow::Result;
use terrane_lab::output::markdown::table;
use terrane_lab::output::plot::{Panel, PanelAxis, PanelPoint, PanelSeries};

use super::ReportedExperiment;
use crate::judge::claims_table;
use crate::results::Results;

/// Returns the panel and the claims of one figure of the paper, in Markdown.
///
/// # Errors
/// If the experiment is unknown.
pub fn figure_document(results: &Results, figure: &str) -> Result<String> {
    let reported = ReportedExperiment::of(results, Some(figure))?;
    let mut text = String::new();
    for one in &reported.panels {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# {}\n\n{}", one.panel.title, panel(&one.panel));
        for (series, source) in &one.sources {
            let _ = writeln!(text, "{series}: {source}\n");
        }
    }
    let _ = writeln!(text, "# Claims\n\n{}", claims_table(&reported.verdicts).trim_end());
    Ok(text)
}

/// Returns the points of a panel as a table, a column for each series.
fn panel(panel: &Panel) -> String {
    let mut places: Vec<f64> =
        panel.series.iter().flat_map(|series| &series.points).map(|point| point.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let name = |x: f64| match &panel.x {
        PanelAxis::Names(names) => names.get(x as usize).cloned().unwrap_or_default(),
        PanelAxis::Numbers(_) => x.to_string(),
    };
    let cell_at = |series: &PanelSeries, x: f64| {
        let point = series.points.iter().find(|point| point.x == x);
        point.map_or(String::new(), cell)
    };
    let row = |x: &f64| {
        let cells = panel.series.iter().map(|series| cell_at(series, *x));
        [name(*x)].into_iter().chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = places.iter().map(row).collect();
    let names = panel.series.iter().map(|series| series.name.clone());
    let headers: Vec<String> = [panel.x_label.clone()].into_iter().chain(names).collect();
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    format!("{}, by {}:\n\n{}", panel.y_label, panel.x_label, table(&headers, &rows))
}

/// Returns a value with three digits, and its range if it has one.
fn cell(point: &PanelPoint) -> String {
    let number = |value: f64| match value.abs() {
        0.0 => "0".to_owned(),
        size if !(0.01..1000.0).contains(&size) => format!("{value:.2e}"),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    };
    match point.low < point.high {
        true => {
            format!("{} ({} to {})", number(point.value), number(point.low), number(point.high))
        }
        false => number(point.value),
    }
}
