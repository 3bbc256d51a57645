//! The versions that a compaction writes, for the records of their keys.
//!
//! Most keys have no record, and each look into the index of the records is a cache miss. So versions are
//! collected, and the places of all of them are prefetched.

use std::sync::Arc;

use super::HotRecords;
use super::record::RecordKey;
use super::ring::{RECORD_BYTES_MAX, record_bytes};
use crate::base::types::{EntryKind, SeqNo};

/// The most versions that are collected, and about the most bytes of them.
const VERSIONS_MAX: usize = 64;
const BYTES_MAX: usize = 2 * RECORD_BYTES_MAX;

/// A version whose key and value are in a buffer.
#[derive(Debug)]
struct Version {
    hash: u64,
    seq: SeqNo,
    kind: EntryKind,
    start: usize,
    key_len: usize,
    value_len: usize,
}

/// The versions that a compaction has written last to a table.
#[derive(Debug)]
pub(crate) struct Carried {
    /// The numbers of the tables that the compaction reads, in ascending order.
    from: Arc<[u64]>,
    versions: Vec<Version>,
    bytes: Vec<u8>,
}

impl Carried {
    pub(crate) fn new(from: &Arc<[u64]>) -> Self {
        Self { from: Arc::clone(from), versions: Vec::new(), bytes: Vec::new() }
    }

    /// Notes that the compaction writes a version as the newest one of its key in a table. All calls name the same
    /// table. A record of the key will serve lookups in that table as well.
    // Most jobs carry nothing, and their loops stay small.
    #[inline(never)]
    pub(crate) fn add(
        &mut self,
        records: &HotRecords,
        at: RecordKey<'_>,
        (seq, kind, value): (SeqNo, EntryKind, &[u8]),
    ) {
        if record_bytes(at.key.len(), value.len()) > RECORD_BYTES_MAX {
            return;
        }
        let (start, key_len, value_len) = (self.bytes.len(), at.key.len(), value.len());
        self.bytes.extend_from_slice(at.key);
        self.bytes.extend_from_slice(value);
        self.versions.push(Version { hash: at.hash, seq, kind, start, key_len, value_len });
        if self.versions.len() == VERSIONS_MAX || self.bytes.len() >= BYTES_MAX {
            self.apply(records, at.table);
        }
    }

    /// Labels the records of the collected versions with the table.
    pub(crate) fn apply(&mut self, records: &HotRecords, table: u64) {
        for (number, part) in records.parts.iter().enumerate() {
            let mut part = HotRecords::lock(part);
            let versions = || self.versions.iter().filter(|it| records.part_of(it.hash) == number);
            versions().for_each(|version| part.prefetch_index(version.hash));
            versions().for_each(|version| part.prefetch_records(version.hash));
            for Version { hash, seq, kind, start, key_len, value_len } in versions() {
                let bytes = self.bytes.get(*start..*start + key_len + value_len);
                let split = bytes.and_then(|bytes| bytes.split_at_checked(*key_len));
                if let Some((key, value)) = split {
                    let at = RecordKey { table, key, hash: *hash };
                    part.carry(&self.from, at, (*seq, *kind, value));
                }
            }
        }
        self.versions.clear();
        self.bytes.clear();
    }
}
