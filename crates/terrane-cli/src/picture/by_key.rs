//! The positions of tables on the axis of keys: a line per run, newest first.
//!
//! Neighbouring tables alternate in shade to show their borders. A cell of the axis is a range of
//! keys; all cells have about as many entries ([`KeyRanks`]).

use std::fmt::Write;
use std::sync::Arc;

use terrane::TreeView;
use terrane_policy::{Run, TableInfo};

use super::ranks::{KeyRanks, last_key};
use crate::terminal::Paint;
use terrane_lab::input::kv_literal;

/// The columns that a line needs besides its cells: for the name of the level and the ends.
const AROUND: usize = 11;

/// More cells would show no more detail.
const CELLS_MAX: usize = 120;

/// Draws a tree, run by run.
pub(crate) fn by_key(view: &TreeView, columns: usize, paint: Paint) -> String {
    let Some(ranks) = KeyRanks::of(&view.shape) else { return "no tables\n".into() };
    let width = columns.saturating_sub(AROUND).clamp(16, CELLS_MAX);
    let axis = Axis { ranks, width };
    let mut text = String::new();
    for (index, level) in view.shape.levels.iter().enumerate() {
        for (number, run) in level.runs.iter().enumerate() {
            let name = if number == 0 { format!("level {index}") } else { String::new() };
            // Writing to a String cannot fail.
            let cells = paint.level(index + 1, &axis.cells(run));
            let _ = writeln!(text, "{name:<8} {}{cells}{}", paint.dim("▕"), paint.dim("▏"));
        }
    }
    let room = width.saturating_sub(2) / 2;
    let first = shortened(&kv_literal::print(axis.ranks.first()), room);
    let last = shortened(&kv_literal::print(axis.ranks.last()), room);
    let gap = width.saturating_sub(first.chars().count() + last.chars().count());
    let _ = writeln!(text, "{:10}{}", "", paint.dim(&format!("{first}{}{last}", " ".repeat(gap))));
    text
}

/// Returns a key, shortened if it is longer than `room`.
fn shortened(key: &str, room: usize) -> String {
    if key.chars().count() <= room {
        return key.to_owned();
    }
    key.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

/// The axis of keys.
struct Axis {
    ranks: KeyRanks,
    width: usize,
}

impl Axis {
    /// Returns the position of a key, from 0 to the width.
    fn position(&self, key: &[u8]) -> f64 {
        self.ranks.share_below(key).clamp(0.0, 1.0) * self.width as f64
    }

    fn cells(&self, run: &Run) -> String {
        let mut cells = vec![' '; self.width];
        for (number, table) in run.tables.iter().enumerate() {
            let (start, end) = self.span(table);
            let shade = if number.is_multiple_of(2) { '█' } else { '▓' };
            // A cell shows the last table that begins in it or before it.
            for cell in cells.iter_mut().take(end).skip(start) {
                *cell = shade;
            }
        }
        cells.into_iter().collect()
    }

    fn span(&self, table: &Arc<TableInfo>) -> (usize, usize) {
        let start = self.position(&table.range.start).floor() as usize;
        let end = last_key(table).map_or(self.width, |key| self.position(&key).ceil() as usize);
        let start = start.min(self.width - 1);
        (start, end.clamp(start + 1, self.width))
    }
}
