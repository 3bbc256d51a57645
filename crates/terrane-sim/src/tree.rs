//! A tree of expected contents, and the effects of flushes and compactions on it.
//!
//! The tree has the shape that policy sees, and an expected content for each table. Keys are
//! positions in a key space of uniform density. If a design only takes whole runs, a run is one
//! table, which changes no decision; otherwise tables are cut as in the engine.

mod cut;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_policy::compaction::InputGroup;
use terrane_policy::shape::ShapeError;
use terrane_policy::strategy::Scope;
use terrane_policy::{
    Compaction, Design, KeyRange, Placement, Run, RunId, TableId, TableInfo, TreeShape, TriggerKind,
};

use crate::keys::{Content, Population};
use crate::machine::{JobCost, MachineCosts};
use crate::mix::WriteMix;
use cut::ContentRange;
use values::{ValueCounts, ValueSizes};

/// The end of the key space.
const END: u64 = 1 << 60;

/// A tree with the expected contents of its tables.
#[derive(Debug, Clone)]
pub struct SimulatedTree {
    shape: TreeShape,
    contents: BTreeMap<TableId, TableContent>,
    keys: Population,
    /// The bytes of an entry in a table.
    entry_bytes: f64,
    /// The bytes of a tombstone in a table.
    tombstone_bytes: f64,
    /// The bytes of a range tombstone in a table.
    range_tombstone_bytes: f64,
    /// The sizes of values apart; `None` if the design stores the values of these records inline.
    values: Option<ValueSizes>,
    /// The maximum size of a table; `u64::MAX` if a run is one table.
    table_bytes: u64,
    next_table: u64,
    next_run: u64,
}

/// What a table holds.
#[derive(Debug, Clone)]
struct TableContent {
    entries: Content,
    /// Where its values are, if they are apart.
    values: ValueCounts,
}

/// A compaction with its cost and its result, planned at its start.
#[derive(Debug, Clone)]
pub(crate) struct PlannedCompaction {
    pub(crate) compaction: Compaction,
    pub(crate) work: JobCost,
    /// The bytes of merged tables; moved tables cost nothing.
    pub(crate) input_bytes: f64,
    /// The bytes of relocated values, which are part of the cost.
    pub(crate) relocated_bytes: f64,
    removed: Vec<TableId>,
    moved: Vec<Arc<TableInfo>>,
    made: Vec<(ContentRange, [u64; 4])>,
}

/// Returns the first and last positions of a table.
fn bounds(range: &KeyRange) -> (u64, u64) {
    let position = |key: &[u8]| key.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    (position(&range.start), range.end.as_deref().map_or(END, position))
}

fn range(start: u64, end: u64) -> KeyRange {
    KeyRange::new(&start.to_be_bytes(), Some(&end.to_be_bytes()))
}

/// Returns the width of a range relative to the key space.
fn width(start: u64, end: u64) -> f64 {
    end.saturating_sub(start) as f64 / END as f64
}

/// Returns when the oldest tombstone of some tables was flushed, in microseconds.
fn oldest_tombstone(tables: &[Arc<TableInfo>]) -> u64 {
    tables.iter().filter_map(|table| table.oldest_tombstone_micros).min().unwrap_or(u64::MAX)
}

/// Returns true if compactions of a design always take whole runs, so that the boundaries of tables
/// do not matter.
fn takes_whole_runs(design: &Design) -> bool {
    let strategy = &design.strategy;
    let counts_tables =
        |kind: TriggerKind| kind == TriggerKind::FileCount || kind.info().scope == Scope::Table;
    strategy.granularity.values().iter().all(|granularity| granularity.tables().is_none())
        && !strategy.triggers.values().iter().flatten().any(|trigger| counts_tables(trigger.kind()))
}

impl SimulatedTree {
    /// Returns an empty tree for records of a key and a value of these sizes in bytes. Tables are larger than the design
    /// says if there would be more than `tables_max` of them.
    pub fn new(
        design: &Design,
        keys: Population,
        (key_bytes, record_bytes): (f64, f64),
        costs: &MachineCosts,
        tables_max: usize,
    ) -> Self {
        let (values, in_table) = match ValueSizes::of(design, key_bytes, record_bytes) {
            Some((sizes, in_table)) => (Some(sizes), in_table),
            None => (None, record_bytes),
        };
        let entry_bytes = in_table + costs.table_entry_bytes;
        let tombstone_bytes = (key_bytes + costs.table_tombstone_bytes).max(1.0);
        let data = keys.records() * entry_bytes;
        let least = (data / tables_max.max(1) as f64) as u64;
        // Collections of values take single tables.
        let is_uncut = takes_whole_runs(design) && values.is_none();
        let table_bytes = if is_uncut { u64::MAX } else { design.table_bytes.max(least) };
        Self {
            shape: TreeShape::default(),
            contents: BTreeMap::new(),
            keys,
            entry_bytes,
            tombstone_bytes,
            range_tombstone_bytes: tombstone_bytes + key_bytes,
            values,
            table_bytes,
            next_table: 1,
            next_run: 1,
        }
    }

