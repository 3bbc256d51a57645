//! Writes a table from front to back.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_memtable::Fragment;
use terrane_policy::key_range::successor;
use terrane_policy::{Compression, Expiry, KeyRange, TableId, TableInfo, ValueFileId, ValueRef};

use super::block::BlockBuilder;
use super::filter;
use super::footer::{
    Footer, Handle, PLAIN, WITH_MORE_KINDS, WITH_PADDING_OR_ZSTD, WITH_SEPARATED_VALUES,
};
use super::index::IndexBuilder;
use super::packing::{self, Packing};
use super::padding;
use super::properties::Properties;
use super::range_block;
use super::sink::{Sink, UnsyncedFile};
use super::slots::{FILTER_SLOT, INDEX_SLOT};
use super::stored::{self, TRAILER_BYTES, TableFileId};
use super::warming::{WarmTable, Warmer};
use crate::base::error::{Error, Result};
use crate::base::expiry::{EXPIRY_BYTES, expires_at_micros};
use crate::base::types::{EntryKind, SeqNo};
use crate::files::storage::{Access, Storage};
use crate::files::value_pointer::{ValuePointer, record_bytes};

/// The alignment of filters, so that each of their lines is one cache line.
const FILTER_ALIGN: u64 = 64;

/// The format of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableConfig {
    pub(crate) block_bytes: usize,
    pub(crate) filter_bits: f64,
    /// The number of bits that a key sets in the filter; `None` for the best number.
    pub(crate) filter_probes: Option<u8>,
    pub(crate) compression: Compression,
    /// The number of the keyspace, stored in the table for a repair without a manifest.
    pub(crate) keyspace: u32,
    /// The number of bytes between two syncs; 0 to sync only at the end.
    pub(crate) sync_bytes: u64,
    /// How the file is written: through the page cache, or bypassing it.
    pub(crate) access: Access,
}

/// A table that is complete and durable, except for its name.
#[derive(Debug, Clone)]
pub(crate) struct FinishedTable {
    pub(crate) id: TableFileId,
    pub(crate) info: Arc<TableInfo>,
    /// XXH3-64 of the whole file.
    pub(crate) checksum: u64,
    /// True if writes should have bypassed the page cache but did not.
    pub(crate) direct_refused: bool,
}

/// Writes one table.
pub(crate) struct TableWriter {
    id: TableFileId,
    config: TableConfig,
    sink: Sink,
    block: BlockBuilder,
    index: IndexBuilder,
    hashes: Vec<u64>,
    fragments: Vec<Fragment>,
    properties: Properties,
    /// The last key of the finished blocks.
    last_key: Vec<u8>,
    scratch: Vec<u8>,
    warm: Option<WarmTable>,
    /// True if a block has values that expire or operands.
    has_more_kinds: bool,
    /// True if a block is padded or compressed by Zstandard.
    has_padding_or_zstd: bool,
    /// The separated values, by value file.
    value_refs: BTreeMap<u64, ValueRef>,
}

impl TableWriter {
    /// Creates a table in a new file.
    ///
    /// # Errors
    /// The file exists, or cannot be created.
    pub(crate) fn create(
        storage: &dyn Storage,
        path: &std::path::Path,
        id: TableFileId,
        config: TableConfig,
    ) -> Result<Self> {
        Ok(Self {
            id,
            config,
            sink: Sink::create(storage, path, config.access, config.sync_bytes)?,
            block: BlockBuilder::default(),
            index: IndexBuilder::default(),
            hashes: Vec::new(),
            fragments: Vec::new(),
            properties: Properties {
                smallest_seq: SeqNo::MAX,
                keyspace: config.keyspace,
                ..Properties::default()
            },
            last_key: Vec::new(),
            scratch: Vec::new(),
            warm: None,
            has_more_kinds: false,
            has_padding_or_zstd: false,
            value_refs: BTreeMap::new(),
        })
    }

    /// Keeps blocks in memory as they are written.
    pub(crate) fn warming(mut self, warmer: Option<Warmer>) -> Self {
        self.warm = warmer.map(WarmTable::new);
        self
    }

