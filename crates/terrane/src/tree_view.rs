//! A description of a tree, for people and programs.

use std::fmt;

use terrane_policy::admission::{Pressure, limited_runs};
use terrane_policy::memtable_choice::MemtableSelection;
use terrane_policy::{Admission, Design, TreeShape};

use crate::engine::{Engine, Tree};
use crate::human::human;

/// The state of a tree.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TreeView {
    /// The keyspace.
    pub keyspace: String,
    /// The design.
    pub design: Design,
    /// With `memtable=auto`, the kind chosen for the active memtable and the reason.
    pub memtable_choice: Option<MemtableSelection>,
    /// Bytes of data and metadata in the active memtable.
    pub memtable_bytes: u64,
    /// Entries in the active memtable.
    pub memtable_entries: u64,
    /// Immutable memtables, which await their flush.
    pub immutable_memtables: usize,
    /// Levels, runs and tables.
    pub shape: TreeShape,
    /// Running compactions and merging flushes, each in a sentence.
    pub compactions: Vec<String>,
    /// The runs that the design limits, and the numbers at which it delays and stops writers.
    pub limited: Pressure,
    /// Whether writers proceed, are delayed or stopped, and why.
    pub admission: Admission,
}

impl TreeView {
    /// Returns the description of a tree with an empty memtable, for pictures of planned trees.
    pub fn new(keyspace: impl Into<String>, design: Design, shape: TreeShape) -> Self {
        Self {
            keyspace: keyspace.into(),
            limited: limited_runs(&shape, &design),
            design,
            memtable_choice: None,
            memtable_bytes: 0,
            memtable_entries: 0,
            immutable_memtables: 0,
            shape,
            compactions: Vec::new(),
            admission: Admission::Proceed,
        }
    }

    pub(crate) fn of(_engine: &Engine, tree: &Tree) -> Self {
        let state = tree.state_arc();
        let compactions = {
            let jobs = tree.jobs();
            jobs.running().map(ToString::to_string).collect()
        };
        let memtable = &state.active.memtable;
        Self {
            keyspace: tree.name.to_string(),
            design: (*tree.design()).clone(),
            memtable_choice: tree.memtable_choice(),
            memtable_bytes: memtable.memory().used_bytes() as u64,
            memtable_entries: memtable.len() as u64,
            immutable_memtables: state.immutables.len(),
            shape: state.version.shape().clone(),
            compactions,
            limited: limited_runs(state.version.shape(), &tree.design()),
            admission: state.admission,
        }
    }
}

/// The width of a bar in characters.
const BAR_WIDTH: usize = 24;

impl fmt::Display for TreeView {
    /// Writes a line for the memtables and one for each level, with a bar for its fill level.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let buffer = self.design.buffer_bytes;
        writeln!(
            f,
            "mem  {:>4}          {} {:>9} of {:<9} {} entries",
            if self.immutable_memtables > 0 {
                format!("+{} full", self.immutable_memtables)
            } else {
                String::new()
            },
            bar(self.memtable_bytes, buffer),
            human(self.memtable_bytes),
            human(buffer),
            self.memtable_entries
        )?;
        if let Some(MemtableSelection { kind, reason, .. }) = &self.memtable_choice {
            writeln!(f, "     {kind}: {reason}")?;
        }
        for (index, level) in self.shape.levels.iter().enumerate() {
            let design = self.design.fitted(&self.shape);
            let capacity = design.capacity_bytes(index, self.shape.last_level());
            let (runs, tables) = (level.runs.len(), level.table_count());
            writeln!(
                f,
                "L{index:<2} {runs:>3} run{} {tables:>4} table{} {} {:>9} of {:<9}",
                plural(runs),
                plural(tables),
                bar(level.size_bytes(), capacity),
                human(level.size_bytes()),
                human(capacity),
            )?;
        }
        let total = human(self.shape.size_bytes());
        let (runs, tables) = (self.shape.run_count(), self.shape.table_count());
        write!(
            f,
            "{total} in {tables} table{}, {runs} sorted run{}",
            plural(tables),
            plural(runs)
        )?;
        if !self.shape.value_files.is_empty() {
            let (files, bytes) = (self.shape.value_files.len(), self.shape.value_bytes());
            let live = self.shape.live_value_bytes();
            let share = bytes as f64 / live.max(1) as f64;
            let (bytes, live) = (human(bytes), human(live));
            write!(f, "\n{bytes} of values in {files} value file{}", plural(files).trim_end())?;
            write!(f, ", {share:.2} times the {live} that are live")?;
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

fn plural(count: usize) -> &'static str {
    if count == 1 { " " } else { "s" }
}

/// Returns a bar for `part` of `whole`, full if `part` is at least `whole`.
fn bar(part: u64, whole: u64) -> String {
    let share = if whole == 0 { 0.0 } else { (part as f64 / whole as f64).clamp(0.0, 1.0) };
    let eighths = (share * (BAR_WIDTH * 8) as f64).ceil() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.extend("▏▎▍▌▋▊▉".chars().nth(eighths % 8 - 1));
    }
    let used = bar.chars().count();
    format!("▕{bar}{}▏", " ".repeat(BAR_WIDTH - used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_they_should_be() {
        for (part, whole) in [(0, 10), (1, 1000), (5, 10), (10, 10), (99, 10), (1, 0)] {
            assert_eq!(bar(part, whole).chars().count(), BAR_WIDTH + 2);
        }
    }
}
