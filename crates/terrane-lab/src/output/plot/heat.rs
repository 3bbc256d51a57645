//! Heat maps: panels of cells in rows and columns, with one colour scale.
//!
//! A cell shows its number too, so that the map reads without colours; darker is higher.

use std::fmt::Write;

use super::svg::escaped;

const WIDTH: f64 = 1180.0;
/// The width to the left of all panels, for the names of their rows.
const LEFT: f64 = 92.0;
/// The width to the left of the cells of a panel, for the names of its rows.
const PANEL_LEFT: f64 = 24.0;
const PANEL_RIGHT: f64 = 16.0;
/// The height of the title, the colour scale and the names of the columns.
const TOP: f64 = 66.0;
const CELL_HEIGHT: f64 = 25.0;
/// The height of the ticks below a panel with the gap to the next one.
const BELOW: f64 = 28.0;
const BOTTOM: f64 = 16.0;

/// Colours from low to high: lightness falls evenly, so colour-blind readers see the same order.
const COLOURS: [[f64; 3]; 5] = [
    [255.0, 247.0, 217.0],
    [199.0, 227.0, 180.0],
    [92.0, 183.0, 196.0],
    [36.0, 104.0, 172.0],
    [12.0, 36.0, 97.0],
];

/// A cell of a panel.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatCell {
    /// The value that the colour shows; `None` if it is below the scale.
    pub value: Option<f64>,
    /// The text in the cell.
    pub text: String,
    /// The tooltip.
    pub hover: String,
}

/// Panels in rows and columns; all panels have the same cells.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatMap {
    /// The title.
    pub title: String,
    /// The names of the columns of panels.
    pub columns: Vec<String>,
    /// The names of the rows of panels.
    pub rows: Vec<String>,
    /// The label of the horizontal axis of each panel, and its ticks.
    pub x: (String, Vec<String>),
    /// The label of the vertical axis of each panel, and its ticks from the bottom up.
    pub y: (String, Vec<String>),
    /// The ends of the colour scale.
    pub scale: (f64, f64),
    /// The labels of the ends and of the unit of the colour scale.
    pub scale_labels: (String, String),
    /// The panels by row and column, each with its cells by vertical and horizontal tick.
    pub panels: Vec<Vec<Vec<Vec<HeatCell>>>>,
}

impl HeatMap {
    /// Renders the map as an SVG document.
    #[must_use]
    pub fn svg(&self) -> String {
        let panel_height = self.y.1.len() as f64 * CELL_HEIGHT + BELOW;
        let height = TOP + panel_height * self.rows.len() as f64 + BOTTOM;
        let title = escaped(&self.title);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
             role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
             <title>{title}</title>\n\
             <rect width=\"{WIDTH}\" height=\"{height:.0}\" fill=\"#fff\"/>\n\
             <text x=\"0\" y=\"17\" font-size=\"15\" font-weight=\"600\">{title}</text>\n"
        );
        let panel_width = (WIDTH - LEFT) / self.columns.len().max(1) as f64;
        // Writing to a String cannot fail.
        let _ = self.draw_scale(&mut out);
        for (column, name) in self.columns.iter().enumerate() {
            let x = LEFT + panel_width * column as f64 + PANEL_LEFT;
            let name = escaped(name);
            let _ = writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{:.1}\" font-weight=\"600\" fill=\"#222\">{name}</text>",
                TOP - 9.0
            );
        }
        for (row, name) in self.rows.iter().enumerate() {
            let y = TOP + panel_height * row as f64;
            let _ = writeln!(
                out,
                "<text x=\"0\" y=\"{:.1}\" font-weight=\"600\" fill=\"#222\">{}</text>",
                y + CELL_HEIGHT * 0.66,
                escaped(name)
            );
            for column in 0..self.columns.len() {
                let x = LEFT + panel_width * column as f64;
                let cells = self.panels.get(row).and_then(|row| row.get(column));
                let Some(cells) = cells else { continue };
                let _ = self.draw_panel(&mut out, (x, y), panel_width, cells);
            }
        }
        out.push_str("</svg>\n");
        out
    }

    fn draw_scale(&self, out: &mut String) -> std::fmt::Result {
        const STEPS: u32 = 40;
        let (width, y) = (220.0, 6.0);
        let left = WIDTH - width - 60.0;
        for step in 0..STEPS {
            let part = f64::from(step) / f64::from(STEPS - 1);
            writeln!(
                out,
                "<rect x=\"{:.1}\" y=\"{y}\" width=\"{:.1}\" height=\"12\" fill=\"{}\"/>",
                left + width * f64::from(step) / f64::from(STEPS),
                width / f64::from(STEPS) + 0.5,
                colour(part)
            )?;
        }
        let (low, high) = (escaped(&self.scale_labels.0), escaped(&self.scale_labels.1));
        writeln!(
            out,
            "<text x=\"{:.1}\" y=\"16\" text-anchor=\"end\" fill=\"#333\">{low}</text>\
             <text x=\"{:.1}\" y=\"16\" fill=\"#333\">{high}</text>",
            left - 6.0,
            left + width + 6.0
        )
    }

    fn draw_panel(
        &self,
        out: &mut String,
        (left, top): (f64, f64),
        width: f64,
        cells: &[Vec<HeatCell>],
    ) -> std::fmt::Result {
        let (from, columns) = (left + PANEL_LEFT, self.x.1.len().max(1));
        let cell_width = (width - PANEL_LEFT - PANEL_RIGHT) / columns as f64;
        let rows = self.y.1.len();
        for (row, name) in self.y.1.iter().enumerate() {
            let y = top + CELL_HEIGHT * (rows - 1 - row) as f64;
            writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#333\">{}</text>",
                from - 5.0,
                y + CELL_HEIGHT * 0.66,
                escaped(name)
            )?;
            for (column, cell) in cells.get(row).into_iter().flatten().enumerate() {
                let x = from + cell_width * column as f64;
                self.draw_cell(out, (x, y), cell_width, cell)?;
            }
        }
        let y = top + CELL_HEIGHT * rows as f64 + 14.0;
        for (column, name) in self.x.1.iter().enumerate() {
            let x = from + cell_width * (column as f64 + 0.5);
            let name = if column == 0 { format!("{}{name}", self.x.0) } else { name.clone() };
            writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" fill=\"#333\">{}</text>",
                escaped(&name)
            )?;
        }
        Ok(())
    }

    fn draw_cell(
        &self,
        out: &mut String,
        (x, y): (f64, f64),
        width: f64,
        cell: &HeatCell,
    ) -> std::fmt::Result {
        let (low, high) = self.scale;
        let part = cell.value.map(|value| ((value - low) / (high - low)).clamp(0.0, 1.0));
        let fill = part.map_or("#ececec".to_owned(), colour);
        let ink = if part.is_some_and(|part| part > 0.6) { "#fff" } else { "#222" };
        writeln!(
            out,
            "<g class=\"cell\"><title>{}</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{CELL_HEIGHT}\" fill=\"{fill}\" stroke=\"#fff\"/><text x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\" fill=\"{ink}\">{}</text></g>",
            escaped(&cell.hover),
            x + width / 2.0,
            y + CELL_HEIGHT * 0.66,
            escaped(&cell.text)
        )
    }
}

