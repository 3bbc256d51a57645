//! The picture of a tree: a line for the memtable and one for each level, with a bar for its fill.
//!
//! The width of a bar is logarithmic in the capacity, so a constant growth factor is a constant step;
//! its fill is proportional to the bytes. The runs of a level are separated by a thin line.

use std::fmt;

use terrane_policy::memtable_choice::MemtableSelection;
use terrane_policy::units::{grouped, short_bytes as human};
use terrane_policy::{Admission, Level, Run};

use super::{CompactionFilterView, TreeView};

/// The columns of a picture whose format has no width.
const COLUMNS_DEFAULT: usize = 80;

/// A wider bar shows nothing more.
const WIDEST_BAR: usize = 48;

/// A narrower bar shows nothing, so a picture is at least this wide.
const NARROWEST_BAR: usize = 8;

/// The names of the columns of numbers.
const NAMES: [&str; 6] = ["size", "capacity", "runs", "tables", "entries", "tombstones"];

/// A line of the picture.
struct Line {
    name: String,
    capacity: u64,
    bar: Bar,
    /// The cells of [`NAMES`].
    cells: [String; NAMES.len()],
}

/// What a bar shows.
struct Bar {
    /// The bytes of each run, newest first.
    runs: Vec<u64>,
    is_empty: bool,
}

impl fmt::Display for TreeView {
    /// Draws the memtable and each level. The width of the format is the number of columns that the
    /// picture may take, and 80 if the format has none: `{tree:100}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = lines(self);
        let columns = f.width().unwrap_or(COLUMNS_DEFAULT);
        let widths: [usize; NAMES.len()] = std::array::from_fn(|column| {
            let cells = lines.iter().map(|line| line.cells[column].chars().count());
            match cells.max() {
                // No level has tombstones, for example.
                None | Some(0) => 0,
                Some(width) => width.max(NAMES[column].len()),
            }
        });
        let name_width = lines.iter().map(|line| line.name.len()).max().unwrap_or(0);
        let numbers: usize = widths.iter().filter(|width| **width > 0).map(|width| width + 2).sum();
        // A blank and the two ends of the bar.
        let around = name_width + 3 + numbers;
        let widest = columns.saturating_sub(around).clamp(NARROWEST_BAR, WIDEST_BAR);
        write_line(
            f,
            &format!("{:1$}", "", name_width + 3 + widest),
            &NAMES.map(String::from),
            widths,
        )?;
        let scale = BarScale::of(&lines, widest);
        for (number, line) in lines.iter().enumerate() {
            let bar = scale.bar(&line.bar, line.capacity);
            let blank = " ".repeat(widest.saturating_sub(scale.width(line.capacity)));
            let start = format!("{:<name_width$} ▕{bar}▏{blank}", line.name);
            write_line(f, &start, &line.cells, widths)?;
            if number == 0 {
                self.write_memtables(f, name_width)?;
            }
        }
        self.write_summary(f)
    }
}

fn write_line(
    f: &mut fmt::Formatter<'_>,
    start: &str,
    cells: &[String; NAMES.len()],
    widths: [usize; NAMES.len()],
) -> fmt::Result {
    let mut line = start.to_owned();
    for (cell, width) in cells.iter().zip(widths).filter(|(_, width)| *width > 0) {
        line.push_str(&format!("  {cell:>width$}"));
    }
    writeln!(f, "{}", line.trim_end())
}

impl TreeView {
    /// Writes the memtables that await their flush, and the kind that was chosen.
    fn write_memtables(&self, f: &mut fmt::Formatter<'_>, indent: usize) -> fmt::Result {
        if self.immutable_memtables > 0 {
            let waiting = counted(self.immutable_memtables, "immutable memtable");
            writeln!(f, "{:indent$} {waiting} to be flushed", "")?;
        }
        if let Some(MemtableSelection { kind, reason, .. }) = &self.memtable_choice {
            writeln!(f, "{:indent$} {kind}: {reason}", "")?;
        }
        Ok(())
    }

