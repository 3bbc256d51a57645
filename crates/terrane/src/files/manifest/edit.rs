//! The changes that a manifest stores, and their encoding.
//!
//! ```text
//! edit:   | version u64 | epoch u64 | change | change | ... |
//! change: | tag varint | length varint | bytes |
//! ```
//!
//! A reader skips changes with an unknown even tag, and refuses a manifest with an unknown odd tag.
//! Tags are never reused.

use std::sync::Arc;

use terrane_policy::{KeyRange, RunId, TableId, TableInfo, ValueFileId};

use super::job::JobRecord;
use super::value_file_record::ValueFileRecord;
use crate::base::codec::{DecodeError, Decoded, Reader, put_option, put_slice, put_varint};
use crate::base::expiry::{put_expiry, read_expiry};
use crate::base::stats::OperationCounts;
use crate::base::types::{KeyspaceId, Lsn, SeqNo};
use crate::files::table::TableFileId;
use crate::files::value_pointer::{put_value_refs, value_refs};

/// A table in the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableRecord {
    pub(crate) file: TableFileId,
    pub(crate) info: Arc<TableInfo>,
    /// XXH3-64 of the whole file.
    pub(crate) checksum: u64,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// The number of the database; the first change in every snapshot.
    Database(u64),
    /// This and the two changes below give the next number of a kind; smaller numbers have been allocated.
    NextTable(u64),
    NextRun(u64),
    NextKeyspace(u32),
    /// No sequence number outside the log is larger than this.
    LastSeq(SeqNo),
    /// A log segment that must exist.
    RequiredSegment(u64),
    /// An option of the database, as text.
    Option {
        name: String,
        value: String,
    },
    /// Creates a keyspace, or changes its name or its design.
    Keyspace {
        keyspace: KeyspaceId,
        name: String,
        design: String,
    },
    /// Sets the operator with which a keyspace combines operands with values.
    MergeOperator {
        keyspace: KeyspaceId,
        name: String,
    },
    /// Sets the compaction filter of a keyspace, or removes it if the name is empty.
    CompactionFilter {
        keyspace: KeyspaceId,
        name: String,
    },
    /// Changes a keyspace's default time to live, for puts without their own, in microseconds; 0 for none.
    KeyspaceTtl {
        keyspace: KeyspaceId,
        ttl_micros: u64,
    },
    DropKeyspace(KeyspaceId),
    /// All writes of the keyspace before this log position are in tables.
    Flushed {
        keyspace: KeyspaceId,
        upto: Lsn,
    },
    AddTable {
        keyspace: KeyspaceId,
        level: u32,
        run: RunId,
        table: TableRecord,
    },
    RemoveTable {
        keyspace: KeyspaceId,
        table: TableId,
    },
    /// Adds a value file, or changes its record.
    ValueFile {
        keyspace: KeyspaceId,
        file: ValueFileRecord,
    },
    RemoveValueFile {
        keyspace: KeyspaceId,
        file: ValueFileId,
    },
    /// A finished compaction, for the job history; a reader may skip it.
    Job(JobRecord),
    /// The log was durable up to this position when the edit was written.
    LogDurable(Lsn),
    /// The earliest log position for readers of changes; the largest number until the opening that begins
    /// to retain the log has determined it. A reader may skip it.
    ChangesFrom(Lsn),
    /// The last sequence number of an ingest, which is not in the log. Later writes in the log must not be
    /// read without it, which can happen only to a reader alongside a writer.
    LastIngest(SeqNo),
    /// The operation history at the time of the edit; a reader may skip it.
    Operations(OperationCounts),
}

/// Changes that apply atomically.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Edit {
    /// Increases by one with each edit of a database.
    pub(crate) version: u64,
    /// The number of the opening that wrote the edit; increases with each opening for writing.
    pub(crate) epoch: u64,
    pub(crate) changes: Vec<Change>,
}