    /// Returns the shape that policy sees.
    pub fn shape(&self) -> &TreeShape {
        &self.shape
    }

    /// Returns the keys of the tree.
    pub fn keys(&self) -> &Population {
        &self.keys
    }

    /// Returns the content of a memtable after `writes` writes, which may change the number of keys.
    pub(crate) fn write(&mut self, writes: f64, mix: &WriteMix) -> Content {
        let content = self.keys.after_writes(writes, mix);
        self.keys.grow(writes, mix);
        content
    }

    /// Returns the maximum size of a table; `None` if a run is one table.
    pub fn table_bytes(&self) -> Option<u64> {
        (self.table_bytes < u64::MAX).then_some(self.table_bytes)
    }

    /// Returns the bytes and entries of a run with this content.
    pub(crate) fn size_of(&self, content: &Content) -> (f64, f64) {
        (self.bytes_of(content, 1.0), self.keys.entries(content, 1.0))
    }

    /// Returns the bytes of tables with this content in a part of the key space.
    fn bytes_of(&self, content: &Content, width: f64) -> f64 {
        let tombstones = content.tombstones(width);
        (self.keys.entries(content, width) - tombstones) * self.entry_bytes
            + tombstones * self.tombstone_bytes
            + content.range_tombstones(width) * self.range_tombstone_bytes
    }

    /// Returns the bytes of values apart that a flush of this content writes to value files.
    pub(crate) fn value_bytes_of(&self, content: &Content) -> f64 {
        let values = self.keys.entries(content, 1.0) - content.tombstones(1.0);
        self.values.map_or(0.0, |sizes| values * sizes.record)
    }

    /// Adds a run to a level, newer than its other runs.
    pub(crate) fn add_run(
        &mut self,
        level: usize,
        content: &Content,
        seqs: (u64, u64),
        micros: u64,
    ) {
        let piece = self.new_data(content);
        let mut pieces = self.cut(vec![piece], &[]);
        self.write_values(&mut pieces, micros);
        let run = RunId(self.take_run());
        for piece in pieces {
            self.put(level, run, piece, [seqs.0, seqs.1, micros, micros]);
        }
    }

    /// Returns the range of all keys with data that no table holds yet.
    fn new_data(&self, content: &Content) -> ContentRange {
        let fresh = self.values.map(|_| self.keys.values_by_group(content)).unwrap_or_default();
        let values = ValueCounts::default();
        ContentRange { start: 0, end: END, content: content.clone(), values, fresh }
    }

    fn take_table(&mut self) -> u64 {
        self.next_table += 1;
        self.next_table - 1
    }

    fn take_run(&mut self) -> u64 {
        self.next_run += 1;
        self.next_run - 1
    }

    fn put(
        &mut self,
        level: usize,
        run: RunId,
        piece: ContentRange,
        [from, upto, micros, oldest_tombstone]: [u64; 4],
    ) {
        let part = width(piece.start, piece.end);
        let entries = self.keys.entries(&piece.content, part);
        let bytes = self.bytes_of(&piece.content, part).round() as u64;
        let mut table =
            TableInfo::new(self.take_table(), range(piece.start, piece.end), bytes.max(1));
        table.value_refs = self.refs_of(&piece.values);
        table.entries = entries.round() as u64;
        table.tombstones = piece.content.tombstones(part).round() as u64;
        table.range_tombstones = piece.content.range_tombstones(part).round() as u64;
        table.oldest_tombstone_micros = table.has_tombstones().then_some(oldest_tombstone);
        (table.smallest_seq, table.largest_seq, table.created_micros) = (from, upto, micros);
        let content = TableContent { entries: piece.content, values: piece.values };
        self.contents.insert(table.id, content);
        self.insert(level, run, Arc::new(table));
    }

    fn insert(&mut self, level: usize, run: RunId, table: Arc<TableInfo>) {
        if self.shape.levels.len() <= level {
            self.shape.levels.resize_with(level + 1, Default::default);
        }
        let runs = &mut self.shape.levels[level].runs;
        let at = runs.partition_point(|other| other.id > run);
        if runs.get(at).is_none_or(|other| other.id != run) {
            runs.insert(at, Run { id: run, tables: Vec::new() });
        }
        let tables = &mut runs[at].tables;
        let at = tables.partition_point(|other| other.range.start < table.range.start);
        tables.insert(at, table);
    }

    fn remove(&mut self, inputs: &Compaction, removed: &[TableId]) {
        for input in &inputs.inputs {
            let Some(level) = self.shape.levels.get_mut(input.level) else { continue };
            let Some(run) = level.runs.iter_mut().find(|run| run.id == input.run) else { continue };
            run.tables.retain(|table| !removed.contains(&table.id));
            level.runs.retain(|run| !run.tables.is_empty());
        }
        let used = self.shape.levels.iter().rposition(|level| !level.runs.is_empty());
        self.shape.levels.truncate(used.map_or(0, |last| last + 1));
    }