    fn write_summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = &self.shape;
        write!(
            f,
            "{} in {} and {}",
            human(shape.size_bytes()),
            counted(shape.table_count(), "table"),
            counted(shape.run_count(), "sorted run")
        )?;
        if !shape.value_files.is_empty() {
            let (bytes, live) = (shape.value_bytes(), shape.live_value_bytes());
            let share = bytes as f64 / live.max(1) as f64;
            let files = counted(shape.value_files.len(), "value file");
            let (bytes, live) = (human(bytes), human(live));
            write!(f, "\n{bytes} of values in {files}, {share:.2} times the {live} that are live")?;
        }
        if let Some(CompactionFilterView { name, inactive }) = &self.compaction_filter {
            match inactive {
                None => write!(f, "\ncompactions apply the filter '{name}'")?,
                Some(why) => write!(f, "\ncompactions do not apply the filter '{name}': {why}")?,
            }
        }
        for compaction in &self.compactions {
            write!(f, "\ncompacting {compaction}")?;
        }
        match self.admission {
            Admission::Proceed => Ok(()),
            Admission::Delay(pressure) => write!(f, "\nwriters are delayed: {pressure}"),
            Admission::Stop(pressure) => write!(f, "\nwriters are stopped: {pressure}"),
        }
    }
}

fn lines(view: &TreeView) -> Vec<Line> {
    let design = view.design.with_scaled_capacities(&view.shape);
    let last = view.shape.last_level();
    let capacity = view.design.buffer_bytes;
    let bytes = view.memtable_bytes;
    let [size, of, entries] = [human(bytes), human(capacity), grouped(view.memtable_entries)];
    let memtable = Line {
        name: "memtable".into(),
        capacity,
        bar: Bar { runs: vec![bytes], is_empty: view.memtable_entries == 0 },
        cells: [size, of, String::new(), String::new(), entries, String::new()],
    };
    let levels = view.shape.levels.iter().enumerate();
    let levels =
        levels.map(|(index, level)| level_line(index, level, design.capacity_bytes(index, last)));
    std::iter::once(memtable).chain(levels).collect()
}

fn level_line(index: usize, level: &Level, capacity: u64) -> Line {
    let tables = level.runs.iter().flat_map(|run| &run.tables);
    let (entries, tombstones) = tables.fold((0, 0), |sum, table| {
        (sum.0 + table.entries, sum.1 + table.tombstones + table.range_tombstones)
    });
    let tombstones = if tombstones > 0 { grouped(tombstones) } else { String::new() };
    Line {
        name: format!("level {index}"),
        capacity,
        bar: Bar {
            runs: level.runs.iter().map(Run::size_bytes).collect(),
            is_empty: level.runs.is_empty(),
        },
        cells: [
            human(level.size_bytes()),
            human(capacity),
            grouped(level.runs.len() as u64),
            grouped(level.table_count() as u64),
            grouped(entries),
            tombstones,
        ],
    }
}

/// The widths of bars: logarithmic in the capacity, from the narrowest to the widest.
struct BarScale {
    smallest: u64,
    largest: u64,
    widest: usize,
}

impl BarScale {
    fn of(lines: &[Line], widest: usize) -> Self {
        let capacities = || lines.iter().map(|line| line.capacity.max(1));
        let (smallest, largest) =
            (capacities().min().unwrap_or(1), capacities().max().unwrap_or(1));
        Self { smallest, largest, widest }
    }

    fn width(&self, capacity: u64) -> usize {
        let log = |bytes: u64| (bytes.max(1) as f64).ln();
        let span = log(self.largest) - log(self.smallest);
        let share = if span > 0.0 { (log(capacity) - log(self.smallest)) / span } else { 1.0 };
        let steps = self.widest.saturating_sub(NARROWEST_BAR) as f64;
        NARROWEST_BAR + (share.clamp(0.0, 1.0) * steps).round() as usize
    }

    /// Returns the inside of a bar.
    fn bar(&self, bar: &Bar, capacity: u64) -> String {
        let width = self.width(capacity);
        let size: u64 = bar.runs.iter().sum();
        let eighths = if bar.is_empty { 0 } else { eighths(size, capacity, width) };
        let mut cells = vec!['█'; eighths / 8];
        let mut bytes_before = 0;
        for run in bar.runs.iter().take(bar.runs.len().saturating_sub(1)) {
            bytes_before += run;
            let at = eighths_of(bytes_before, size, eighths) / 8;
            // A run too small for a cell is not shown separately.
            if let (true, Some(cell)) = (at > 0, cells.get_mut(at)) {
                *cell = '▐';
            }
        }
        cells.extend("▏▎▍▌▋▊▉".chars().nth((eighths % 8).wrapping_sub(1)));
        cells.resize(width, ' ');
        cells.into_iter().collect()
    }
}

