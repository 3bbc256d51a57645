//! Panels: the paper's points and ours on the same axes, with ranges.
//!
//! The horizontal axis has names, such as strategies, or numbers. A point may have a range: the
//! interval that the paper states, or the rounds of a measurement. The paper's series are hollow and
//! dashed, ours are filled and solid, so that they differ in print too.

use std::fmt::Write;

use super::scale::{Axis, Scale, label};
use super::svg::{COLOURS, axis_break, escaped};

const WIDTH: f64 = 640.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 14.0;
const PLOT_HEIGHT: f64 = 210.0;
/// The height of the title, and of a row of the legend.
const TITLE: f64 = 24.0;
const LEGEND_ROW: f64 = 17.0;
/// The approximate width of a character of the legend and of a tick.
const CHARACTER: f64 = 6.4;

/// A horizontal axis.
#[derive(Debug, Clone, PartialEq)]
pub enum PanelAxis {
    /// Names at equal distances; a point is at the index of its name.
    Names(Vec<String>),
    /// Numbers.
    Numbers(Scale),
}

/// A point, and the range that it stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PanelPoint {
    /// The index of a name, or a number.
    pub x: f64,
    /// The value.
    pub value: f64,
    /// The least value of the range.
    pub low: f64,
    /// The greatest value of the range.
    pub high: f64,
}

/// The points of one source.
#[derive(Debug, Clone, PartialEq)]
pub struct PanelSeries {
    /// The name in the legend.
    pub name: String,
    /// True for points that the paper published.
    pub is_paper: bool,
    /// The points, from left to right.
    pub points: Vec<PanelPoint>,
}

/// A plot of several series.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// The title.
    pub title: String,
    /// The label of the horizontal axis, with its unit.
    pub x_label: String,
    /// The label of the vertical axis, with its unit.
    pub y_label: String,
    /// The horizontal axis.
    pub x: PanelAxis,
    /// The scale of the vertical axis.
    pub y_scale: Scale,
    /// The series, the paper's and ours.
    pub series: Vec<PanelSeries>,
}

/// The axes of a panel, mapped to coordinates.
struct Frame {
    x: Axis,
    y: Axis,
    top: f64,
    bottom: f64,
}

impl Frame {
    fn of(panel: &Panel, legend_rows: usize) -> Self {
        let points = || panel.series.iter().flat_map(|series| &series.points);
        let x = match &panel.x {
            PanelAxis::Names(names) => Axis::exactly(-0.5, names.len() as f64 - 0.5),
            PanelAxis::Numbers(Scale::Linear) => {
                Axis::over(Scale::Linear, points().map(|point| point.x))
            }
            PanelAxis::Numbers(Scale::Logarithmic) => Axis::powers(points().map(|point| point.x)),
        };
        let values = points().flat_map(|point| [point.value, point.low, point.high]);
        let top = TITLE + LEGEND_ROW * legend_rows as f64 + 30.0;
        Self { x, y: Axis::over(panel.y_scale, values), top, bottom: top + PLOT_HEIGHT }
    }

    fn x(&self, value: f64) -> Option<f64> {
        self.x.place(value).map(|place| LEFT + place * (WIDTH - LEFT - RIGHT))
    }

    fn y(&self, value: f64) -> Option<f64> {
        self.y.place(value).map(|place| self.bottom - place * (self.bottom - self.top))
    }
}

