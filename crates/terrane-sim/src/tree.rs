//! A tree of expected contents, and the effects of flushes and compactions on it.
//!
//! The tree has the shape that policy sees, and an expected content for each table. Keys are positions in
//! a key space of uniform density. If a design only takes whole runs, each run is represented by one
//! table, which changes no decision; otherwise tables are cut as in the engine.

mod changes;
mod cut;
mod planning;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_policy::strategy::Scope;
use terrane_policy::{
    Compaction, Design, Expiry, KeyRange, Run, RunId, TableId, TableInfo, TreeShape, TriggerKind,
};

use crate::keys::{Content, ExpiringValues, Population};
use crate::machine::MachineCosts;
use crate::mix::{EXPIRY_BYTES, WriteMix};
use crate::trace::TableChange;
use cut::ContentRange;
pub(crate) use planning::PlannedCompaction;
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
    /// The bytes of an entry whose value expires. Such values are never separated.
    expiring_entry_bytes: f64,
    /// The bytes of a tombstone in a table.
    tombstone_bytes: f64,
    /// The bytes of a range tombstone in a table.
    range_tombstone_bytes: f64,
    /// The sizes of separated values; `None` if the design stores the values of these records inline.
    values: Option<ValueSizes>,
    /// The maximum size of a table; `u64::MAX` if a run is one table.
    table_bytes: u64,
    next_table: u64,
    next_run: u64,
    /// The tables that entered or left the tree; `None` if they are not recorded.
    changes: Option<Vec<TableChange>>,
}

/// The content of a table.
#[derive(Debug, Clone)]
struct TableContent {
    entries: Content,
    /// The value files of its values, if they are separated.
    values: ValueCounts,
}

/// Returns the policy's view of values that expire.
fn as_expiry(expiring: ExpiringValues) -> Expiry {
    let micros = |seconds: f64| (seconds * 1e6).round() as u64;
    Expiry {
        entries: expiring.values.round() as u64,
        first_micros: micros(expiring.first),
        last_micros: micros(expiring.last),
    }
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

/// Returns true if a design's compactions always take whole runs, so that table boundaries do not matter.
fn takes_whole_runs(design: &Design) -> bool {
    let strategy = &design.strategy;
    let counts_tables =
        |kind: TriggerKind| kind == TriggerKind::FileCount || kind.info().scope == Scope::Table;
    strategy.granularity.values().iter().all(|granularity| granularity.tables().is_none())
        && !strategy.triggers.values().iter().flatten().any(|trigger| counts_tables(trigger.kind()))
}

impl SimulatedTree {
    /// Returns an empty tree for keys and records of these sizes, in bytes. Tables are larger than the
    /// design's table size if there would otherwise be more than `tables_max`.
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
        // Value collections take single tables.
        let is_uncut = takes_whole_runs(design) && values.is_none();
        let table_bytes = if is_uncut { u64::MAX } else { design.table_bytes.max(least) };
        Self {
            shape: TreeShape::default(),
            contents: BTreeMap::new(),
            keys,
            entry_bytes,
            expiring_entry_bytes: record_bytes + EXPIRY_BYTES + costs.table_entry_bytes,
            tombstone_bytes,
            range_tombstone_bytes: tombstone_bytes + key_bytes,
            values,
            table_bytes,
            next_table: 1,
            next_run: 1,
            changes: None,
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

    /// Returns the content of a memtable after `writes` writes in the given interval, in seconds. The
    /// writes may change the number of keys.
    pub(crate) fn write(
        &mut self,
        writes: f64,
        (from, until): (f64, f64),
        mix: &WriteMix,
    ) -> Content {
        let content = self.keys.after_writes(writes, mix);
        self.keys.grow(writes, mix);
        content.expiring(mix.expiring, (from + mix.ttl_seconds, until + mix.ttl_seconds))
    }

    /// Returns the maximum size of a table; `None` if a run is one table.
    pub fn table_bytes(&self) -> Option<u64> {
        (self.table_bytes < u64::MAX).then_some(self.table_bytes)
    }

    /// Returns the bytes and entries of a run with this content.
    pub(crate) fn size_of(&self, content: &Content) -> (f64, f64) {
        (self.bytes_of(content, 1.0), self.keys.entries(content, 1.0))
    }

    /// Returns the table bytes of this content in a part of the key space.
    fn bytes_of(&self, content: &Content, width: f64) -> f64 {
        let tombstones = content.tombstones(width);
        let expiring = content.expiring_values(width).map_or(0.0, |expiring| expiring.values);
        (self.keys.entries(content, width) - tombstones - expiring) * self.entry_bytes
            + expiring * self.expiring_entry_bytes
            + tombstones * self.tombstone_bytes
            + content.range_tombstones(width) * self.range_tombstone_bytes
    }

    /// Returns the bytes of separated values that a flush of this content writes to value files.
    pub(crate) fn value_bytes_of(&self, content: &Content) -> f64 {
        let separated = |sizes: ValueSizes| {
            let lasting = self.keys.lasting_by_group(content);
            lasting.iter().sum::<f64>() * sizes.record
        };
        self.values.map_or(0.0, separated)
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

    /// Returns a range of all keys, with content that is not in tables yet.
    fn new_data(&self, content: &Content) -> ContentRange {
        let fresh = self.values.map(|_| self.keys.lasting_by_group(content)).unwrap_or_default();
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
        table.tombstones = piece.content.tombstones(part).round() as u64;
        let values = piece.content.expiring_values(part);
        table.expiry = values.filter(|expiring| expiring.values >= 0.5).map(as_expiry);
        let expiring = table.expiry.map_or(0, |expiry| expiry.entries);
        table.entries =
            match values.map_or(0.0, |expiring| expiring.values) + piece.content.tombstones(part) {
                // Policy drops a table without lasting values. Rounding must not hide such a table.
                without if entries - without < 0.5 => table.tombstones + expiring,
                _ => (entries.round() as u64).max(table.tombstones + expiring + 1),
            };
        table.range_tombstones = piece.content.range_tombstones(part).round() as u64;
        table.oldest_tombstone_micros = table.has_tombstones().then_some(oldest_tombstone);
        if table.entries == 0 && table.range_tombstones == 0 {
            return;
        }
        (table.smallest_seq, table.largest_seq, table.created_micros) = (from, upto, micros);
        let content = TableContent { entries: piece.content, values: piece.values };
        self.contents.insert(table.id, content);
        self.insert(level, run, Arc::new(table));
    }

    fn insert(&mut self, level: usize, run: RunId, table: Arc<TableInfo>) {
        self.note_added(level, run, &table);
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
        }
        self.note_removed(removed);
        self.remove_empty();
    }

    /// Drops tables that no longer contain values.
    pub(crate) fn drop_tables(&mut self, dropped: &[TableId]) {
        for run in self.shape.levels.iter_mut().flat_map(|level| &mut level.runs) {
            run.tables.retain(|table| !dropped.contains(&table.id));
        }
        dropped.iter().for_each(|id| {
            self.contents.remove(id);
        });
        self.note_removed(dropped);
        self.remove_empty();
    }

    fn remove_empty(&mut self) {
        for level in &mut self.shape.levels {
            level.runs.retain(|run| !run.tables.is_empty());
        }
        let used = self.shape.levels.iter().rposition(|level| !level.runs.is_empty());
        self.shape.levels.truncate(used.map_or(0, |last| last + 1));
    }

    /// Returns the range of all possible keys.
    pub(crate) fn all_keys() -> KeyRange {
        range(0, END)
    }
}
