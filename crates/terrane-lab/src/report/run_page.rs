//! A measured or simulated run as one page: the page of the explorer with the run inside.
//!
//! The page shows its figures with the values under the pointer, a table for each, and beside those of another run.
//! This crate does not contain the page; the command does.

use anyhow::{Context, Result};
use serde::Serialize;

use crate::output::json::SCHEMA;
use crate::output::plot::{Panel, PanelAxis, Plot, Scale, Stroke};

/// The content of a page.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RunPage {
    schema: u32,
    title: String,
    /// Names and values: machine, commit, command, date.
    setting: Vec<(String, String)>,
    blocks: Vec<Block>,
}

/// A part of a page.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Block {
    /// A heading.
    Heading {
        /// Its text.
        text: String,
    },
    /// A paragraph.
    Text {
        /// Its text.
        text: String,
        /// What it says about a claim; `None` if it makes none.
        mark: Option<Mark>,
    },
    /// A list.
    List {
        /// Its items.
        items: Vec<String>,
    },
    /// A table.
    Table {
        /// The heads of its columns.
        columns: Vec<String>,
        /// Its rows.
        rows: Vec<Vec<String>>,
    },
    /// A figure.
    Figure(Box<Figure>),
}

/// What was found about a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// It holds.
    Yes,
    /// It does not.
    No,
    /// It is not known.
    Unknown,
}

/// A figure as data, with its drawing.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// The name of its file, without extension.
    name: String,
    title: String,
    x_label: String,
    y_label: String,
    /// Names of the positions 0, 1, ... of the horizontal axis; empty if it has numbers.
    x_names: Vec<String>,
    is_x_logarithmic: bool,
    is_y_logarithmic: bool,
    /// False if the order of the positions means nothing.
    has_lines: bool,
    curves: Vec<FigureCurve>,
    bands: Vec<(f64, f64)>,
    strips: Vec<FigureStrip>,
    svg: String,
}

/// A series.
#[derive(Debug, Clone, Serialize)]
struct FigureCurve {
    name: String,
    is_dashed: bool,
    points: Vec<(f64, f64)>,
    /// The least and the greatest value of each point; empty if there is one value.
    ranges: Vec<(f64, f64)>,
}

/// A row of intervals below a figure: start, end, strength and name of each.
#[derive(Debug, Clone, Serialize)]
struct FigureStrip {
    name: String,
    spans: Vec<(f64, f64, f64, String)>,
}

impl Figure {
    /// Returns a plot of curves.
    #[must_use]
    pub fn of_plot(name: &str, plot: &Plot) -> Self {
        let curves = plot.curves.iter().map(|curve| FigureCurve {
            name: curve.name.clone(),
            is_dashed: curve.stroke == Stroke::Dashed,
            points: curve.points.clone(),
            ranges: Vec::new(),
        });
        let strips = plot.strips.iter().map(|strip| FigureStrip {
            name: strip.name.clone(),
            spans: strip
                .spans
                .iter()
                .map(|span| (span.from, span.to, span.strength, span.label.clone()))
                .collect(),
        });
        Self {
            name: name.to_owned(),
            title: plot.title.clone(),
            x_label: plot.x_label.clone(),
            y_label: plot.y_label.clone(),
            x_names: plot.x_names.clone(),
            is_x_logarithmic: false,
            is_y_logarithmic: plot.y_scale == Scale::Logarithmic,
            has_lines: true,
            curves: curves.collect(),
            bands: plot.bands.clone(),
            strips: strips.collect(),
            svg: plot.svg(),
        }
    }

    /// Returns a panel of points.
    #[must_use]
    pub fn of_panel(name: &str, panel: &Panel) -> Self {
        let curves = panel.series.iter().map(|series| FigureCurve {
            name: series.name.clone(),
            is_dashed: series.is_paper,
            points: series.points.iter().map(|point| (point.x, point.value)).collect(),
            ranges: match series.points.iter().all(|point| point.low == point.high) {
                true => Vec::new(),
                false => series.points.iter().map(|point| (point.low, point.high)).collect(),
            },
        });
        let (x_names, is_x_logarithmic) = match &panel.x {
            PanelAxis::Names(names) => (names.clone(), false),
            PanelAxis::Numbers(scale) => (Vec::new(), *scale == Scale::Logarithmic),
        };
        Self {
            name: name.to_owned(),
            title: panel.title.clone(),
            x_label: panel.x_label.clone(),
            y_label: panel.y_label.clone(),
            has_lines: x_names.is_empty(),
            x_names,
            is_x_logarithmic,
            is_y_logarithmic: panel.y_scale == Scale::Logarithmic,
            curves: curves.collect(),
            bands: Vec::new(),
            strips: Vec::new(),
            svg: panel.svg(),
        }
    }

    /// Returns the figure as data alone.
    #[must_use]
    pub fn without_drawing(self) -> Self {
        Self { svg: String::new(), ..self }
    }

    /// Returns the name of its file, without extension.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its drawing.
    #[must_use]
    pub fn svg(&self) -> &str {
        &self.svg
    }
}

impl RunPage {
    /// Begins a page.
    #[must_use]
    pub fn new(title: impl Into<String>, setting: Vec<(String, String)>) -> Self {
        Self { schema: SCHEMA, title: title.into(), setting, blocks: Vec::new() }
    }

    /// Adds a heading.
    pub fn heading(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Heading { text: text.into() });
    }

    /// Adds a paragraph.
    pub fn text(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Text { text: text.into(), mark: None });
    }

    /// Adds a paragraph that says whether a claim holds.
    pub fn verdict(&mut self, text: impl Into<String>, mark: Mark) {
        self.blocks.push(Block::Text { text: text.into(), mark: Some(mark) });
    }

    /// Adds a part.
    pub fn add(&mut self, block: Block) {
        self.blocks.push(block);
    }

    /// Returns the page of the explorer with this run inside.
    ///
    /// # Errors
    /// If `page` is not that page.
    pub fn html(&self, page: &str) -> Result<String> {
        let (before, after) = page.rsplit_once("</body>").context("the page has no end")?;
        // Within an element, nothing may look like its end.
        let data = serde_json::to_string(self)?.replace('<', "\\u003c");
        Ok(format!(
            "{before}<script type=\"application/json\" id=\"terrane-run\">{data}</script>\n</body>{after}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_inside_its_page_whatever_it_says() {
        let mut run = RunPage::new("</script><b>", vec![("command".into(), "a < b".into())]);
        run.verdict("sustainable", Mark::Yes);
        let html = run.html("<html><body>page</body></html>").unwrap();
        assert!(
            html.starts_with("<html><body>page<script type=")
                && html.ends_with("</script>\n</body></html>")
        );
        assert_eq!(html.matches("</script>").count(), 1);
        let (_, data) = html.split_once("terrane-run\">").unwrap();
        let (data, _) = data.split_once("</script>").unwrap();
        let value: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(value["title"], "</script><b>");
        assert_eq!(value["blocks"][0]["mark"], "yes");
        assert!(run.html("no page").is_err());
    }
}
