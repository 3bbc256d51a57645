//! Aligned tables: with lines on a terminal, without them when piped.

use comfy_table::{CellAlignment, Table, presets};

use crate::terminal::is_output_for_people;

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Returns an empty table with these headers.
pub(crate) fn table(headers: &[(&str, Align)]) -> Table {
    let mut table = Table::new();
    let preset =
        if is_output_for_people() { presets::UTF8_HORIZONTAL_ONLY } else { presets::NOTHING };
    table.load_style(preset).set_header(headers.iter().map(|(name, _)| *name));
    for (column, (_, align)) in table.column_iter_mut().zip(headers) {
        column.set_cell_alignment(match align {
            Align::Left => CellAlignment::Left,
            Align::Right => CellAlignment::Right,
        });
        column.set_padding((0, 2));
    }
    table
}

/// Returns the lines of a table, without trailing blanks.
pub(crate) fn lines(table: &Table) -> impl Iterator<Item = String> {
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().into_iter()
}