/// Returns the colour at a part of the scale.
fn colour(part: f64) -> String {
    let place = part.clamp(0.0, 1.0) * (COLOURS.len() - 1) as f64;
    let at = (place as usize).min(COLOURS.len() - 2);
    let (low, high, rest) = (COLOURS[at], COLOURS[at + 1], place - at as f64);
    let mix = |channel: usize| (low[channel] + (high[channel] - low[channel]) * rest).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> HeatMap {
        let cell = |value: f64| HeatCell {
            value: (value > 0.0).then_some(value),
            text: format!("{value}"),
            hover: "a < b".into(),
        };
        let panel = |first: f64| vec![vec![cell(first), cell(75.0)], vec![cell(100.0), cell(0.0)]];
        HeatMap {
            title: "shares & rates".into(),
            columns: vec!["fair".into(), "greedy".into()],
            rows: vec!["global".into()],
            x: ("T=".into(), vec!["2".into(), "10".into()]),
            y: ("levels".into(), vec!["3".into(), "4".into()]),
            scale: (50.0, 100.0),
            scale_labels: ("50 %".into(), "100 %".into()),
            panels: vec![vec![panel(50.0), panel(55.0)]],
        }
    }

    #[test]
    fn every_cell_has_its_colour_and_its_number() {
        let svg = map().svg();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("shares &amp; rates") && svg.contains("a &lt; b"));
        assert_eq!(svg.matches("class=\"cell\"").count(), 8);
        // Both ends of the scale, and the cells below it.
        let cell = |fill: &str| svg.matches(&format!("height=\"25\" fill=\"{fill}\"")).count();
        assert_eq!([cell(&colour(0.0)), cell(&colour(1.0)), cell("#ececec")], [1, 2, 2]);
        for tag in ["svg", "text", "g", "title"] {
            let opened =
                svg.matches(&format!("<{tag} ")).count() + svg.matches(&format!("<{tag}>")).count();
            assert_eq!(opened, svg.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }

    #[test]
    fn rows_rise_and_missing_panels_stay_empty() {
        let mut map = map();
        let svg = map.svg();
        let y_of = |name: &str| {
            let before = svg.split(&format!(" text-anchor=\"end\" fill=\"#333\">{name}<")).next();
            before.unwrap().rsplit("y=\"").next().unwrap().split('"').next().unwrap().to_owned()
        };
        assert!(y_of("4").parse::<f64>().unwrap() < y_of("3").parse::<f64>().unwrap());
        map.panels.clear();
        assert_eq!(map.svg().matches("class=\"cell\"").count(), 0);
        assert!(!map.svg().contains("NaN"));
    }

    #[test]
    fn colours_get_darker() {
        let lightness = |part: f64| {
            let colour = colour(part);
            let channel = |at: usize| u32::from_str_radix(&colour[at..at + 2], 16).unwrap();
            channel(1) * 30 + channel(3) * 59 + channel(5) * 11
        };
        let all: Vec<u32> = (0..=20).map(|step| lightness(f64::from(step) / 20.0)).collect();
        assert!(all.windows(2).all(|pair| pair[0] > pair[1]), "{all:?}");
    }
}
