//! Aligned tables, with a line below the header on a terminal.
//!
//! A table that is wider than the terminal is printed in several parts, one below the other. Each
//! part begins with the columns that name the rows.

use crate::terminal::{columns, is_output_for_people};
use crate::wrap::width;

/// The blanks between two columns.
const GAP: &str = "  ";

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    headers: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

/// Returns an empty table with these headers. Its leading columns of text name the rows.
pub(crate) fn table(headers: &[(&str, Align)]) -> Table {
    let headers = headers.iter().map(|(name, align)| ((*name).to_owned(), *align)).collect();
    Table { headers, rows: Vec::new() }
}

/// Returns the lines of a table, which fit standard output, without trailing blanks.
pub(crate) fn lines(table: &Table) -> impl Iterator<Item = String> + use<> {
    table.lines(columns(), is_output_for_people()).into_iter()
}

impl Table {
    /// Adds a row with a cell for each column.
    pub(crate) fn add_row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    fn lines(&self, columns: Option<usize>, has_rule: bool) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, part) in self.parts(columns).iter().enumerate() {
            if number > 0 {
                lines.push(String::new());
            }
            let headers = part.iter().map(|&column| self.headers[column].0.as_str());
            lines.push(self.line(part, headers));
            if has_rule {
                lines.push("─".repeat(self.width_of(part)));
            }
            for row in &self.rows {
                let cells = part.iter().map(|&column| row.get(column).map_or("", String::as_str));
                lines.push(self.line(part, cells));
            }
        }
        lines
    }

    /// Returns the columns of each part.
    fn parts(&self, columns: Option<usize>) -> Vec<Vec<usize>> {
        let all: Vec<usize> = (0..self.headers.len()).collect();
        let Some(columns) = columns.filter(|columns| self.width_of(&all) > *columns) else {
            return vec![all];
        };
        let names = self.names(columns);
        let mut parts: Vec<Vec<usize>> = Vec::new();
        for column in names.len()..self.headers.len() {
            match parts.last_mut() {
                Some(part) if self.width_with(part, column) <= columns => part.push(column),
                _ => parts.push([&names[..], &[column]].concat()),
            }
        }
        parts
    }

    /// Returns the leading columns of text, which name the rows, as far as they fit half of the
    /// width.
    fn names(&self, columns: usize) -> Vec<usize> {
        let mut names: Vec<usize> = Vec::new();
        for (column, (_, align)) in self.headers.iter().enumerate() {
            let is_wide = column > 0 && self.width_with(&names, column) > columns / 2;
            if *align == Align::Right || is_wide || column + 1 == self.headers.len() {
                break;
            }
            names.push(column);
        }
        names
    }

    fn width_with(&self, part: &[usize], column: usize) -> usize {
        self.width_of(&[part, &[column]].concat())
    }

    fn width_of(&self, part: &[usize]) -> usize {
        let cells: usize = part.iter().map(|&column| self.column_width(column)).sum();
        cells + GAP.len() * part.len().saturating_sub(1)
    }

    fn column_width(&self, column: usize) -> usize {
        let header = self.headers.get(column).map_or(0, |(name, _)| width(name));
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell));
        cells.max().unwrap_or(0).max(header)
    }

    fn line<'a>(&self, part: &[usize], cells: impl Iterator<Item = &'a str>) -> String {
        let padded = part.iter().zip(cells).map(|(&column, cell)| {
            let blanks = " ".repeat(self.column_width(column).saturating_sub(width(cell)));
            match self.headers[column].1 {
                Align::Left => format!("{cell}{blanks}"),
                Align::Right => format!("{blanks}{cell}"),
            }
        });
        padded.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Table {
        let mut table = table(&[
            ("name", Align::Left),
            ("ops/s", Align::Right),
            ("p99", Align::Right),
            ("stalls", Align::Left),
        ]);
        table.add_row(["fill", "433,276", "2.33", "394 ms"]);
        table.add_row(["read", "9", "15", "-"]);
        table
    }

    #[test]
    fn columns_are_aligned() {
        let lines = example().lines(None, true);
        assert_eq!(
            lines,
            [
                "name    ops/s   p99  stalls",
                "─────────────────────────────",
                "fill  433,276  2.33  394 ms",
                "read        9    15  -",
            ]
            .map(|line| line.replace("─────────────────────────────", &"─".repeat(27)))
        );
    }

    #[test]
    fn a_wide_table_is_printed_in_parts_with_the_names_in_each() {
        let lines = example().lines(Some(20), false);
        let expected = [
            "name    ops/s   p99",
            "fill  433,276  2.33",
            "read        9    15",
            "",
            "name  stalls",
            "fill  394 ms",
            "read  -",
        ];
        assert_eq!(lines, expected);
        let all = example().lines(Some(27), false);
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn a_column_wider_than_the_terminal_is_whole() {
        let lines = example().lines(Some(5), false);
        assert_eq!(lines.iter().filter(|line| line.starts_with("name")).count(), 3);
    }
}