const DATABASE: u64 = 1;
const NEXT_TABLE: u64 = 3;
const NEXT_RUN: u64 = 5;
const NEXT_KEYSPACE: u64 = 7;
const LAST_SEQ: u64 = 9;
const REQUIRED_SEGMENT: u64 = 11;
const OPTION: u64 = 12;
const KEYSPACE: u64 = 13;
const JOB: u64 = 14;
const DROP_KEYSPACE: u64 = 15;
const OPERATIONS: u64 = 16;
const FLUSHED: u64 = 17;
const LOG_DURABLE: u64 = 18;
const ADD_TABLE: u64 = 19;
const REMOVE_TABLE: u64 = 21;
const VALUE_FILE: u64 = 23;
const REMOVE_VALUE_FILE: u64 = 25;
/// Like [`ADD_TABLE`], for a table that refers to separated values.
const ADD_TABLE_WITH_VALUES: u64 = 27;
/// Like [`KEYSPACE`], for a design that separates values. A version that does not know such designs then
/// refuses the manifest as unsupported, not as damaged.
const KEYSPACE_WITH_VALUES: u64 = 29;
/// Like [`ADD_TABLE_WITH_VALUES`], for a table with values that expire.
const ADD_TABLE_WITH_EXPIRY: u64 = 33;
const KEYSPACE_TTL: u64 = 39;
const MERGE_OPERATOR: u64 = 41;
/// Odd, because a version that skipped it would drop the filter when it rewrites the manifest.
const COMPACTION_FILTER: u64 = 43;
const LAST_INGEST: u64 = 32;
const CHANGES_FROM: u64 = 44;

impl Edit {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&self.epoch.to_le_bytes());
        let mut bytes = Vec::new();
        for change in &self.changes {
            bytes.clear();
            put_varint(&mut out, change.encode(&mut bytes));
            put_slice(&mut out, &bytes);
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Decoded<Self> {
        let mut reader = Reader::new(bytes);
        let (version, epoch) = (reader.u64("manifest version")?, reader.u64("manifest epoch")?);
        let mut changes = Vec::new();
        while !reader.is_empty() {
            let at = reader.position();
            let tag = reader.varint("change")?;
            let change = Change::decode(tag, reader.slice("change")?);
            changes.extend(change.map_err(|error| DecodeError { at: at + error.at, ..error })?);
        }
        Ok(Self { version, epoch, changes })
    }
}

impl Change {
    /// Appends the bytes of the change, and returns its tag.
    fn encode(&self, out: &mut Vec<u8>) -> u64 {
        let mut number = |tag, value| {
            put_varint(out, value);
            tag
        };
        match self {
            Self::Database(id) => number(DATABASE, *id),
            Self::NextTable(next) => number(NEXT_TABLE, *next),
            Self::NextRun(next) => number(NEXT_RUN, *next),
            Self::NextKeyspace(next) => number(NEXT_KEYSPACE, u64::from(*next)),
            Self::LastSeq(seq) => number(LAST_SEQ, *seq),
            Self::RequiredSegment(segment) => number(REQUIRED_SEGMENT, *segment),
            Self::LastIngest(seq) => number(LAST_INGEST, *seq),
            Self::LogDurable(upto) => number(LOG_DURABLE, upto.0),
            Self::ChangesFrom(from) => number(CHANGES_FROM, from.0),
            Self::DropKeyspace(keyspace) => number(DROP_KEYSPACE, u64::from(keyspace.0)),
            Self::Option { name, value } => {
                put_slice(out, name.as_bytes());
                put_slice(out, value.as_bytes());
                OPTION
            }
            Self::Keyspace { keyspace, name, design } => {
                put_varint(out, keyspace.0.into());
                put_slice(out, name.as_bytes());
                put_slice(out, design.as_bytes());
                if separates_values(design) { KEYSPACE_WITH_VALUES } else { KEYSPACE }
            }
            Self::Flushed { keyspace, upto: Lsn(value) }
            | Self::KeyspaceTtl { keyspace, ttl_micros: value } => {
                put_varint(out, keyspace.0.into());
                put_varint(out, *value);
                if matches!(self, Self::Flushed { .. }) { FLUSHED } else { KEYSPACE_TTL }
            }
            Self::MergeOperator { keyspace, name } | Self::CompactionFilter { keyspace, name } => {
                put_varint(out, keyspace.0.into());
                put_slice(out, name.as_bytes());
                let is_operator = matches!(self, Self::MergeOperator { .. });
                if is_operator { MERGE_OPERATOR } else { COMPACTION_FILTER }
            }
            Self::AddTable { keyspace, level, run, table } => {
                put_varint(out, keyspace.0.into());
                put_varint(out, u64::from(*level));
                put_varint(out, run.0);
                table.encode(out)
            }
            Self::ValueFile { keyspace, file } => {
                put_varint(out, keyspace.0.into());
                file.encode(out);
                VALUE_FILE
            }
            Self::RemoveValueFile { keyspace, file } => {
                put_varint(out, keyspace.0.into());
                put_varint(out, file.0);
                REMOVE_VALUE_FILE
            }
            Self::RemoveTable { keyspace, table } => {
                put_varint(out, keyspace.0.into());
                put_varint(out, table.0);
                REMOVE_TABLE
            }
            Self::Job(job) => {
                job.encode(out);
                JOB
            }
            Self::Operations(counts) => {
                counts.numbers().iter().for_each(|&number| put_varint(out, number));
                OPERATIONS
            }
        }
    }