    /// Plans a compaction: its cost and its output.
    pub(crate) fn plan(&self, compaction: Compaction, costs: &MachineCosts) -> PlannedCompaction {
        let mut begun = PlannedCompaction {
            work: JobCost::default(),
            input_bytes: 0.0,
            relocated_bytes: 0.0,
            removed: Vec::new(),
            moved: Vec::new(),
            made: Vec::new(),
            compaction,
        };
        let level = begun.compaction.output.level;
        for group in begun.compaction.groups(&self.shape) {
            match group {
                InputGroup::Keep(_) => {}
                InputGroup::Move(table) => begun.moved.push(table),
                InputGroup::Merge(tables) => {
                    let pieces = self.merged(&begun.compaction, &tables, level);
                    let seqs = (
                        tables.iter().map(|table| table.smallest_seq).min().unwrap_or(0),
                        tables.iter().map(|table| table.largest_seq).max().unwrap_or(0),
                    );
                    let oldest = oldest_tombstone(&tables);
                    for table in &tables {
                        begun.input_bytes += table.size_bytes as f64;
                        begun.work.processor_seconds += table.entries as f64 * costs.merge_seconds;
                        begun.removed.push(table.id);
                    }
                    let relocated = self.fresh_bytes(&pieces);
                    begun.input_bytes += relocated;
                    begun.relocated_bytes += relocated;
                    begun.work.written_bytes += relocated;
                    for piece in pieces {
                        let part = width(piece.start, piece.end);
                        begun.work.written_bytes += self.bytes_of(&piece.content, part);
                        begun.made.push((piece, [seqs.0, seqs.1, 0, oldest]));
                    }
                }
            }
        }
        begun.work.read_bytes = begun.input_bytes;
        begun
    }

    /// Plans a flush of `content` that merges with tables of level 0.
    pub(crate) fn plan_flush(
        &self,
        merge: Compaction,
        content: &Content,
        seqs: (u64, u64),
        costs: &MachineCosts,
    ) -> PlannedCompaction {
        let taken = merge.inputs.iter().filter(|input| !input.is_memtable());
        let taken: Vec<Arc<TableInfo>> = taken.flat_map(|input| &input.tables).cloned().collect();
        let pieces = self.cut(self.union(&merge, &taken, Some(content)), &[]);
        let from = taken.iter().map(|table| table.smallest_seq).min().unwrap_or(seqs.0);
        let read_bytes = taken.iter().map(|table| table.size_bytes as f64).sum();
        let entries: f64 = taken.iter().map(|table| table.entries as f64).sum();
        let bytes =
            |piece: &ContentRange| self.bytes_of(&piece.content, width(piece.start, piece.end));
        let oldest = oldest_tombstone(&taken);
        let work = JobCost {
            read_bytes,
            written_bytes: pieces.iter().map(bytes).sum::<f64>() + self.fresh_bytes(&pieces),
            processor_seconds: entries * costs.merge_seconds,
        };
        let made = pieces.into_iter().map(|piece| (piece, [from.min(seqs.0), seqs.1, 0, oldest]));
        PlannedCompaction {
            compaction: merge,
            work,
            input_bytes: read_bytes,
            relocated_bytes: 0.0,
            removed: taken.iter().map(|table| table.id).collect(),
            moved: Vec::new(),
            made: made.collect(),
        }
    }

    /// Returns the range of all possible keys.
    pub(crate) fn all_keys() -> KeyRange {
        range(0, END)
    }

    /// Applies a planned compaction to the tree.
    ///
    /// # Errors
    /// With `check`, when the resulting shape is invalid.
    pub(crate) fn finish(
        &mut self,
        begun: PlannedCompaction,
        micros: u64,
        check: bool,
    ) -> Result<(), ShapeError> {
        let level = begun.compaction.output.level;
        let run = match begun.compaction.output.placement {
            Placement::Join(run) => run,
            Placement::NewRun => RunId(self.take_run()),
        };
        let moved: Vec<TableId> = begun.moved.iter().map(|table| table.id).collect();
        self.remove(&begun.compaction, &begun.removed);
        self.remove(&begun.compaction, &moved);
        for id in &begun.removed {
            self.contents.remove(id);
        }
        for table in begun.moved {
            self.insert(level, run, table);
        }
        let (mut pieces, seqs): (Vec<ContentRange>, Vec<[u64; 4]>) = begun.made.into_iter().unzip();
        self.write_values(&mut pieces, micros);
        for (piece, [from, upto, _, oldest]) in pieces.into_iter().zip(seqs) {
            self.put(level, run, piece, [from, upto, micros, oldest.min(micros)]);
        }
        self.remove_dead_value_files();
        if check { self.shape.check() } else { Ok(()) }
    }
}
