//! The read path of an open table: blocks from a mapping or through the block cache.
//!
//! A block of a mapping is verified when it is first used. A bit per block records that it is
//! verified and not compressed, so that later reads use it directly.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane_memtable::prefetch_lines;

use super::footer::Handle;
use super::index::Index;
use super::open_table::{Contents, OpenTable};
use super::reader::{Table, TableEnvironment, TableFile};
use super::stored::{self, TRAILER_BYTES};
use crate::block_ref::{BlockRef, HeapBlock};
use crate::cache::BlockKey;
use crate::error::Result;
use crate::memory_ledger::MemoryLedger;
use crate::stats::{BlockKind, Counter, Counters};
use crate::storage::Mapping;

/// The number of cache lines at the start of a data block that a search in it reads: the heads and
/// offsets of about forty entries.
pub(super) const BLOCK_HEAD_LINES: usize = 4;

impl Table {
    /// Returns the data block with this number, verified and decompressed.
    pub(crate) fn block(&self, number: usize) -> Result<BlockRef> {
        self.with_index(|opened, index| self.file.data_block(opened, index, number))
    }

    /// Reads a data block from the file, bypassing the cache. Returns it verified and decompressed.
    pub(super) fn raw_block(&self, number: usize) -> Result<Vec<u8>> {
        self.with_index(|opened, index| {
            let place = index.block(number);
            let len = place.end.saturating_sub(place.start) as usize;
            let stored = self.file.read(&opened.contents, place.start, len)?;
            let (bytes, compressed) =
                stored::verify(&stored, self.id(), place.start, self.path(), "data block")?;
            if compressed {
                return stored::decompress(bytes, self.path(), place.start, "data block");
            }
            Ok(bytes.to_vec())
        })
    }

    /// Returns the location of a data block in the file, including its trailer.
    pub(super) fn block_place(&self, number: usize) -> Result<std::ops::Range<u64>> {
        self.with_index(|_, index| Ok(index.block(number)))
    }

    /// Returns the offset of a data block, for errors about its contents.
    pub(crate) fn block_offset(&self, number: usize) -> Result<u64> {
        Ok(self.block_place(number)?.start)
    }

    /// Calls `read` with the index.
    #[inline]
    pub(super) fn with_index<T>(
        &self,
        read: impl FnOnce(&OpenTable, &Index<'_>) -> Result<T>,
    ) -> Result<T> {
        let opened = self.opened()?;
        let bytes = self.file.part(opened, opened.footer.index, BlockKind::Index)?;
        read(opened, &Index::new(&bytes, &opened.index))
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.file.environment.counters
    }

    pub(super) fn ledger(&self) -> &Arc<MemoryLedger> {
        &self.file.environment.ledger
    }

    /// Returns true if the block at `offset` is cached. This does not count as a use of the block.
    pub(super) fn is_cached(&self, offset: u64) -> bool {
        self.file.environment.cache.contains(&BlockKey { table: self.id().number, offset })
    }
}

impl TableFile {
    #[inline]
    pub(super) fn data_block(
        &self,
        opened: &OpenTable,
        index: &Index<'_>,
        number: usize,
    ) -> Result<BlockRef> {
        let place = index.block(number);
        let len = place.end.saturating_sub(place.start) as usize;
        if len <= TRAILER_BYTES || number >= opened.index.len() {
            return Err(self.corrupt(place.start, "data block", "it is too short"));
        }
        match &opened.contents {
            Contents::Mapped { map, verified } => {
                self.mapped_block(map, verified, number, place.start, len)
            }
            Contents::File(..) => self.cached_block(opened, place.start, len, BlockKind::Data),
        }
    }

    #[inline]
    fn mapped_block(
        &self,
        map: &Mapping,
        verified: &[AtomicU64],
        number: usize,
        offset: u64,
        len: usize,
    ) -> Result<BlockRef> {
        let start = offset as usize;
        let stored = map.get(start..start + len);
        let stored = stored
            .ok_or_else(|| self.corrupt(offset, "data block", "it is outside of the file"))?;
        prefetch_lines(stored, BLOCK_HEAD_LINES);
        // Relaxed: a thread that misses the bit verifies the block once more.
        let seen = verified.get(number / 64);
        let bit = 1 << (number % 64);
        // The bit is set only for uncompressed blocks, so their trailer need not be read again.
        let is_plain = seen.is_some_and(|seen| seen.load(Ordering::Relaxed) & bit != 0);
        if !is_plain {
            let verify = || {
                self.environment.counters.add(Counter::TableBytesRead, len as u64);
                stored::verify(stored, self.id, offset, &self.path, "data block")
            };
            if stored.get(len - TRAILER_BYTES).is_some_and(|&byte| byte != 0) {
                return self.through_cache(offset, BlockKind::Data, || {
                    stored::decompress(verify()?.0, &self.path, offset, "data block")
                });
            }
            verify()?;
            seen.map(|seen| seen.fetch_or(bit, Ordering::Relaxed));
        }
        Ok(BlockRef::Mapped(map.clone(), start..start + len - TRAILER_BYTES))
    }

    /// Returns the bytes of the index or the filter.
    #[inline]
    pub(super) fn part<'a>(
        &self,
        opened: &'a OpenTable,
        handle: Handle,
        kind: BlockKind,
    ) -> Result<PartBytes<'a>> {
        match &opened.contents {
            // This part was verified when the table was opened.
            Contents::Mapped { map, .. } => {
                let start = handle.offset as usize;
                let bytes = map.get(start..start + handle.len as usize).unwrap_or_default();
                Ok(PartBytes::Mapped(bytes))
            }
            Contents::File(..) => {
                let len = handle.len as usize + TRAILER_BYTES;
                Ok(PartBytes::Cached(self.cached_block(opened, handle.offset, len, kind)?))
            }
        }
    }

    fn cached_block(
        &self,
        opened: &OpenTable,
        offset: u64,
        len: usize,
        kind: BlockKind,
    ) -> Result<BlockRef> {
        self.through_cache(offset, kind, || {
            let stored = self.read(&opened.contents, offset, len)?;
            self.environment.counters.add(Counter::TableBytesRead, len as u64);
            let (bytes, compressed) =
                stored::verify(&stored, self.id, offset, &self.path, kind.name())?;
            if compressed {
                return stored::decompress(bytes, &self.path, offset, kind.name());
            }
            let len = bytes.len();
            let mut stored = stored.into_owned();
            stored.truncate(len);
            Ok(stored)
        })
    }

    fn through_cache(
        &self,
        offset: u64,
        kind: BlockKind,
        load: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<BlockRef> {
        let TableEnvironment { cache, counters, ledger, .. } = &*self.environment;
        let key = BlockKey { table: self.id.number, offset };
        if let Some(block) = cache.get(&key) {
            counters.add(kind.hits(), 1);
            return Ok(BlockRef::Heap(block));
        }
        counters.add_cache_miss(kind, self.level());
        let block = HeapBlock::new(load()?, ledger);
        cache.insert(key, Arc::clone(&block));
        Ok(BlockRef::Heap(block))
    }
}

/// The bytes of an index or a filter.
pub(super) enum PartBytes<'a> {
    Mapped(&'a [u8]),
    Cached(BlockRef),
}

impl Deref for PartBytes<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(bytes) => bytes,
            Self::Cached(block) => block,
        }
    }
}
