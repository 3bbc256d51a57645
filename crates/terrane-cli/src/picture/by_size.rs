//! The picture of a tree that the library draws, in the columns of the terminal, coloured by level,
//! with the flushes and compactions that made the tree.

use std::fmt::Write;

use terrane::{Stats, TreeView};

use crate::terminal::Paint;
use terrane_lab::output::human::{bytes, counted};

/// The ends of a bar.
const ENDS: [char; 2] = ['▕', '▏'];

/// The counters of flushes and compactions that the picture shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    flushes: u64,
    flush_bytes_written: u64,
    compactions: u64,
    compaction_bytes_read: u64,
    compaction_bytes_written: u64,
    trivial_moves: u64,
}

impl Work {
    /// Returns the counters since the database was opened.
    pub(crate) fn of(stats: &Stats) -> Self {
        Self {
            flushes: stats.flushes,
            flush_bytes_written: stats.flush_bytes_written,
            compactions: stats.compactions,
            compaction_bytes_read: stats.compaction_bytes_read,
            compaction_bytes_written: stats.compaction_bytes_written,
            trivial_moves: stats.trivial_moves,
        }
    }

    fn flushed(&self) -> String {
        let flushes = counted(self.flushes, "flush");
        format!("↓ {flushes} wrote {}", bytes(self.flush_bytes_written))
    }

    fn compacted(&self) -> String {
        format!(
            "↓ {} read {} and wrote {}; {} moved",
            counted(self.compactions, "compaction"),
            bytes(self.compaction_bytes_read),
            bytes(self.compaction_bytes_written),
            counted(self.trivial_moves, "table")
        )
    }
}

/// Draws a tree, level by level, with the flushes and compactions that made it if they are known.
pub(crate) fn by_size(view: &TreeView, work: Option<Work>, columns: usize, paint: Paint) -> String {
    let drawn = format!("{view:columns$}\n");
    let mut text = String::new();
    let mut bars = 0;
    let work = work.as_ref();
    let note = |text: &mut String, what: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "         {}", paint.dim(&what));
    };
    for (number, line) in drawn.lines().enumerate() {
        let Some((name, bar, numbers)) = parts(line) else {
            // The line after the last level; indented lines belong to the memtable.
            if bars > view.shape.levels.len()
                && !line.starts_with(' ')
                && let Some(work) = work
            {
                note(&mut text, work.compacted());
                bars = 0;
            }
            let line = if number == 0 { paint.dim(line) } else { line.to_owned() };
            let _ = writeln!(text, "{line}");
            continue;
        };
        if bars == 1
            && let Some(work) = work
        {
            note(&mut text, work.flushed());
        }
        let (left, right) = (paint.dim("▕"), paint.dim("▏"));
        let bar = paint.level(bars, bar);
        let _ = writeln!(text, "{name}{left}{bar}{right}{numbers}");
        bars += 1;
    }
    text
}

/// Returns the parts of a line with a bar: before it, its inside, and after it.
fn parts(line: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = line.split_once(ENDS[0])?;
    // A bar may end with a thin cell, which looks like the end mark.
    let end = rest.rfind(ENDS[1])?;
    Some((name, &rest[..end], &rest[end + ENDS[1].len_utf8()..]))
}
