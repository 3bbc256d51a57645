//! The pyramid: a line for the memtables and one per level.
//!
//! The width of a bar is logarithmic in the level's capacity, so a constant growth factor is a
//! constant step; its fill is proportional to the level's bytes. Runs are separated.

use std::fmt::Write;

use terrane::{Stats, TreeView};
use terrane_policy::{Admission, Level};

use crate::terminal::Paint;
use terrane_lab::human::{bytes, count, counted};

const NARROWEST: usize = 8;
const WIDEST: usize = 40;

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
}

/// A line of the pyramid.
struct Line {
    name: String,
    bar: String,
    bar_width: usize,
    size: String,
    about: String,
}

/// Draws a tree, level by level, with the flushes and compactions that made it if they are known.
pub(crate) fn by_size(view: &TreeView, work: Option<Work>, paint: Paint) -> String {
    let lines = lines(view);
    let name_width = lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
    let size_width = lines.iter().map(|line| line.size.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        let blank = " ".repeat(WIDEST + 1 - line.bar_width);
        let bar = paint.level(index, &line.bar);
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:<name_width$} {}{bar}{}{blank}{:>size_width$}   {}",
            line.name,
            paint.dim("▕"),
            paint.dim("▏"),
            line.size,
            line.about
        );
        if let (0, Some(work)) = (index, work) {
            let flushes = counted(work.flushes, "flush");
            let wrote = format!("↓ {flushes} wrote {}", bytes(work.flush_bytes_written));
            let _ = writeln!(text, "{:name_width$} {}", "", paint.dim(&wrote));
        }
    }
    if let Some(work) = work {
        let compacted = format!(
            "↓ {} read {} and wrote {}; {} moved down unchanged",
            counted(work.compactions, "compaction"),
            bytes(work.compaction_bytes_read),
            bytes(work.compaction_bytes_written),
            counted(work.trivial_moves, "table")
        );
        let _ = writeln!(text, "{:name_width$} {}", "", paint.dim(&compacted));
    }
    text.push_str(&summary(view, paint));
    text
}

fn summary(view: &TreeView, paint: Paint) -> String {
    let shape = &view.shape;
    let mut text = format!(
        "{} in {} and {}\n",
        paint.bold(&bytes(shape.size_bytes())),
        counted(shape.table_count() as u64, "table"),
        counted(shape.run_count() as u64, "sorted run"),
    );
    if !shape.value_files.is_empty() {
        let (all, live) = (shape.value_bytes(), shape.live_value_bytes());
        let _ = writeln!(
            text,
            "{} of values in {}, {:.2} times the {} that are live",
            paint.bold(&bytes(all)),
            counted(shape.value_files.len() as u64, "value file"),
            all as f64 / live.max(1) as f64,
            bytes(live)
        );
    }
    for compaction in &view.compactions {
        let _ = writeln!(text, "compacting {compaction}");
    }
    match view.admission {
        Admission::Proceed => {}
        Admission::Delay(pressure) => {
            let _ = writeln!(text, "writers are delayed: {pressure}");
        }
        Admission::Stop(pressure) => {
            let _ = writeln!(text, "writers are stopped: {pressure}");
        }
    }
    text
}

fn lines(view: &TreeView) -> Vec<Line> {
    let levels = view.shape.levels.iter();
    let last = view.shape.last_level();
    let design = view.design.fitted(&view.shape);
    let capacities: Vec<u64> =
        (0..view.shape.levels.len()).map(|level| design.capacity_bytes(level, last)).collect();
    let buffer_bytes = view.design.buffer_bytes;
    let widest = capacities.iter().copied().max().unwrap_or(buffer_bytes);
    let mut lines = vec![memtables(view, bar_width(buffer_bytes, buffer_bytes, widest))];
    lines.extend(levels.zip(&capacities).enumerate().map(|(index, (level, &capacity))| {
        let width = bar_width(capacity, buffer_bytes, widest);
        level_line(index, level, capacity, width)
    }));
    lines
}

fn memtables(view: &TreeView, width: usize) -> Line {
    let filled = filled_cells(view.memtable_bytes, view.design.buffer_bytes, width);
    let mut about = counted(view.memtable_entries, "entry");
    if view.immutable_memtables > 0 {
        let waiting = counted(view.immutable_memtables as u64, "immutable memtable");
        let _ = write!(about, ", {waiting} to be flushed");
    }
    Line {
        name: "memtable".into(),
        bar: format!("{}{}", "█".repeat(filled), " ".repeat(width - filled)),
        bar_width: width,
        size: of(view.memtable_bytes, view.design.buffer_bytes),
        about,
    }
}

fn level_line(index: usize, level: &Level, capacity: u64, width: usize) -> Line {
    let tables = level.runs.iter().flat_map(|run| &run.tables);
    let (entries, tombstones) =
        tables.fold((0, 0), |sum, table| (sum.0 + table.entries, sum.1 + table.tombstones));
    let mut about = format!(
        "{} · {} · {}",
        counted(level.runs.len() as u64, "run"),
        counted(level.table_count() as u64, "table"),
        counted(entries, "entry")
    );
    if tombstones > 0 {
        let _ = write!(about, ", {} of them tombstones", count(tombstones));
    }
    Line {
        name: format!("level {index}"),
        bar: run_bar(level, capacity, width),
        bar_width: width,
        size: of(level.size_bytes(), capacity),
        about,
    }
}

fn of(part: u64, whole: u64) -> String {
    format!("{} of {}", bytes(part), bytes(whole))
}

/// Returns the width of a bar for `capacity`, on a logarithmic scale from the narrowest to the widest.
fn bar_width(capacity: u64, smallest: u64, largest: u64) -> usize {
    let log = |bytes: u64| (bytes.max(1) as f64).ln();
    let span = log(largest) - log(smallest);
    let share = if span > 0.0 { (log(capacity) - log(smallest)) / span } else { 1.0 };
    let steps = (WIDEST - NARROWEST) as f64;
    NARROWEST + (share.clamp(0.0, 1.0) * steps).round() as usize
}

/// Returns the number of filled cells, which is at least one if there are any bytes.
fn filled_cells(part: u64, whole: u64, width: usize) -> usize {
    let share = if whole == 0 { 0.0 } else { (part as f64 / whole as f64).clamp(0.0, 1.0) };
    ((share * width as f64).round() as usize).max(usize::from(part > 0)).min(width)
}

/// Draws the runs of a level, newest first, separated by a thin line.
fn run_bar(level: &Level, capacity: u64, width: usize) -> String {
    let filled = filled_cells(level.size_bytes(), capacity, width);
    let mut cells = vec!['█'; filled];
    let mut bytes_before = 0;
    for run in level.runs.iter().skip(1).zip(&level.runs) {
        bytes_before += run.1.size_bytes();
        let at = filled_cells(bytes_before, level.size_bytes(), filled);
        // A run too small for a cell is not shown separately.
        if let (true, Some(cell)) = (at > 0, cells.get_mut(at)) {
            *cell = '▐';
        }
    }
    cells.extend(std::iter::repeat_n(' ', width - filled));
    cells.into_iter().collect()
}
