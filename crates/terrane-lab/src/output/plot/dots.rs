//! Figures in rows: a dot for each, its range, and the interval to compare them with.

use std::fmt::Write;

use super::scale::{Axis, Scale, label};
use super::svg::{COLOURS, axis_break, escaped};

const WIDTH: f64 = 640.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 6.0;
const ROW: f64 = 18.0;
const TICKS: f64 = 20.0;
/// The approximate width of a character.
const CHARACTER: f64 = 6.4;
/// The bounds of the space for labels.
const LABELS: (f64, f64) = (60.0, 300.0);
/// If the greatest figure exceeds the least by more, a linear axis would not show the small ones.
const LINEAR_MAX: f64 = 30.0;

/// A figure with the range that it stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct Dot {
    /// The name of the figure.
    pub label: String,
    /// The value.
    pub value: f64,
    /// The least value of the range.
    pub low: f64,
    /// The greatest value of the range.
    pub high: f64,
}

/// Figures of one kind, and the interval to compare them with.
#[derive(Debug, Clone, PartialEq)]
pub struct DotPlot {
    /// The figures, from top to bottom; those that are not finite are left out.
    pub dots: Vec<Dot>,
    /// The interval, with an infinite end if it is open.
    pub interval: Option<(f64, f64)>,
}

impl DotPlot {
    /// Renders the figures as an SVG document named `title`.
    #[must_use]
    pub fn svg(&self, title: &str) -> String {
        let dots: Vec<&Dot> = self.dots.iter().filter(|dot| dot.value.is_finite()).collect();
        let longest = dots.iter().map(|dot| dot.label.chars().count()).max().unwrap_or(0);
        let left = (longest as f64 * CHARACTER + 14.0).clamp(LABELS.0, LABELS.1);
        let axis = self.axis(&dots);
        let x = |value: f64| axis.place(value).map(|place| left + place * (WIDTH - left - RIGHT));
        let bottom = TOP + ROW * dots.len() as f64;
        let height = bottom + TICKS;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
             role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"11.5\">\n\
             <title>{}</title>\n<rect width=\"{WIDTH}\" height=\"{height:.0}\" fill=\"#fff\"/>\n",
            escaped(title)
        );
        // Writing to a String cannot fail.
        let _ = self.draw_interval(&mut out, (left, bottom), x);
        let _ = draw_ticks(&mut out, &axis, (left, bottom), x);
        for (number, dot) in dots.iter().enumerate() {
            let _ = draw_dot(&mut out, dot, (left, TOP + ROW * (number as f64 + 0.5)), x);
        }
        out.push_str("</svg>\n");
        out
    }

    fn axis(&self, dots: &[&Dot]) -> Axis {
        let ends = self.interval.into_iter().flat_map(|(low, high)| [low, high]);
        let all = dots.iter().flat_map(|dot| [dot.value, dot.low, dot.high]).chain(ends);
        let all: Vec<f64> = all.filter(|value| value.is_finite()).collect();
        let positive = || all.iter().copied().filter(|value| *value > 0.0);
        let (low, high) =
            (positive().fold(f64::INFINITY, f64::min), positive().fold(0.0, f64::max));
        let is_logarithmic = all.iter().all(|value| *value >= 0.0) && high > LINEAR_MAX * low;
        let scale = if is_logarithmic { Scale::Logarithmic } else { Scale::Linear };
        Axis::over(scale, all.into_iter())
    }

    fn draw_interval(
        &self,
        out: &mut String,
        (left, bottom): (f64, f64),
        x: impl Fn(f64) -> Option<f64>,
    ) -> std::fmt::Result {
        let Some((low, high)) = self.interval else { return Ok(()) };
        // An end that the axis cannot show is open.
        let from = x(low).unwrap_or(left);
        let width = (x(high).unwrap_or(WIDTH - RIGHT) - from).max(2.0);
        writeln!(
            out,
            "<rect class=\"interval\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{width:.1}\" \
             height=\"{:.1}\" fill=\"#009e73\" fill-opacity=\"0.16\"/>",
            bottom - TOP
        )
    }
}

fn draw_ticks(
    out: &mut String,
    axis: &Axis,
    (left, bottom): (f64, f64),
    x: impl Fn(f64) -> Option<f64>,
) -> std::fmt::Result {
    for tick in axis.ticks() {
        let Some(x) = x(tick) else { continue };
        writeln!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#333\">{}</text>",
            bottom + 14.0,
            label(tick)
        )?;
    }
    match axis.break_place() {
        Some(place) => axis_break(out, left + place * (WIDTH - left - RIGHT), bottom),
        None => Ok(()),
    }
}

fn draw_dot(
    out: &mut String,
    dot: &Dot,
    (left, y): (f64, f64),
    x: impl Fn(f64) -> Option<f64>,
) -> std::fmt::Result {
    let colour = COLOURS[0];
    writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#333\">{}</text>",
        left - 8.0,
        y + 4.0,
        escaped(&dot.label)
    )?;
    if let (Some(low), Some(high)) = (x(dot.low), x(dot.high))
        && high - low > 1.0
    {
        writeln!(
            out,
            "<line x1=\"{low:.1}\" y1=\"{y:.1}\" x2=\"{high:.1}\" y2=\"{y:.1}\" \
             stroke=\"{colour}\" stroke-width=\"5\" stroke-opacity=\"0.3\"/>"
        )?;
    }
    let Some(x) = x(dot.value) else { return Ok(()) };
    writeln!(
        out,
        "<rect class=\"dot\" x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\" fill=\"{colour}\"/>",
        x - 3.5,
        y - 3.5
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(values: &[f64], interval: Option<(f64, f64)>) -> String {
        let dot = |value: &f64| Dot {
            label: "a < b".into(),
            value: *value,
            low: value / 2.0,
            high: value * 2.0,
        };
        DotPlot { dots: values.iter().map(dot).collect(), interval }.svg("here & there")
    }

    #[test]
    fn every_finite_figure_has_a_dot_and_open_intervals_end_at_the_edge() {
        let svg = plot(&[0.5, 1.25, f64::NAN], Some((1.0, f64::INFINITY)));
        assert_eq!(svg.matches("class=\"dot\"").count(), 2);
        assert_eq!(svg.matches("class=\"interval\"").count(), 1);
        assert!(svg.contains("a &lt; b") && svg.contains("here &amp; there"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(plot(&[], None).ends_with("</svg>\n"));
    }

    #[test]
    fn figures_of_several_magnitudes_are_on_a_logarithmic_axis() {
        assert!(plot(&[1.0, 2.0], None).contains(">0<"));
        let svg = plot(&[1.0, 2000.0], None);
        assert!(!svg.contains(">0<") && svg.contains(">1000<"), "{svg}");
        let svg = plot(&[0.0, 1.0, 2000.0], None);
        assert!(svg.contains(">0<") && svg.contains("class=\"break\""), "{svg}");
        assert!(plot(&[-5.0, 2000.0], None).contains(">0<"));
    }
}
