//! Curves as SVG: small, readable without a program beside them, and the same every time.
//!
//! What is drawn is a frame with ticks, curves with a legend, and bands over the whole height for
//! times in which something was wrong. No styles from outside, so a picture looks the same alone
//! and within a page.

mod scale;
mod svg;

pub use scale::Scale;
pub use svg::escaped;

/// A picture of curves.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// What the horizontal axis is, with its unit.
    pub x_label: String,
    /// What the vertical axis is, with its unit.
    pub y_label: String,
    /// How the vertical axis is divided.
    pub y_scale: Scale,
    /// Places on the horizontal axis that have names; without any it has numbers.
    pub x_names: Vec<String>,
    /// The curves.
    pub curves: Vec<Curve>,
    /// From where to where a band is drawn.
    pub bands: Vec<(f64, f64)>,
}

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// What it is, for the legend.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
    /// How it is drawn.
    pub stroke: Stroke,
}

/// How a curve is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    /// What is measured.
    Solid,
    /// What it is held against.
    Dashed,
}

impl Plot {
    /// The picture as an SVG document.
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
        }
    }

    #[test]
    fn a_picture_is_well_formed_and_has_all_that_it_was_given() {
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
    fn nothing_to_draw_and_what_is_no_number_are_no_trouble() {
        let mut plot = plot();
        plot.curves[0].points = vec![(0.0, f64::NAN), (1.0, f64::INFINITY)];
        assert!(!plot.svg().contains("NaN") && !plot.svg().contains("inf"));
        plot.y_scale = Scale::Logarithmic;
        plot.curves[0].points = vec![(0.0, 0.0), (1.0, 5.0)];
        assert!(!plot.svg().contains("NaN"));
        plot.curves.clear();
        plot.bands.clear();
        assert!(plot.svg().contains("</svg>"));
    }

    #[test]
    fn named_places_have_their_names_in_the_place_of_numbers() {
        let mut plot = plot();
        plot.x_names = vec!["p50".into(), "p99".into(), "max".into()];
        plot.curves[0].points = vec![(0.0, 3.0), (1.0, 40.0), (2.0, 500.0)];
        plot.y_scale = Scale::Logarithmic;
        let svg = plot.svg();
        assert!(svg.contains(">p99<") && svg.contains(">100<") && svg.contains(">10<"));
    }
}
