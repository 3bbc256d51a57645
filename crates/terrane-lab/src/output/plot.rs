//! Curves and heat maps as SVG: small, self-contained, and deterministic.
//!
//! A plot is a frame with ticks, curves with a legend, and full-height bands that mark periods with
//! a problem such as a stall; rows below it show the state of the tree over the same time. It uses no
//! external styles, so that it renders the same alone and embedded in a page.

mod dots;
mod heat;
mod panel;
mod scale;
mod strips;
mod svg;

pub use dots::{Dot, DotPlot};
pub use heat::{HeatCell, HeatMap};
pub use panel::{Panel, PanelAxis, PanelPoint, PanelSeries};
pub use scale::Scale;
pub use strips::{Span, Strip};
pub use svg::escaped;

/// A plot of curves.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// The title.
    pub title: String,
    /// The label of the horizontal axis, with its unit.
    pub x_label: String,
    /// The label of the vertical axis, with its unit.
    pub y_label: String,
    /// The scale of the vertical axis.
    pub y_scale: Scale,
    /// Names of the ticks of the horizontal axis; if empty, the ticks are numbers.
    pub x_names: Vec<String>,
    /// The curves.
    pub curves: Vec<Curve>,
    /// The start and the end of each band.
    pub bands: Vec<(f64, f64)>,
    /// Rows below the horizontal axis.
    pub strips: Vec<Strip>,
}

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// The name in the legend.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
    /// The line style.
    pub stroke: Stroke,
}

/// A line style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    /// For measurements.
    Solid,
    /// For the reference that measurements are compared with.
    Dashed,
}

impl Plot {
    /// Renders the plot as an SVG document.
    pub fn svg(&self) -> String {
        svg::document(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> Plot {
        Plot {
            title: "a < b & c".into(),
            x_label: "s".into(),
            y_label: "writes/s".into(),
            y_scale: Scale::Linear,
            x_names: Vec::new(),
            curves: vec![Curve {
                name: "ours".into(),
                points: vec![(0.0, 0.0), (10.0, 50.0), (20.0, 100.0)],
                stroke: Stroke::Solid,
            }],
            bands: vec![(5.0, 6.0)],
            strips: Vec::new(),
        }
    }

    #[test]
    fn plots_are_well_formed_and_complete() {
        let svg = plot().svg();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("a &lt; b &amp; c") && !svg.contains("a < b"));
        assert!(svg.contains("ours") && svg.contains("writes/s"));
        assert_eq!(svg.matches("<polyline").count(), 1);
        assert_eq!(svg.matches("class=\"band\"").count(), 1);
        for tag in ["svg", "text", "g"] {
            let opened =
                svg.matches(&format!("<{tag} ")).count() + svg.matches(&format!("<{tag}>")).count();
            assert_eq!(opened, svg.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }

    #[test]
    fn empty_curves_and_nan_are_skipped() {
        let mut plot = plot();
        plot.curves[0].points = vec![(0.0, f64::NAN), (1.0, f64::INFINITY)];
        assert!(!plot.svg().contains("NaN") && !plot.svg().contains("inf"));
        plot.y_scale = Scale::Logarithmic;
        plot.curves[0].points = vec![(0.0, 0.0), (1.0, 5.0)];
        let svg = plot.svg();
        assert!(!svg.contains("NaN") && svg.contains(">0<") && svg.contains("class=\"break\""));
        plot.curves.clear();
        plot.bands.clear();
        assert!(plot.svg().contains("</svg>"));
    }

    #[test]
    fn strips_lie_below_the_axis_at_the_places_of_their_times() {
        let mut plot = plot();
        let height = |svg: &str| {
            let box_of = svg.split("viewBox=\"0 0 860 ").nth(1).unwrap();
            box_of.split('"').next().unwrap().parse::<f64>().unwrap()
        };
        let without = height(&plot.svg());
        plot.strips = vec![
            Strip {
                name: "merges <3".into(),
                spans: vec![
                    Span { from: 0.0, to: 10.0, strength: 0.5, label: "1".into() },
                    Span { from: 19.0, to: 40.0, strength: f64::NAN, label: "2".into() },
                ],
            },
            Strip { name: "stopped".into(), spans: Vec::new() },
        ];
        let svg = plot.svg();
        assert!(height(&svg) > without);
        assert!(svg.contains("merges &lt;3") && svg.contains(">stopped<"));
        // A span ends where the axis does, and one without a strength is left out.
        assert_eq!(svg.matches("class=\"span\"").count(), 1);
        assert!(!svg.contains("NaN"));
    }

    #[test]
    fn named_ticks_show_their_names() {
        let mut plot = plot();
        plot.x_names = vec!["p50".into(), "p99".into(), "max".into()];
        plot.curves[0].points = vec![(0.0, 3.0), (1.0, 40.0), (2.0, 500.0)];
        plot.y_scale = Scale::Logarithmic;
        let svg = plot.svg();
        assert!(svg.contains(">p99<") && svg.contains(">100<") && svg.contains(">10<"));
    }
}
