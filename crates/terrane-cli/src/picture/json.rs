//! A tree in JSON.

use serde::Serialize;
use terrane::TreeView;
use terrane_policy::{Admission, Level, Run, TableInfo, ValueFileUsage};

use terrane_lab::output::json::{JsonBytes, SCHEMA};

/// A tree as JSON, with its newest level first.
#[derive(Debug, Serialize)]
pub(crate) struct JsonTree<'a> {
    schema: u32,
    keyspace: &'a str,
    design: String,
    memtable_bytes: u64,
    memtable_entries: u64,
    memtable_capacity_bytes: u64,
    full_memtables: usize,
    levels: Vec<JsonLevel<'a>>,
    table_bytes: u64,
    tables: usize,
    runs: usize,
    value_files: Vec<JsonValueFile>,
    value_bytes: u64,
    value_live_bytes: u64,
    compactions: &'a [String],
    /// The reason why writers are delayed or stopped, if they are.
    pressure: Option<String>,
}

/// A value file.
#[derive(Debug, Serialize)]
pub(crate) struct JsonValueFile {
    value_file: u64,
    bytes: u64,
    values: u64,
    live_bytes: u64,
    live_values: u64,
    state: String,
    created_micros: u64,
    oldest_dead_micros: Option<u64>,
}

#[derive(Debug, Serialize)]
struct JsonLevel<'a> {
    level: usize,
    bytes: u64,
    capacity_bytes: u64,
    filter_bits: f64,
    runs: Vec<JsonRun<'a>>,
}

#[derive(Debug, Serialize)]
struct JsonRun<'a> {
    run: u64,
    tables: Vec<JsonTable<'a>>,
}

#[derive(Debug, Serialize)]
struct JsonTable<'a> {
    table: u64,
    /// The first key, included.
    start: JsonBytes<'a>,
    /// The excluded end of the keys; null if unbounded.
    end: Option<JsonBytes<'a>>,
    bytes: u64,
    entries: u64,
    tombstones: u64,
    range_tombstones: u64,
    /// Entries whose values expire, and the first and the last expiry time.
    expiring: u64,
    expire_from_micros: Option<u64>,
    expire_until_micros: Option<u64>,
    smallest_sequence_number: u64,
    largest_sequence_number: u64,
    /// Bytes of values in value files.
    value_bytes: u64,
}

impl<'a> JsonTree<'a> {
    /// Converts a tree.
    pub(crate) fn of(view: &'a TreeView) -> Self {
        let levels = view.shape.levels.iter().enumerate();
        Self {
            schema: SCHEMA,
            keyspace: &view.keyspace,
            design: view.design.to_string(),
            memtable_bytes: view.memtable_bytes,
            memtable_entries: view.memtable_entries,
            memtable_capacity_bytes: view.design.buffer_bytes,
            full_memtables: view.immutable_memtables,
            levels: levels.map(|(index, level)| JsonLevel::of(index, level, view)).collect(),
            table_bytes: view.shape.size_bytes(),
            tables: view.shape.table_count(),
            runs: view.shape.run_count(),
            value_files: view.shape.value_usage().iter().map(JsonValueFile::of).collect(),
            value_bytes: view.shape.value_bytes(),
            value_live_bytes: view.shape.live_value_bytes(),
            compactions: &view.compactions,
            pressure: match &view.admission {
                Admission::Proceed => None,
                Admission::Delay(pressure) => Some(format!("delayed by {pressure}")),
                Admission::Stop(pressure) => Some(format!("stopped by {pressure}")),
            },
        }
    }
}

impl<'a> JsonLevel<'a> {
    fn of(index: usize, level: &'a Level, view: &TreeView) -> Self {
        let last = view.shape.last_level();
        Self {
            level: index,
            bytes: level.size_bytes(),
            capacity_bytes: view
                .design
                .with_scaled_capacities(&view.shape)
                .capacity_bytes(index, last),
            filter_bits: view.design.filter_bits_at(index, last),
            runs: level.runs.iter().map(JsonRun::of).collect(),
        }
    }
}

impl<'a> JsonRun<'a> {
    fn of(run: &'a Run) -> Self {
        Self {
            run: run.id.0,
            tables: run.tables.iter().map(|table| JsonTable::of(table)).collect(),
        }
    }
}

impl<'a> JsonTable<'a> {
    fn of(table: &'a TableInfo) -> Self {
        Self {
            table: table.id.0,
            start: JsonBytes(&table.range.start),
            end: table.range.end.as_deref().map(JsonBytes),
            bytes: table.size_bytes,
            entries: table.entries,
            tombstones: table.tombstones,
            range_tombstones: table.range_tombstones,
            expiring: table.expiry.map_or(0, |expiry| expiry.entries),
            expire_from_micros: table.expiry.map(|expiry| expiry.first_micros),
            expire_until_micros: table.expiry.map(|expiry| expiry.last_micros),
            smallest_sequence_number: table.smallest_seq,
            largest_sequence_number: table.largest_seq,
            value_bytes: table.value_bytes(),
        }
    }
}

impl JsonValueFile {
    /// Converts a value file.
    pub(crate) fn of(usage: &ValueFileUsage) -> Self {
        let file = &usage.file;
        Self {
            value_file: file.id.0,
            bytes: file.bytes,
            values: file.values,
            live_bytes: usage.live_bytes,
            live_values: usage.live_values,
            state: file.state.to_string(),
            created_micros: file.created_micros,
            oldest_dead_micros: file.oldest_dead_micros,
        }
    }
}