    /// Decodes a change; `None` if its tag is unknown and it may be skipped.
    fn decode(tag: u64, bytes: &[u8]) -> Decoded<Option<Self>> {
        let reader = &mut Reader::new(bytes);
        let keyspace = |reader: &mut Reader<'_>| reader.varint_u32("keyspace").map(KeyspaceId);
        Ok(Some(match tag {
            DATABASE => Self::Database(reader.varint("database")?),
            NEXT_TABLE => Self::NextTable(reader.varint("next table")?),
            NEXT_RUN => Self::NextRun(reader.varint("next run")?),
            NEXT_KEYSPACE => Self::NextKeyspace(reader.varint_u32("next keyspace")?),
            LAST_SEQ => Self::LastSeq(reader.varint("last sequence number")?),
            REQUIRED_SEGMENT => Self::RequiredSegment(reader.varint("segment")?),
            DROP_KEYSPACE => Self::DropKeyspace(keyspace(reader)?),
            LAST_INGEST => Self::LastIngest(reader.varint("sequence number of an ingest")?),
            LOG_DURABLE => Self::LogDurable(Lsn(reader.varint("durable position")?)),
            CHANGES_FROM => Self::ChangesFrom(Lsn(reader.varint("position of changes")?)),
            OPTION => Self::Option {
                name: reader.text("option")?.to_owned(),
                value: reader.text("option")?.to_owned(),
            },
            KEYSPACE | KEYSPACE_WITH_VALUES => Self::Keyspace {
                keyspace: keyspace(reader)?,
                name: reader.text("keyspace name")?.to_owned(),
                design: reader.text("design")?.to_owned(),
            },
            FLUSHED => {
                Self::Flushed { keyspace: keyspace(reader)?, upto: Lsn(reader.varint("position")?) }
            }
            MERGE_OPERATOR | COMPACTION_FILTER => {
                let (keyspace, name) = (keyspace(reader)?, reader.text("function")?.to_owned());
                match tag {
                    MERGE_OPERATOR => Self::MergeOperator { keyspace, name },
                    _ => Self::CompactionFilter { keyspace, name },
                }
            }
            KEYSPACE_TTL => {
                let keyspace = keyspace(reader)?;
                Self::KeyspaceTtl { keyspace, ttl_micros: reader.varint("time to live")? }
            }
            ADD_TABLE | ADD_TABLE_WITH_VALUES | ADD_TABLE_WITH_EXPIRY => Self::AddTable {
                keyspace: keyspace(reader)?,
                level: reader.varint_u32("level")?,
                run: RunId(reader.varint("run")?),
                table: TableRecord::decode(reader, tag)?,
            },
            VALUE_FILE => Self::ValueFile {
                keyspace: keyspace(reader)?,
                file: ValueFileRecord::decode(reader)?,
            },
            REMOVE_VALUE_FILE => Self::RemoveValueFile {
                keyspace: keyspace(reader)?,
                file: ValueFileId(reader.varint("value file")?),
            },
            REMOVE_TABLE => Self::RemoveTable {
                keyspace: keyspace(reader)?,
                table: TableId(reader.varint("table")?),
            },
            JOB => Self::Job(JobRecord::decode(reader)?),
            OPERATIONS => {
                let mut numbers = [0; 8];
                for number in &mut numbers {
                    *number = reader.varint("operations")?;
                }
                let mut numbers = numbers.into_iter();
                Self::Operations(OperationCounts::of_numbers(|| numbers.next().unwrap_or_default()))
            }
            unknown if unknown % 2 == 1 => {
                return Err(DecodeError::unknown("manifest change", unknown));
            }
            _ => return Ok(None),
        }))
    }
}