impl Panel {
    /// Renders the panel as an SVG document.
    #[must_use]
    pub fn svg(&self) -> String {
        let legend = self.legend();
        let frame = Frame::of(self, legend.len());
        let names = match &self.x {
            PanelAxis::Names(names) => names.as_slice(),
            PanelAxis::Numbers(_) => &[],
        };
        let slot = (WIDTH - LEFT - RIGHT) / names.len().max(1) as f64;
        let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let is_slanted = longest as f64 * CHARACTER > slot;
        let ticks = if is_slanted { 16.0 + longest as f64 * CHARACTER * 0.55 } else { 20.0 };
        let height = frame.bottom + ticks + 22.0;
        let title = escaped(&self.title);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
             role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"11.5\">\n\
             <title>{title}</title>\n\
             <rect width=\"{WIDTH}\" height=\"{height:.0}\" fill=\"#fff\"/>\n\
             <text x=\"0\" y=\"15\" font-size=\"13.5\" font-weight=\"600\">{title}</text>\n"
        );
        // Writing to a String cannot fail.
        let _ = self.draw_legend(&mut out, &legend);
        let _ = self.draw_axes(&mut out, &frame, is_slanted, height);
        let _ = self.draw_series(&mut out, &frame);
        out.push_str("</svg>\n");
        out
    }

    /// Returns the rows of the legend: the index and the horizontal position of each series.
    fn legend(&self) -> Vec<Vec<(usize, f64)>> {
        let mut rows: Vec<Vec<(usize, f64)>> = vec![Vec::new()];
        let mut x = 0.0;
        for (number, series) in self.series.iter().enumerate() {
            let width = 30.0 + CHARACTER * series.name.chars().count() as f64 + 16.0;
            if x > 0.0 && x + width > WIDTH {
                rows.push(Vec::new());
                x = 0.0;
            }
            if let Some(row) = rows.last_mut() {
                row.push((number, x));
            }
            x += width;
        }
        rows
    }

    fn colour(&self, number: usize) -> &'static str {
        // The n-th series of the paper and our n-th series have the same colour.
        let same = self.series[..number].iter();
        let before = same.filter(|one| one.is_paper == self.series[number].is_paper).count();
        COLOURS[before % COLOURS.len()]
    }

    fn draw_legend(&self, out: &mut String, rows: &[Vec<(usize, f64)>]) -> std::fmt::Result {
        for (row, series) in rows.iter().enumerate() {
            let y = TITLE + LEGEND_ROW * row as f64 + 10.0;
            for (number, x) in series {
                let (colour, one) = (self.colour(*number), &self.series[*number]);
                let dashes = if one.is_paper { " stroke-dasharray=\"4 3\"" } else { "" };
                writeln!(
                    out,
                    "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" \
                     stroke=\"{colour}\" stroke-width=\"1.6\"{dashes}/>",
                    x + 24.0
                )?;
                mark(out, (x + 12.0, y), colour, one.is_paper)?;
                let name = escaped(&one.name);
                writeln!(
                    out,
                    "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"#222\">{name}</text>",
                    x + 29.0,
                    y + 4.0
                )?;
            }
        }
        Ok(())
    }

    fn draw_axes(
        &self,
        out: &mut String,
        frame: &Frame,
        is_slanted: bool,
        height: f64,
    ) -> std::fmt::Result {
        let right = WIDTH - RIGHT;
        for tick in frame.y.ticks() {
            let Some(y) = frame.y(tick) else { continue };
            writeln!(
                out,
                "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#333\">{}</text>",
                LEFT - 6.0,
                y + 4.0,
                label(tick)
            )?;
        }
        if let Some(place) = frame.y.break_place() {
            axis_break(out, LEFT, frame.bottom - place * (frame.bottom - frame.top))?;
        }
        for (at, name) in self.x_ticks(frame) {
            let Some(x) = frame.x(at) else { continue };
            let y = frame.bottom + 15.0;
            let name = escaped(&name);
            match is_slanted {
                true => writeln!(
                    out,
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"end\" fill=\"#333\" \
                     transform=\"rotate(-32 {x:.1} {y:.1})\">{name}</text>"
                )?,
                false => writeln!(
                    out,
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" fill=\"#333\">{name}\
                     </text>"
                )?,
            }
        }
        let logarithmic = if self.y_scale == Scale::Logarithmic { ", logarithmic" } else { "" };
        writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#333\">{}</text>\n\
             <text x=\"0\" y=\"{:.1}\" fill=\"#666\">{}{logarithmic}</text>",
            f64::midpoint(LEFT, right),
            height - 6.0,
            escaped(&self.x_label),
            frame.top - 9.0,
            escaped(&self.y_label)
        )
    }

    fn x_ticks(&self, frame: &Frame) -> Vec<(f64, String)> {
        match &self.x {
            PanelAxis::Names(names) => {
                names.iter().enumerate().map(|(at, name)| (at as f64, name.clone())).collect()
            }
            PanelAxis::Numbers(Scale::Linear) => {
                frame.x.ticks().into_iter().map(|tick| (tick, label(tick))).collect()
            }
            PanelAxis::Numbers(Scale::Logarithmic) => {
                // A tick at each point whose label does not overlap the previous label.
                let points = self.series.iter().flat_map(|series| &series.points);
                let mut all: Vec<f64> = points.map(|point| point.x).filter(|x| *x >= 0.0).collect();
                all.sort_by(f64::total_cmp);
                let mut end = f64::NEG_INFINITY;
                let free = all.into_iter().filter(|at| {
                    let half = label(*at).chars().count() as f64 * CHARACTER / 2.0 + 4.0;
                    let place = frame.x(*at).unwrap_or(end);
                    let fits = place - half > end;
                    end = if fits { place + half } else { end };
                    fits
                });
                free.map(|at| (at, label(at))).collect()
            }
        }
    }

    fn draw_series(&self, out: &mut String, frame: &Frame) -> std::fmt::Result {
        let count = self.series.len() as f64;
        let is_named = matches!(self.x, PanelAxis::Names(_));
        for (number, series) in self.series.iter().enumerate() {
            let colour = self.colour(number);
            // Points of several series at one name stand next to each other.
            let shift =
                if is_named { (number as f64 - (count - 1.0) / 2.0) * 0.6 / count } else { 0.0 };
            let places: Vec<_> = series
                .points
                .iter()
                .filter(|point| point.value.is_finite())
                .filter_map(|point| Some((frame.x(point.x + shift)?, frame.y(point.value)?, point)))
                .collect();
            if !is_named {
                let line: Vec<_> =
                    places.iter().map(|(x, y, _)| format!("{x:.1},{y:.1}")).collect();
                let dashes = if series.is_paper { " stroke-dasharray=\"4 3\"" } else { "" };
                writeln!(
                    out,
                    "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" \
                     stroke-width=\"1.6\" stroke-linejoin=\"round\"{dashes}/>",
                    line.join(" ")
                )?;
            }
            for (x, y, point) in places {
                if let (Some(low), Some(high)) = (frame.y(point.low), frame.y(point.high))
                    && low - high > 1.0
                {
                    writeln!(
                        out,
                        "<line x1=\"{x:.1}\" y1=\"{low:.1}\" x2=\"{x:.1}\" y2=\"{high:.1}\" \
                         stroke=\"{colour}\" stroke-width=\"5\" stroke-opacity=\"0.3\"/>"
                    )?;
                }
                mark(out, (x, y), colour, series.is_paper)?;
            }
        }
        Ok(())
    }
}