/// Returns the filled eighths of cells, at least one.
fn eighths(part: u64, whole: u64, width: usize) -> usize {
    let share = if whole == 0 { 1.0 } else { (part as f64 / whole as f64).clamp(0.0, 1.0) };
    ((share * (width * 8) as f64).round() as usize).clamp(1, width * 8)
}

fn eighths_of(part: u64, whole: u64, eighths: usize) -> usize {
    (part as f64 / whole.max(1) as f64 * eighths as f64) as usize
}

fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(count as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use terrane_policy::{Design, TreeShape};

    const TREE: &str = "\
L0 r9: 9=a..=z:1048576,entries=1000
L0 r8: 8=a..=z:1048576,entries=2000
L1 r7: 1=a..=f:1048576 2=g..=m:1048576
";

    fn view(shape: &str) -> TreeView {
        let design: Design = "balanced buffer=1MiB base=4MiB".parse().unwrap();
        let shape: TreeShape = shape.parse().unwrap();
        let mut view = TreeView::new("default", design, shape);
        (view.memtable_bytes, view.memtable_entries) = (1 << 19, 10);
        view
    }

    #[test]
    fn every_level_is_a_line_and_runs_are_set_apart() {
        let text = view(TREE).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert_eq!(lines[0].trim_start(), "size  capacity  runs  tables  entries", "{text}");
        assert!(lines[1].starts_with("memtable ▕████    ▏"), "{text}");
        assert_eq!(lines[2].matches('▐').count(), 1, "{text}");
        assert_eq!(lines[3].matches('▐').count(), 0, "{text}");
        assert!(lines[2].ends_with("2.00 MiB  4.00 MiB     2       2    3,000"), "{text}");
        assert_eq!(lines[4], "4.00 MiB in 4 tables and 3 sorted runs");
    }

    #[test]
    fn pictures_are_as_wide_as_their_format_allows() {
        let width = |text: &str| text.lines().map(|line| line.chars().count()).max();
        let mut view = view(TREE);
        assert_eq!(width(&view.to_string()), Some(80));
        assert_eq!(width(&format!("{view:70}")), Some(70));
        assert!(width(&format!("{view:200}")) > Some(80));
        view.shape = "L0 r9: 9=a..=z:1048576,entries=1000000,tombstones=100000\n".parse().unwrap();
        let text = view.to_string();
        assert!(text.contains("tombstones\n") && text.contains("100,000\n"), "{text}");
        assert_eq!(width(&text), Some(80), "{text}");
    }

    #[test]
    fn an_empty_memtable_has_an_empty_bar() {
        let mut view = view("");
        let bar = |view: &TreeView| {
            let text = view.to_string();
            text.split(['▕', '▏']).nth(1).unwrap().trim_end().to_owned()
        };
        (view.memtable_bytes, view.memtable_entries) = (4096, 0);
        assert_eq!(bar(&view), "");
        assert!(view.to_string().contains("0 B in 0 tables"));
        view.memtable_entries = 1;
        // The smallest fill uses the same character as the right end of a bar.
        assert!(view.to_string().contains("▕▏ "), "{view}");
        view.immutable_memtables = 2;
        assert!(view.to_string().contains("\n         2 immutable memtables to be flushed\n"));
    }

    #[test]
    fn value_files_are_summed_up() {
        let text = view(
            "L1 r7: 1=a..=f:1048576,values=3:3MiB/30+4:1MiB/10\nV 3: 4MiB,values=40\n\
             V 4: 1MiB,values=10,state=unflushed\n",
        );
        let text = text.to_string();
        let last = text.lines().last().unwrap();
        assert_eq!(
            last,
            "5.00 MiB of values in 2 value files, 1.25 times the 4.00 MiB that are live"
        );
        assert!(!view(TREE).to_string().contains("value"));
    }
}