impl TableRecord {
    /// Appends the table, and returns the tag of the change that adds it.
    fn encode(&self, out: &mut Vec<u8>) -> u64 {
        let info = &self.info;
        out.extend_from_slice(&self.file.number.to_le_bytes());
        out.extend_from_slice(&self.file.writer.to_le_bytes());
        out.extend_from_slice(&self.checksum.to_le_bytes());
        put_slice(out, &info.range.start);
        put_option(out, info.range.end.as_deref(), put_slice);
        let numbers = [
            info.size_bytes,
            info.entries,
            info.tombstones,
            info.range_tombstones,
            info.smallest_seq,
            info.largest_seq,
            info.created_micros,
        ];
        numbers.iter().for_each(|&number| put_varint(out, number));
        put_option(out, info.oldest_tombstone_micros, put_varint);
        let TableInfo { value_refs, expiry, .. } = &**info;
        if value_refs.is_empty() && expiry.is_none() {
            return ADD_TABLE;
        }
        put_value_refs(out, value_refs);
        let Some(expiry) = expiry else { return ADD_TABLE_WITH_VALUES };
        put_expiry(out, expiry);
        ADD_TABLE_WITH_EXPIRY
    }

    /// Reads the table of a change with the given tag.
    fn decode(reader: &mut Reader<'_>, tag: u64) -> Decoded<Self> {
        let file = TableFileId { number: reader.u64("table")?, writer: reader.u64("table")? };
        let checksum = reader.u64("table checksum")?;
        let start = reader.slice("table range")?;
        let end = reader.option("table range", |reader| reader.slice("table range"))?;
        let mut number = || reader.varint("table facts");
        let mut info = TableInfo {
            id: TableId(file.number),
            range: KeyRange::new(start, end),
            size_bytes: number()?,
            entries: number()?,
            tombstones: number()?,
            range_tombstones: number()?,
            smallest_seq: number()?,
            largest_seq: number()?,
            created_micros: number()?,
            oldest_tombstone_micros: reader
                .option("table facts", |reader| reader.varint("table facts"))?,
            expiry: None,
            value_refs: Box::default(),
        };
        if tag != ADD_TABLE {
            info.value_refs = value_refs(reader)?.into();
        }
        if tag == ADD_TABLE_WITH_EXPIRY {
            info.expiry = Some(read_expiry(reader)?);
        }
        Ok(Self { file, info: Arc::new(info), checksum })
    }
}

/// Returns whether a design stores large values in value files; designs of earlier manifests say `apart`.
fn separates_values(design: &str) -> bool {
    ["values=separate", "values=apart"].iter().any(|values| design.contains(values))
}

#[cfg(test)]
pub(super) mod tests {
    use terrane_policy::{Expiry, ValueFileInfo, ValueRef};

    use super::*;
    use crate::files::value_pointer::ValueFileName;

    pub(crate) fn table(number: u64, range: KeyRange) -> TableRecord {
        let mut info = TableInfo::new(number, range, 1000 + number);
        info.entries = 3;
        info.tombstones = 2;
        info.range_tombstones = 1;
        info.smallest_seq = 7;
        info.largest_seq = 9;
        info.created_micros = 11;
        info.oldest_tombstone_micros = Some(10);
        let file = TableFileId { number, writer: 0xdead };
        TableRecord { file, info: Arc::new(info), checksum: u64::MAX - number }
    }

    fn table_with_values(number: u64, range: KeyRange) -> TableRecord {
        let mut table = table(number, range);
        let used = |file| ValueRef { file: ValueFileId(file), bytes: 1 << 40, values: 9 };
        Arc::make_mut(&mut table.info).value_refs = [used(2), used(7)].into();
        table
    }

    fn table_with_expiry(number: u64, range: KeyRange) -> TableRecord {
        let mut table = table_with_values(number, range);
        let expiry = Expiry { entries: 1, first_micros: 1 << 50, last_micros: u64::MAX };
        Arc::make_mut(&mut table.info).expiry = Some(expiry);
        table
    }

