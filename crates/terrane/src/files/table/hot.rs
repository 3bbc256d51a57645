//! Lookups whose block is not in memory: hot records spare most of them the read.

use super::filter::filter_hash;
use super::lookup::{FoundVersion, find};
use super::open_table::OpenTable;
use super::reader::Table;
use crate::base::codec::Decoded;
use crate::base::error::Result;
use crate::base::stats::Counter;
use crate::base::types::SeqNo;
use crate::files::hot_records::{HotRecord, RecordKey};

impl Table {
    fn record_key<'a>(&self, key: &'a [u8], hash: u64) -> RecordKey<'a> {
        RecordKey { table: self.file.id.number, key, hash }
    }

    /// Returns true if a reader at `seq` sees all versions in the table, so that the newest one answers it.
    #[inline]
    pub(super) fn is_visible(&self, seq: SeqNo) -> bool {
        seq >= self.info().largest_seq
    }

    /// Returns true if lookups may find hot records, or may create them.
    pub(crate) fn has_hot_records(&self) -> bool {
        let environment = &*self.file.environment;
        environment.hot_records.are_active(&environment.buffer)
    }

    /// Returns the newest version of `key` at or below `seq` if it is a hot record. Counts as a lookup in the
    /// table if it is.
    pub(crate) fn hot_version(&self, key: &[u8], hash: u64, seq: SeqNo) -> Option<FoundVersion> {
        let found = self.find_hot(key, hash, seq)?;
        self.note_read();
        self.counters().add_get_block(self.file.level());
        Some(found)
    }

    fn find_hot(&self, key: &[u8], hash: u64, seq: SeqNo) -> Option<FoundVersion> {
        if !self.is_visible(seq) {
            return None;
        }
        let found = self.file.environment.hot_records.get(self.record_key(key, hash))?;
        self.counters().add(Counter::RecordHits, 1);
        let HotRecord { seq, kind, value } = found;
        Some(FoundVersion { seq, kind, value })
    }

    /// Notes that block `number` was read to find a version at or below `seq`.
    pub(crate) fn note_found(
        &self,
        (key, hash, seq): (&[u8], u64, SeqNo),
        found: &FoundVersion,
        number: usize,
    ) {
        if !self.is_visible(seq) || !self.has_hot_records() {
            return;
        }
        let environment = &*self.file.environment;
        // Without the length of its block, the record is not kept.
        let place = self.block_place(number).unwrap_or_default();
        let block_bytes = place.end.saturating_sub(place.start) as usize;
        let version = (found.seq, found.kind, &*found.value);
        let (at, is_slow) = (self.record_key(key, hash), environment.io_threads.is_slow());
        let reads = (&environment.buffer, is_slow);
        environment.hot_records.note_read(reads, at, version, block_bytes);
    }

    /// Does the same as [`find`] with a block that is not in memory, which need not be read if the key's
    /// version is a hot record.
    #[cold]
    pub(super) fn find_missing(
        &self,
        opened: &OpenTable,
        number: usize,
        key: &[u8],
        seq: SeqNo,
    ) -> Result<Decoded<Option<FoundVersion>>> {
        // Most databases fit into their cache, or have a small one.
        let hash = self.has_hot_records().then(|| filter_hash(key));
        if let Some(found) = hash.and_then(|hash| self.find_hot(key, hash, seq)) {
            return Ok(Ok(Some(found)));
        }
        let block = self.file.load_data_block(opened, number)?;
        let found = find(block.view(), None, key, seq);
        if let (Some(hash), Ok(Some(found))) = (hash, &found) {
            self.note_found((key, hash, seq), found, number);
        }
        Ok(found)
    }
}