    /// Returns the approximate length of the file so far.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.sink.offset() + self.block.size() as u64
    }

    /// Returns the memory of the parts that are written when the table ends: the filter, the hashes from
    /// which it is built, and the index, at its end also as a block.
    pub(crate) fn parts_bytes(&self) -> usize {
        let filter = self.hashes.len() as f64 * self.config.filter_bits / 8.0;
        let hashes = self.hashes.capacity().max(2 * self.hashes.len()) * size_of::<u64>();
        hashes + filter as usize + 2 * self.index.memory_bytes()
    }

    /// Returns the key added last.
    pub(crate) fn last_key(&self) -> &[u8] {
        self.block.last_key().unwrap_or(&self.last_key)
    }

    /// Adds an entry after all others. Keys must ascend, and the versions of a key must come newest
    /// first.
    pub(crate) fn add(
        &mut self,
        key: &[u8],
        seq: SeqNo,
        kind: EntryKind,
        value: &[u8],
    ) -> Result<()> {
        let is_first = self.properties.entries == 0;
        let order = if is_first { Ordering::Less } else { self.last_key().cmp(key) };
        match order {
            Ordering::Greater => {
                return Err(Error::internal("entries of a table are out of order"));
            }
            Ordering::Less => {
                let hash = filter::filter_hash(key);
                filter::push_hash(&mut self.hashes, hash);
                if let Some(warm) = &mut self.warm {
                    warm.carry_record(self.id, (key, hash), (seq, kind, value));
                }
                self.properties.keys += 1;
            }
            Ordering::Equal => {}
        }
        if is_first {
            self.properties.start = key.to_vec();
        }
        self.count(key, seq, kind, value)?;
        // A value that leaves no room for another entry gets its own block, without being copied
        // first.
        if value.len() >= self.config.block_bytes / 2 {
            return self.add_large(key, seq, kind, value);
        }
        if !self.block.is_empty() {
            // Including its trailer, the block must fit into the block size, so that it fills whole
            // pages.
            let size_max = self.config.block_bytes.saturating_sub(TRAILER_BYTES);
            if self.block.add_within(size_max, key, seq, kind, value) {
                return Ok(());
            }
            self.write_block()?;
        }
        self.begin_block(key);
        self.block.add(key, seq, kind, value);
        Ok(())
    }

    fn count(&mut self, key: &[u8], seq: SeqNo, kind: EntryKind, value: &[u8]) -> Result<()> {
        let mut value_bytes = value.len() as u64;
        if kind == EntryKind::Separated {
            let pointer = ValuePointer::decode(value)
                .map_err(|error| Error::internal(format!("a bad pointer: {error}")))?;
            value_bytes = pointer.len.into();
            let file = ValueFileId(pointer.file);
            let unused = ValueRef { file, bytes: 0, values: 0 };
            let used = self.value_refs.entry(pointer.file).or_insert(unused);
            used.bytes += record_bytes(key.len(), pointer.len as usize);
            used.values += 1;
        }
        let properties = &mut self.properties;
        self.has_more_kinds |= matches!(kind, EntryKind::Expiring | EntryKind::Operand);
        if kind == EntryKind::Expiring {
            value_bytes -= EXPIRY_BYTES as u64;
            let one = Expiry::of(expires_at_micros(value));
            properties.expiry = Expiry::combined(properties.expiry, Some(one));
        }
        properties.entries += 1;
        properties.tombstones += u64::from(kind == EntryKind::Tombstone);
        properties.key_bytes += key.len() as u64;
        properties.value_bytes += value_bytes;
        properties.smallest_seq = properties.smallest_seq.min(seq);
        properties.largest_seq = properties.largest_seq.max(seq);
        Ok(())
    }

    fn begin_block(&mut self, first_key: &[u8]) {
        let last = (self.index.len() > 0).then_some(&self.last_key[..]);
        self.index.add(last, first_key, self.sink.offset());
    }

    fn write_block(&mut self) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        if let Some(last) = self.block.last_key() {
            self.last_key.clear();
            self.last_key.extend_from_slice(last);
        }
        let mut block = std::mem::take(&mut self.scratch);
        block.clear();
        self.block.finish(&mut block);
        if let Some(warm) = &mut self.warm {
            warm.put_data(self.index.len() - 1, &[&block]);
        }
        let packed = packing::compress(&block, self.config.compression);
        let (mut bytes, packing) = packed.unwrap_or((block, Packing::Plain));
        let offset = self.sink.offset();
        self.has_padding_or_zstd |= packing == Packing::Zstd;
        let pads = packing == Packing::Plain && padding::is_worthwhile(self.config.block_bytes);
        if pads && padding::pad(&mut bytes, offset) {
            self.has_padding_or_zstd = true;
            stored::seal_padded(&mut bytes, packing, self.id, offset);
        } else {
            stored::seal(&mut bytes, packing, self.id, offset);
        }
        let written = self.sink.append(&bytes);
        self.scratch = bytes;
        written
    }

    /// Writes a block for one large value, without copying it; compresses it only if the design
    /// requests it.
    fn add_large(&mut self, key: &[u8], seq: SeqNo, kind: EntryKind, value: &[u8]) -> Result<()> {
        self.write_block()?;
        self.begin_block(key);
        if self.config.compression != Compression::None {
            self.block.add(key, seq, kind, value);
            return self.write_block();
        }
        self.scratch.clear();
        BlockBuilder::single(key, seq, kind, &mut self.scratch);
        let head = &self.scratch;
        if let Some(warm) = &mut self.warm {
            warm.put_data(self.index.len() - 1, &[head, value]);
        }
        let trailer = stored::trailer(&[head, value], Packing::Plain, self.id, self.sink.offset());
        for part in [&head[..], value, &trailer] {
            self.sink.append(part)?;
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        Ok(())
    }

    /// Adds a range tombstone after all others. Fragments do not overlap.
    pub(crate) fn add_range_tombstone(&mut self, fragment: Fragment) {
        let seqs = fragment.seqs.iter().copied();
        let properties = &mut self.properties;
        properties.smallest_seq = seqs.clone().fold(properties.smallest_seq, SeqNo::min);
        properties.largest_seq = seqs.fold(properties.largest_seq, SeqNo::max);
        self.fragments.push(fragment);
    }

    /// Completes the table and makes its contents durable, but not its name.
    pub(crate) fn finish(
        self,
        now_micros: u64,
        oldest_tombstone_micros: Option<u64>,
    ) -> Result<FinishedTable> {
        let (table, file) = self.finish_unsynced(now_micros, oldest_tombstone_micros)?;
        file.sync().map(|()| table)
    }

    /// As [`Self::finish`], but leaves the sync of the file to the caller.
    pub(crate) fn finish_unsynced(
        mut self,
        now_micros: u64,
        oldest_tombstone_micros: Option<u64>,
    ) -> Result<(FinishedTable, UnsyncedFile)> {
        self.write_block()?;
        let data_end = self.sink.offset();
        let mut footer = Footer {
            number: self.id.number,
            writer: self.id.writer,
            version: if self.has_more_kinds {
                WITH_MORE_KINDS
            } else if self.has_padding_or_zstd {
                WITH_PADDING_OR_ZSTD
            } else if self.value_refs.is_empty() {
                PLAIN
            } else {
                WITH_SEPARATED_VALUES
            },
            ..Footer::default()
        };
        let TableConfig { filter_bits, filter_probes, .. } = self.config;
        if let Some(bytes) = filter::build(&self.hashes, filter_bits, filter_probes) {
            let pad = self.sink.offset().next_multiple_of(FILTER_ALIGN) - self.sink.offset();
            self.sink.append(&[0; FILTER_ALIGN as usize][..pad as usize])?;
            footer.filter = self.write_part(bytes, Some(FILTER_SLOT))?;
        }
        if !self.fragments.is_empty() {
            footer.range_tombstones =
                self.write_part(range_block::encode(&self.fragments), None)?;
        }
        self.complete_properties(now_micros, oldest_tombstone_micros);
        let index = std::mem::take(&mut self.index).finish(data_end);
        footer.index = self.write_part(index, Some(INDEX_SLOT))?;
        footer.properties = self.write_part(self.properties.encode(), None)?;
        self.sink.append(&footer.encode())?;
        let info = Arc::new(self.info());
        let (checksum, is_direct, file) = self.sink.finish_unsynced()?;
        let direct_refused = self.config.access == Access::Direct && !is_direct;
        if let Some(warm) = self.warm {
            warm.finish(self.id, self.properties.blocks as usize);
        }
        Ok((FinishedTable { id: self.id, info, checksum, direct_refused }, file))
    }

    /// Writes a part. Readers find it in `slot`, if given.
    fn write_part(&mut self, mut bytes: Vec<u8>, slot: Option<usize>) -> Result<Handle> {
        let offset = self.sink.offset();
        let len = u32::try_from(bytes.len())
            .map_err(|_| Error::internal("part of a table is larger than 4 GiB"))?;
        if let Some((warm, slot)) = self.warm.as_mut().zip(slot) {
            warm.put_part(slot, &bytes);
        }
        stored::seal(&mut bytes, Packing::Plain, self.id, offset);
        self.sink.append(&bytes)?;
        Ok(Handle { offset, len })
    }

    fn complete_properties(&mut self, now_micros: u64, oldest_tombstone_micros: Option<u64>) {
        let last = (self.properties.entries > 0).then(|| successor(self.last_key()));
        let properties = &mut self.properties;
        properties.blocks = self.index.len() as u64;
        properties.value_refs = self.value_refs.values().copied().collect();
        properties.range_tombstones = self.fragments.len() as u64;
        properties.created_micros = now_micros;
        let deletes = properties.tombstones > 0 || properties.range_tombstones > 0;
        properties.oldest_tombstone_micros =
            deletes.then(|| oldest_tombstone_micros.unwrap_or(now_micros));
        let points =
            last.map(|end| KeyRange { start: properties.start[..].into(), end: Some(end) });
        let ranges = self
            .fragments
            .iter()
            .map(|fragment| KeyRange::new(&fragment.start, fragment.end.as_deref()));
        let ranges: Vec<KeyRange> = points.into_iter().chain(ranges).collect();
        if let Some(range) = KeyRange::hull_of(&ranges) {
            properties.start = range.start.to_vec();
            properties.end = range.end.map(|end| end.to_vec());
        }
    }

    fn info(&self) -> TableInfo {
        let Self { properties, .. } = self;
        TableInfo {
            id: TableId(self.id.number),
            range: KeyRange::new(&properties.start, properties.end.as_deref()),
            size_bytes: self.sink.offset(),
            entries: properties.entries,
            tombstones: properties.tombstones,
            range_tombstones: properties.range_tombstones,
            smallest_seq: properties.smallest_seq,
            largest_seq: properties.largest_seq,
            created_micros: properties.created_micros,
            oldest_tombstone_micros: properties.oldest_tombstone_micros,
            expiry: properties.expiry,
            value_refs: properties.value_refs.clone().into(),
        }
    }
}