    fn all_changes() -> Vec<Change> {
        let keyspace = KeyspaceId(3);
        let range = KeyRange::new(b"a", None);
        let values = table_with_values(6, range.clone());
        let expiring = table_with_expiry(8, range.clone());
        let info = ValueFileInfo { oldest_dead_micros: Some(8), ..ValueFileInfo::new(7, 1 << 40) };
        let file = ValueFileRecord {
            name: ValueFileName { number: 7, writer: 0xdead },
            is_segment: true,
            size_bytes: 1 << 41,
            info: Arc::new(info),
        };
        let design = "leveling; values=separate(1KiB)".to_owned();
        vec![
            Change::Database(1),
            Change::NextTable(2),
            Change::NextRun(3),
            Change::NextKeyspace(4),
            Change::LastSeq(5),
            Change::RequiredSegment(6),
            Change::Option { name: "durability".into(), value: "process".into() },
            Change::Keyspace { keyspace, name: "käse".into(), design: "leveling".into() },
            Change::Flushed { keyspace, upto: Lsn(1 << 40) },
            Change::AddTable { keyspace, level: 2, run: RunId(8), table: table(5, range) },
            Change::RemoveTable { keyspace, table: TableId(5) },
            Change::KeyspaceTtl { keyspace, ttl_micros: 3_600_000_000 },
            Change::MergeOperator { keyspace, name: "append".into() },
            Change::CompactionFilter { keyspace, name: "no guests".into() },
            Change::CompactionFilter { keyspace, name: String::new() },
            Change::Keyspace { keyspace, name: "b".into(), design },
            Change::ValueFile { keyspace, file },
            Change::AddTable { keyspace, level: 2, run: RunId(8), table: values },
            Change::AddTable { keyspace, level: 3, run: RunId(9), table: expiring },
            Change::RemoveValueFile { keyspace, file: ValueFileId(7) },
            Change::Job(JobRecord {
                keyspace,
                ended_micros: 1 << 50,
                took_micros: 2,
                tables_rewritten: 3,
                tables_moved: 4,
                predicted_bytes: 5,
                read_bytes: 6,
                written_bytes: 7,
                persisted_micros: Some(8),
                what: "L0 r1: 2 into L1 a new run".into(),
                why: "run-count".into(),
            }),
            Change::DropKeyspace(keyspace),
            Change::LogDurable(Lsn(7)),
            Change::LastIngest(7),
            Change::Operations(OperationCounts::of_numbers(|| 1 << 40)),
        ]
    }

    #[test]
    fn edits_round_trip_with_every_kind_of_change() {
        let edit = Edit { version: 9, epoch: 4, changes: all_changes() };
        assert_eq!(Edit::decode(&edit.encode()), Ok(edit.clone()));
        for change in all_changes() {
            let one = Edit { changes: vec![change], ..edit.clone() };
            let bytes = one.encode();
            for len in 0..bytes.len() {
                assert_ne!(Edit::decode(&bytes[..len]), Ok(one.clone()));
            }
        }
    }

    #[test]
    fn designs_with_separated_values_are_refused_by_versions_without_them() {
        let keyspace = |design: &str| {
            let (keyspace, name) = (KeyspaceId(3), String::new());
            let mut bytes = Vec::new();
            Change::Keyspace { keyspace, name, design: design.into() }.encode(&mut bytes)
        };
        assert_eq!(keyspace("leveling; values=separate(1KiB)"), KEYSPACE_WITH_VALUES);
        assert_eq!(keyspace("leveling; values=apart(1KiB)"), KEYSPACE_WITH_VALUES);
        assert_eq!(keyspace("leveling"), KEYSPACE);
    }

    #[test]
    fn unknown_changes_are_skipped_only_if_even() {
        let mut bytes = Edit { version: 1, epoch: 1, changes: vec![] }.encode();
        put_varint(&mut bytes, 1000);
        put_slice(&mut bytes, b"x");
        assert_eq!(Edit::decode(&bytes).map(|edit| edit.changes), Ok(vec![]));
        put_varint(&mut bytes, 1001);
        put_slice(&mut bytes, b"x");
        assert_eq!(Edit::decode(&bytes).unwrap_err().unknown, Some(1001));
    }
}
