//! The papers' figures as data: `papers/*.toml`, the points that each paper published, and the
//! expressions for our points.
//!
//! | key of a figure | meaning |
//! |---|---|
//! | `number` | the figure: `4a`, `Table 1` |
//! | `title` | the title |
//! | `x`, `y` | labels of the axes, with units |
//! | `names` | keys of a horizontal axis of names, each with the name that is shown |
//! | `x_scale`, `y_scale` | `linear`, or `logarithmic` |
//! | `normalised` | the key at which every series is 1, where absolute numbers do not transfer |
//! | `paper` | series: `name`, `source`, and `points`, numbers or intervals by key |
//! | `ours` | series: `name`, `values`, an expression whose labels are keys, and `mode` |

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use terrane_lab::output::plot::{Panel, PanelAxis, PanelPoint, PanelSeries, Scale};

use crate::judge::expression::Expression;
use crate::judge::{ClaimFile, MeasurementKey};
use crate::results::Results;

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
enum PointText {
    Number(f64),
    Interval([f64; 2]),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedText {
    name: String,
    source: String,
    points: BTreeMap<String, PointText>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct OursText {
    name: String,
    values: String,
    #[serde(default)]
    mode: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ScaleText {
    #[default]
    Linear,
    Logarithmic,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureText {
    number: String,
    title: String,
    x: String,
    y: String,
    #[serde(default)]
    names: Vec<[String; 2]>,
    #[serde(default)]
    x_scale: ScaleText,
    #[serde(default)]
    y_scale: ScaleText,
    #[serde(default)]
    normalised: Option<String>,
    #[serde(default)]
    paper: Vec<PublishedText>,
    #[serde(default)]
    ours: Vec<OursText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    paper: String,
    figure: Vec<FigureText>,
}

/// Points of a series by key.
type Points = Vec<(String, PanelPoint)>;

/// A figure of a paper.
#[derive(Debug, Clone)]
pub struct PaperFigure {
    text: FigureText,
    ours: Vec<Expression>,
}

/// The figures of a paper.
#[derive(Debug, Clone)]
pub struct PaperFile {
    /// The title of the paper.
    pub paper: String,
    /// The figures, in the order of the paper.
    pub figures: Vec<PaperFigure>,
}

impl PaperFile {
    /// Parses a file of figures.
    ///
    /// # Errors
    /// If a figure is malformed; the error names it.
    pub fn parse(text: &str) -> Result<Self> {
        let file: FileText = toml::from_str(text)?;
        let figures = file.figure.into_iter().map(|figure| {
            let number = figure.number.clone();
            PaperFigure::of(figure).with_context(|| format!("in the figure {number}"))
        });
        Ok(Self { paper: file.paper, figures: figures.collect::<Result<_>>()? })
    }

    /// Returns the figures of the paper of an experiment.
    ///
    /// # Errors
    /// If the experiment is unknown or the file malformed.
    pub fn of(experiment: &str) -> Result<Self> {
        let text = match experiment {
            "compaction" => include_str!("../papers/compaction.toml"),
            "memtables" => include_str!("../papers/memtables.toml"),
            "flodb" => include_str!("../papers/flodb.toml"),
            "dent" => include_str!("../papers/dent.toml"),
            "stability" | "stability-simulated" => include_str!("../papers/stability.toml"),
            _ => return Ok(Self { paper: String::new(), figures: Vec::new() }),
        };
        Self::parse(text).with_context(|| format!("in the figures of {experiment}"))
    }
}

impl PaperFigure {
    fn of(text: FigureText) -> Result<Self> {
        for series in &text.paper {
            ensure!(!series.source.is_empty(), "the series {} has no source", series.name);
            for key in series.points.keys() {
                let is_known = text.names.iter().any(|[name, _]| name == key);
                ensure!(
                    if text.names.is_empty() { number_in(key).is_some() } else { is_known },
                    "the point {key} of {} is not on the axis",
                    series.name
                );
            }
        }
        let ours = text.ours.iter().map(|ours| Expression::parse(&ours.values));
        let ours = ours.collect::<Result<_>>()?;
        Ok(Self { text, ours })
    }

    /// Returns the number of the figure: `4a`, or `Table 1`.
    #[must_use]
    pub fn number(&self) -> &str {
        &self.text.number
    }

    /// Returns the place in the paper: `Fig. 4a`, or `Table 1`.
    #[must_use]
    pub fn place(&self) -> String {
        let is_figure = self.text.number.starts_with(|first: char| first.is_ascii_digit());
        let prefix = if is_figure { "Fig. " } else { "" };
        format!("{prefix}{}", self.text.number)
    }

    /// Returns the heading: `Fig. 4a: ...`.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{}: {}", self.place(), self.text.title)
    }

    /// Returns the sources of the published points.
    #[must_use]
    pub fn sources(&self) -> Vec<(&str, &str)> {
        self.text.paper.iter().map(|one| (one.name.as_str(), one.source.as_str())).collect()
    }

    /// Returns the expressions of our series.
    #[must_use]
    pub fn expressions(&self) -> &[Expression] {
        &self.ours
    }

    /// Returns the measurements that the panel draws.
    #[must_use]
    pub fn measurements(&self, claims: &ClaimFile, results: &Results) -> BTreeSet<MeasurementKey> {
        let names = &self.text.names;
        // A key that the axis does not name has no point.
        let is_placed = |(_, keys): &MeasurementKey| {
            names.is_empty() || names.iter().any(|[name, _]| keys.contains(name))
        };
        let ours = self.text.ours.iter().zip(&self.ours);
        let all = ours
            .flat_map(|(text, values)| claims.measurements(results, values, text.mode.as_deref()));
        all.filter(is_placed).collect()
    }

    /// Returns the panel of the paper's points and ours; `None` if no point of ours was measured.
    #[must_use]
    pub fn panel(&self, claims: &ClaimFile, results: &Results) -> Option<Panel> {
        let ours: Vec<PanelSeries> = self
            .text
            .ours
            .iter()
            .zip(&self.ours)
            .map(|(text, values)| {
                let measured = claims.values(results, values, text.mode.as_deref());
                let points = measured.into_iter().map(|one| {
                    let (value, low, high) = (one.figure.value, one.figure.low, one.figure.high);
                    (one.label, PanelPoint { x: 0.0, value, low, high })
                });
                self.series(&text.name, false, points.collect())
            })
            .filter(|series| !series.points.is_empty())
            .collect();
        if ours.is_empty() {
            return None;
        }
        let mut series: Vec<PanelSeries> = Vec::new();
        for text in &self.text.paper {
            let points = text.points.iter().map(|(key, point)| {
                let [low, high] = match point {
                    PointText::Number(number) => [*number; 2],
                    PointText::Interval(interval) => *interval,
                };
                let value = f64::midpoint(low, high);
                (key.clone(), PanelPoint { x: 0.0, value, low, high })
            });
            series.push(self.series(&text.name, true, points.collect()));
        }
        series.extend(ours);
        let scale = |scale| match scale {
            ScaleText::Linear => Scale::Linear,
            ScaleText::Logarithmic => Scale::Logarithmic,
        };
        let names = || self.text.names.iter().map(|[_, name]| name.clone()).collect();
        Some(Panel {
            title: self.title(),
            x_label: self.text.x.clone(),
            y_label: self.text.y.clone(),
            x: match self.text.names.is_empty() {
                true => PanelAxis::Numbers(scale(self.text.x_scale)),
                false => PanelAxis::Names(names()),
            },
            y_scale: scale(self.text.y_scale),
            series,
        })
    }

    /// Places points on the axis, in its order; points without a number or a place are left out.
    fn series(&self, name: &str, is_paper: bool, points: Points) -> PanelSeries {
        let at = |key: &str| match self.text.names.is_empty() {
            true => number_in(key),
            false => self.text.names.iter().position(|[name, _]| name == key).map(|at| at as f64),
        };
        let mut placed: Vec<PanelPoint> = points
            .into_iter()
            .filter_map(|(key, point)| Some(PanelPoint { x: at(&key)?, ..point }))
            .filter(|point| point.value.is_finite())
            .collect();
        placed.sort_by(|one, other| one.x.total_cmp(&other.x));
        let unit = self.text.normalised.as_deref().and_then(at);
        if let Some(unit) = unit {
            let one = placed.iter().find(|point| point.x == unit).map(|point| point.value);
            let one = one.unwrap_or(f64::NAN);
            for point in &mut placed {
                let PanelPoint { x, value, low, high } = *point;
                *point = PanelPoint { x, value: value / one, low: low / one, high: high / one };
            }
            placed.retain(|point| point.value.is_finite());
        }
        PanelSeries { name: name.to_owned(), is_paper, points: placed }
    }
}

/// Returns the last number of a key: 10 of `T=10`, 0.5 of `0.5`.
fn number_in(key: &str) -> Option<f64> {
    let is_part = |letter: char| letter.is_ascii_digit() || letter == '.';
    let numbers = key.split(|letter| !is_part(letter)).filter(|part| !part.is_empty());
    numbers.filter_map(|number| number.parse().ok()).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Metric;

    const METRICS: &[&[Metric]] = &[&[Metric { name: "moved", about: "" }]];
    const CLAIMS: &str = "title = 't'\nintroduction = 'i'\n[[claim]]\nsays = 's'\nshown = ''\n\
                          metric = 'moved[full]'\npaper = 1\n";

    fn figure(text: &str) -> PaperFigure {
        let text = format!("paper = 'p'\n[[figure]]\ntitle = 't'\nx = 'x'\ny = 'y'\n{text}");
        PaperFile::parse(&text).unwrap().figures.remove(0)
    }

    #[test]
    fn points_are_placed_on_the_axes_of_the_paper() {
        let figure = figure(
            "number = '4a'\nnames = [['full', 'Full'], ['tier', 'Tier']]\n\
             paper = [{ name = 'the paper', source = 'O1', points = { full = 63, tier = [10, 14] } }]\n\
             ours = [{ name = 'here', values = 'moved[*]' }]\n",
        );
        let claims = ClaimFile::parse(CLAIMS).unwrap();
        let mut results = Results::new("compaction", METRICS);
        assert_eq!(figure.panel(&claims, &results), None);
        results.record("moved", &["other"], 1.0);
        results.record_rounds("moved", &["tier"], 3.0, &[3.0, 4.0]);
        results.record("moved", &["full"], 20.0);
        let panel = figure.panel(&claims, &results).unwrap();
        assert_eq!(panel.title, "Fig. 4a: t");
        let points = |series: usize| -> Vec<(f64, f64, f64)> {
            let points = panel.series[series].points.iter();
            points.map(|point| (point.x, point.value, point.high)).collect()
        };
        assert_eq!(points(0), [(0.0, 63.0, 63.0), (1.0, 12.0, 14.0)]);
        assert_eq!(points(1), [(0.0, 20.0, 20.0), (1.0, 3.0, 4.0)]);
    }

    #[test]
    fn normalised_series_are_one_at_their_key() {
        let figure = figure(
            "number = 'Table 1'\nnormalised = 'T=2'\n\
             paper = [{ name = 'the paper', source = 'O1', points = { 'T=2' = 50, 'T=10' = 100 } }]\n\
             ours = [{ name = 'here', values = '1000 * moved[*]' }]\n",
        );
        let mut results = Results::new("compaction", METRICS);
        for (key, value) in [("T=2", 1.0), ("T=10", 3.0)] {
            results.record("moved", &[key], value);
        }
        let panel = figure.panel(&ClaimFile::parse(CLAIMS).unwrap(), &results).unwrap();
        assert_eq!(panel.title, "Table 1: t");
        assert_eq!((panel.series[0].points[1].x, panel.series[0].points[1].value), (10.0, 2.0));
        assert_eq!(panel.series[1].points[1].value, 3.0);
    }

    #[test]
    fn points_beside_the_axis_are_refused() {
        let text = "paper = 'p'\n[[figure]]\nnumber = '1'\ntitle = 't'\nx = 'x'\ny = 'y'\n\
                    names = [['full', 'Full']]\n\
                    paper = [{ name = 'the paper', source = 'O1', points = { tier = 1 } }]\n";
        let error = PaperFile::parse(text).unwrap_err();
        assert!(format!("{error:#}").contains("tier"), "{error:#}");
    }
}
