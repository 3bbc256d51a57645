//! Writes a plot as SVG.

use std::fmt::Write;

use super::scale::{Axis, Scale, label};
use super::{Plot, Stroke};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 58.0;
const BOTTOM: f64 = 46.0;

/// The palette of Okabe and Ito, which colour-blind readers can distinguish.
pub(super) const COLOURS: [&str; 6] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/// The height of a row below the plot, and of its coloured part.
const STRIP: f64 = 18.0;
const STRIP_COLOURED: f64 = 13.0;

/// A curve with more points than this is a line without marks.
const MARKED_MAX: usize = 24;

/// The left edge of a plot with rows below it, whose names are longer than the numbers of ticks.
const LEFT_OF_STRIPS: f64 = 150.0;

/// Escapes text for XML and HTML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The axes of a plot, mapped to coordinates.
struct Frame {
    x: Axis,
    y: Axis,
    left: f64,
}

impl Frame {
    fn of(plot: &Plot) -> Self {
        let points = || plot.curves.iter().flat_map(|curve| &curve.points);
        let x = if plot.x_names.is_empty() {
            let ends = points().map(|(x, _)| *x).filter(|x| x.is_finite());
            let bands = plot.bands.iter().map(|(_, end)| *end);
            Axis::along(ends.chain(bands))
        } else {
            Axis::exactly(-0.25, plot.x_names.len() as f64 - 0.75)
        };
        let left = if plot.strips.is_empty() { LEFT } else { LEFT_OF_STRIPS };
        Self { x, y: Axis::over(plot.y_scale, points().map(|(_, y)| *y)), left }
    }

    fn x(&self, value: f64) -> Option<f64> {
        self.x.place(value).map(|place| self.left + place * (WIDTH - self.left - RIGHT))
    }

    fn y(&self, value: f64) -> Option<f64> {
        self.y.place(value).map(|place| HEIGHT - BOTTOM - place * (HEIGHT - TOP - BOTTOM))
    }
}

/// Draws the mark of an axis that is broken between its lower end and zero.
pub(super) fn axis_break(out: &mut String, x: f64, y: f64) -> std::fmt::Result {
    writeln!(
        out,
        "<path class=\"break\" d=\"M{:.1} {:.1}l8 -5m-8 9l8 -5\" fill=\"none\" stroke=\"#666\"/>",
        x - 4.0,
        y + 0.5
    )
}

/// Renders the whole document.
pub(super) fn document(plot: &Plot) -> String {
    let frame = Frame::of(plot);
    let height = HEIGHT + STRIP * plot.strips.len() as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
         <title>{title}</title>\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"{left}\" y=\"20\" font-size=\"14\" font-weight=\"600\">{title}</text>\n",
        left = LEFT,
        title = escaped(&plot.title)
    );
    // Writing to a String cannot fail.
    let _ = bands(&mut out, plot, &frame);
    let _ = axes(&mut out, plot, &frame);
    let _ = curves(&mut out, plot, &frame);
    let _ = strips(&mut out, plot, &frame);
    out.push_str("</svg>\n");
    out
}

fn bands(out: &mut String, plot: &Plot, frame: &Frame) -> std::fmt::Result {
    for (from, to) in &plot.bands {
        let (Some(from), Some(to)) = (frame.x(*from), frame.x(*to)) else { continue };
        writeln!(
            out,
            "<rect class=\"band\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\" \
             fill=\"#d55e00\" fill-opacity=\"0.2\"/>",
            (to - from).max(1.0),
            HEIGHT - TOP - BOTTOM
        )?;
    }
    Ok(())
}

