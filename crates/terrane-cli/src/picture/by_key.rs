//! The positions of tables on the axis of keys: a line per run, newest first.
//!
//! Neighbouring tables alternate in shade to show their borders. A cell of the axis is a range of
//! keys; cells are equal in size if keys are read as fractions after their common prefix.

use std::fmt::Write;
use std::sync::Arc;

use terrane::TreeView;
use terrane_policy::{KeyRange, Run, TableInfo};

use crate::terminal::Paint;
use terrane_lab::literal;

const WIDTH: usize = 72;

/// Draws a tree, run by run.
pub(crate) fn by_key(view: &TreeView, paint: Paint) -> String {
    let Some(axis) = Axis::of(view) else { return "no tables\n".into() };
    let mut text = String::new();
    for (index, level) in view.shape.levels.iter().enumerate() {
        for (number, run) in level.runs.iter().enumerate() {
            let name = if number == 0 { format!("level {index}") } else { String::new() };
            // Writing to a String cannot fail.
            let cells = paint.level(index + 1, &axis.cells(run));
            let _ = writeln!(text, "{name:<8} {}{cells}{}", paint.dim("▕"), paint.dim("▏"));
        }
    }
    let (first, last) = (literal::print(&axis.first), literal::print(&axis.last));
    let gap = WIDTH.saturating_sub(first.chars().count() + last.chars().count()).max(2);
    let _ = writeln!(text, "{:8}  {}", "", paint.dim(&format!("{first}{}{last}", " ".repeat(gap))));
    text
}

/// The range of keys that the tables cover together.
struct Axis {
    first: Vec<u8>,
    last: Vec<u8>,
    prefix_len: usize,
    low: f64,
    high: f64,
}

impl Axis {
    fn of(view: &TreeView) -> Option<Self> {
        let hull = KeyRange::hull_of(view.shape.tables().map(|table| &table.range))?;
        let first = hull.start.to_vec();
        // An unbounded table holds an unbounded range tombstone; its point keys are bounded.
        let last = match hull.end.as_deref() {
            Some([last @ .., 0]) => last.to_vec(),
            Some(end) => end.to_vec(),
            None => vec![0xff; first.len() + 8],
        };
        let prefix_len = first.iter().zip(&last).take_while(|(a, b)| a == b).count();
        let (low, high) = (fraction(&first, prefix_len), fraction(&last, prefix_len));
        Some(Self { first, last, prefix_len, low, high })
    }

    /// Returns the position of a key, from 0 to the width.
    fn position(&self, key: &[u8]) -> f64 {
        let span = self.high - self.low;
        let share =
            if span > 0.0 { (fraction(key, self.prefix_len) - self.low) / span } else { 0.0 };
        share.clamp(0.0, 1.0) * WIDTH as f64
    }

    fn cells(&self, run: &Run) -> String {
        let mut cells = vec![' '; WIDTH];
        for (number, table) in run.tables.iter().enumerate() {
            let (start, end) = self.span(table);
            let shade = if number.is_multiple_of(2) { '█' } else { '▓' };
            // A cell shows the first table that starts in it, and every table gets a cell.
            for cell in cells.iter_mut().take(end).skip(start) {
                *cell = shade;
            }
        }
        cells.into_iter().collect()
    }

    fn span(&self, table: &Arc<TableInfo>) -> (usize, usize) {
        let start = self.position(&table.range.start).floor() as usize;
        let end = match table.range.end.as_deref() {
            Some(end) => self.position(end).ceil() as usize,
            None => WIDTH,
        };
        let start = start.min(WIDTH - 1);
        (start, end.clamp(start + 1, WIDTH))
    }
}

/// Reads the eight bytes after the prefix as a fraction.
fn fraction(key: &[u8], prefix_len: usize) -> f64 {
    let mut bytes = [0; 8];
    for (byte, &of_key) in bytes.iter_mut().zip(key.iter().skip(prefix_len)) {
        *byte = of_key;
    }
    u64::from_be_bytes(bytes) as f64
}
