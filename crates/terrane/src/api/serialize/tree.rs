//! A [`TreeView`] with its levels, runs and tables.

use serde::ser::{Serialize, SerializeMap, Serializer};
use terrane_policy::{Admission, KeyRange, Level, Run, TableInfo};

use crate::api::tree_view::TreeView;

impl Serialize for TreeView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (admission, pressure) = match &self.admission {
            Admission::Proceed => ("proceed", None),
            Admission::Delay(pressure) => ("delay", Some(pressure.to_string())),
            Admission::Stop(pressure) => ("stop", Some(pressure.to_string())),
        };
        let memtable = self.memtable_choice.as_ref().map(|choice| choice.kind.to_string());
        let filter = self.compaction_filter.as_ref().map(|filter| &filter.name);
        let inactive = self.compaction_filter.as_ref().and_then(|filter| filter.inactive);
        let levels = self.shape.levels.iter();
        let levels: Vec<JsonLevel<'_>> = levels.map(JsonLevel::of).collect();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("keyspace", &self.keyspace)?;
        map.serialize_entry("design", &self.design)?;
        map.serialize_entry("memtable_choice", &memtable)?;
        map.serialize_entry("compaction_filter", &filter)?;
        map.serialize_entry("compaction_filter_inactive", &inactive)?;
        map.serialize_entry("memtable_bytes", &self.memtable_bytes)?;
        map.serialize_entry("memtable_entries", &self.memtable_entries)?;
        map.serialize_entry("immutable_memtables", &self.immutable_memtables)?;
        map.serialize_entry("levels", &levels)?;
        map.serialize_entry("value_files", &self.shape.value_files.len())?;
        map.serialize_entry("value_bytes", &self.shape.value_bytes())?;
        map.serialize_entry("compactions", &self.compactions)?;
        map.serialize_entry("admission", admission)?;
        map.serialize_entry("pressure", &pressure)?;
        map.end()
    }
}

#[derive(serde::Serialize)]
struct JsonLevel<'a> {
    runs: Vec<JsonRun<'a>>,
}

#[derive(serde::Serialize)]
struct JsonRun<'a> {
    run: u64,
    tables: Vec<JsonTable<'a>>,
}

#[derive(serde::Serialize)]
struct JsonTable<'a> {
    table: u64,
    /// The first key, included.
    start: JsonKey<'a>,
    /// The exclusive end of the keys; absent if they have no end.
    end: Option<JsonKey<'a>>,
    bytes: u64,
    entries: u64,
    tombstones: u64,
    range_tombstones: u64,
    smallest_sequence_number: u64,
    largest_sequence_number: u64,
    created_micros: u64,
    oldest_tombstone_micros: Option<u64>,
    /// Entries whose values expire, and their first and last expiry times.
    expiring: u64,
    expire_from_micros: Option<u64>,
    expire_until_micros: Option<u64>,
    value_bytes: u64,
}

impl<'a> JsonLevel<'a> {
    fn of(level: &'a Level) -> Self {
        Self { runs: level.runs.iter().map(JsonRun::of).collect() }
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
        let KeyRange { start, end } = &table.range;
        Self {
            table: table.id.0,
            start: JsonKey(start),
            end: end.as_deref().map(JsonKey),
            bytes: table.size_bytes,
            entries: table.entries,
            tombstones: table.tombstones,
            range_tombstones: table.range_tombstones,
            smallest_sequence_number: table.smallest_seq,
            largest_sequence_number: table.largest_seq,
            created_micros: table.created_micros,
            oldest_tombstone_micros: table.oldest_tombstone_micros,
            expiring: table.expiry.map_or(0, |expiry| expiry.entries),
            expire_from_micros: table.expiry.map(|expiry| expiry.first_micros),
            expire_until_micros: table.expiry.map(|expiry| expiry.last_micros),
            value_bytes: table.value_bytes(),
        }
    }
}

/// A key: a string if it is UTF-8, and otherwise `{"hex": "00ff"}`, as in the JSON of the command.
struct JsonKey<'a>(&'a [u8]);

impl Serialize for JsonKey<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Ok(text) = std::str::from_utf8(self.0) {
            return serializer.serialize_str(text);
        }
        let hex: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        serializer.collect_map([("hex", hex)])
    }
}