fn axes(out: &mut String, plot: &Plot, frame: &Frame) -> std::fmt::Result {
    let (left, bottom, right) = (frame.left, HEIGHT - BOTTOM, WIDTH - RIGHT);
    writeln!(out, "<g stroke=\"#ddd\" stroke-width=\"1\">")?;
    for y in frame.y.ticks().into_iter().filter_map(|tick| frame.y(tick)) {
        writeln!(out, "<line x1=\"{left}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>")?;
    }
    if let Some(place) = frame.y.break_place() {
        axis_break(out, left, bottom - place * (bottom - TOP))?;
    }
    writeln!(out, "</g>\n<g fill=\"#333\" text-anchor=\"end\">")?;
    for tick in frame.y.ticks() {
        let Some(y) = frame.y(tick) else { continue };
        writeln!(out, "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>", left - 6.0, y + 4.0, label(tick))?;
    }
    writeln!(out, "</g>\n<g fill=\"#333\" text-anchor=\"middle\">")?;
    let named = plot.x_names.iter().enumerate().map(|(at, name)| (at as f64, escaped(name)));
    let numbers = frame.x.ticks().into_iter().map(|tick| (tick, label(tick)));
    let ticks: Vec<_> = if plot.x_names.is_empty() { numbers.collect() } else { named.collect() };
    for (at, name) in ticks {
        let Some(x) = frame.x(at) else { continue };
        writeln!(out, "<text x=\"{x:.1}\" y=\"{:.1}\">{name}</text>", bottom + 16.0)?;
    }
    let (middle, x_label) = (f64::midpoint(left, right), escaped(&plot.x_label));
    writeln!(out, "<text x=\"{middle:.1}\" y=\"{:.1}\">{x_label}</text>", HEIGHT - 8.0)?;
    let logarithmic = if plot.y_scale == Scale::Logarithmic { ", logarithmic" } else { "" };
    let y_label = escaped(&plot.y_label);
    writeln!(
        out,
        "<text x=\"{left}\" y=\"{:.1}\" text-anchor=\"start\" fill=\"#666\">{y_label}{logarithmic}\
         </text>\n</g>",
        TOP - 8.0
    )
}

/// Draws the rows below the plot. A part ends where the axis does.
fn strips(out: &mut String, plot: &Plot, frame: &Frame) -> std::fmt::Result {
    let (left, right) = (frame.left, WIDTH - RIGHT);
    for (number, strip) in plot.strips.iter().enumerate() {
        let (y, colour) = (HEIGHT + STRIP * number as f64, COLOURS[number % COLOURS.len()]);
        writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"11\" text-anchor=\"end\" fill=\"#333\">{}</text>\n\
             <line x1=\"{left}\" y1=\"{base:.1}\" x2=\"{right}\" y2=\"{base:.1}\" stroke=\"#ddd\"/>",
            left - 6.0,
            y + STRIP_COLOURED - 3.0,
            escaped(&strip.name),
            base = y + STRIP_COLOURED
        )?;
        for span in strip.spans.iter().filter(|span| span.strength > 0.0) {
            let Some(from) = frame.x(span.from) else { continue };
            let width = (frame.x(span.to).unwrap_or(right).min(right) - from).max(1.0);
            let label = escaped(&span.label);
            writeln!(
                out,
                "<rect class=\"span\" x=\"{from:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
                 height=\"{STRIP_COLOURED}\" fill=\"{colour}\" fill-opacity=\"{:.2}\"><title>{label}</title></rect>",
                0.15 + 0.6 * span.strength.min(1.0)
            )?;
            // A digit is about 6.5 units wide.
            if width > 6.5 * label.len() as f64 + 4.0 {
                writeln!(
                    out,
                    "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"10\" text-anchor=\"middle\" \
                     fill=\"#222\">{label}</text>",
                    from + width / 2.0,
                    y + STRIP_COLOURED - 3.0
                )?;
            }
        }
    }
    Ok(())
}

fn curves(out: &mut String, plot: &Plot, frame: &Frame) -> std::fmt::Result {
    let mut legend_x = WIDTH - RIGHT;
    for (number, curve) in plot.curves.iter().enumerate().rev() {
        let colour = COLOURS[number % COLOURS.len()];
        let dashes = match curve.stroke {
            Stroke::Solid => "",
            Stroke::Dashed => " stroke-dasharray=\"5 4\"",
        };
        let places = curve.points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
        let mut points = String::new();
        for (x, y) in places.filter_map(|(x, y)| frame.x(*x).zip(frame.y(*y))) {
            write!(points, "{x:.1},{y:.1} ")?;
            if curve.points.len() <= MARKED_MAX {
                writeln!(
                    out,
                    "<circle class=\"point\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
                )?;
            }
        }
        writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\" \
             stroke-linejoin=\"round\"{dashes}/>",
            points.trim_end()
        )?;
        // A character is about 6.5 units wide; the sample line before the name is 20 units long.
        let name = escaped(&curve.name);
        writeln!(
            out,
            "<text x=\"{legend_x:.1}\" y=\"38\" text-anchor=\"end\" fill=\"{colour}\">{name}</text>"
        )?;
        legend_x -= 6.5 * curve.name.chars().count() as f64 + 4.0;
        writeln!(
            out,
            "<line x1=\"{:.1}\" y1=\"34\" x2=\"{legend_x:.1}\" y2=\"34\" stroke=\"{colour}\" \
             stroke-width=\"2\"{dashes}/>",
            legend_x - 20.0
        )?;
        legend_x -= 36.0;
    }
    Ok(())
}