/// Draws a point: hollow for the paper, filled for ours.
fn mark(out: &mut String, (x, y): (f64, f64), colour: &str, is_paper: bool) -> std::fmt::Result {
    match is_paper {
        true => writeln!(
            out,
            "<circle class=\"paper\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"#fff\" \
             stroke=\"{colour}\" stroke-width=\"1.8\"/>"
        ),
        false => writeln!(
            out,
            "<rect class=\"ours\" x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\" \
             fill=\"{colour}\"/>",
            x - 3.5,
            y - 3.5
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel() -> Panel {
        let point = |x: f64, value| PanelPoint { x, value, low: value / 2.0, high: value * 2.0 };
        let series =
            |name: &str, is_paper, points| PanelSeries { name: name.into(), is_paper, points };
        Panel {
            title: "Fig. 4a: a < b".into(),
            x_label: "strategy".into(),
            y_label: "bytes".into(),
            x: PanelAxis::Names(vec!["Full".into(), "Tier".into()]),
            y_scale: Scale::Logarithmic,
            series: vec![
                series("the paper", true, vec![point(0.0, 63.0), point(1.0, 12.0)]),
                series("here", false, vec![point(0.0, 24.0), point(1.0, f64::NAN)]),
            ],
        }
    }

    #[test]
    fn panels_show_the_paper_and_ours_on_one_axis() {
        let svg = panel().svg();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("a &lt; b") && svg.contains(">Full<") && svg.contains("logarithmic"));
        // The legend adds one mark per series; a point without a number has no mark.
        assert_eq!(svg.matches("class=\"paper\"").count(), 3);
        assert_eq!(svg.matches("class=\"ours\"").count(), 2);
        assert!(!svg.contains("NaN") && !svg.contains("polyline"));
    }

    #[test]
    fn a_zero_on_a_logarithmic_axis_has_a_row_of_its_own() {
        let height = |svg: &str, class: &str, number: usize| -> f64 {
            let mark = svg.split(&format!("class=\"{class}\"")).nth(number).unwrap();
            mark.split(" y=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        let mut panel = panel();
        panel.series = panel.series.split_off(1);
        let exactly = |x, value| PanelPoint { x, value, low: value, high: value };
        panel.series[0].points = vec![exactly(0.0, 0.0), exactly(1.0, 1.0)];
        let svg = panel.svg();
        assert!(svg.contains(">0<") && svg.contains("class=\"break\""));
        // The first mark is the legend's.
        let (zero, one) = (height(&svg, "ours", 2), height(&svg, "ours", 3));
        assert!(zero - one > 0.05 * PLOT_HEIGHT, "zero at {zero}, one at {one}");
        panel.series[0].points[0] = exactly(0.0, 10.0);
        assert!(!panel.svg().contains("class=\"break\""));
    }

    #[test]
    fn numbers_are_joined_by_lines_and_label_their_points() {
        let mut panel = panel();
        panel.x = PanelAxis::Numbers(Scale::Logarithmic);
        for series in &mut panel.series {
            series.points[0].x = 2.0;
            series.points[1].x = 64.0;
        }
        let svg = panel.svg();
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(svg.contains(">2<") && svg.contains(">64<"));
        panel.series.clear();
        assert!(panel.svg().contains("</svg>"));
    }
}
