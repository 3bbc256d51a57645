//! An open table.
//!
//! A table is opened when it is first read: footer, properties, range tombstones and the layout of
//! the index stay in memory; everything else is read in place from a mapping, or through the block
//! cache. A block of a mapping is verified when it is first used and not again: a bit per block
//! remembers that.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use terrane_memtable::{Fragment, prefetch_lines};
use terrane_policy::TableInfo;

use super::block::{Block, Layout};
use super::filter::Filter;
use super::footer::{FOOTER_BYTES, Footer, Handle};
use super::index::{Index, IndexLayout};
use super::properties::Properties;
use super::range_block;
use super::stored::{self, TRAILER_BYTES, TableFileId};
use crate::block_ref::{BlockRef, HeapBlock};
use crate::cache::{BlockCache, BlockKey};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::memory::MemoryLedger;
use crate::stats::{CachePart, Counter, Counters};
use crate::storage::{Access, Mapping, RandomReader, Storage};
use crate::types::{EntryKind, SeqNo};
use crate::value::Value;

/// Cache lines at the start of a data block that a search in it looks at: those of the heads and
/// offsets of some forty entries.
const BLOCK_HEAD_LINES: usize = 4;

/// How tables are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ReadPath {
    /// In place, from a mapping.
    Mapped,
    /// By system calls, through the block cache.
    Cached(Access),
}

/// What all tables of a database share.
#[derive(Debug)]
pub(crate) struct TableEnvironment {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) read_path: ReadPath,
    pub(crate) cache: BlockCache,
    pub(crate) ledger: Arc<MemoryLedger>,
    pub(crate) counters: Arc<Counters>,
    /// When tables are read.
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether tables count how they are read: some design looks at that.
    pub(crate) counts_accesses: AtomicBool,
    /// Takes the files of tables that nothing needs any more.
    pub(crate) discard: fn(&TableEnvironment, &Path),
    /// Files that nothing needs and that could not be removed.
    pub(crate) not_removed: Mutex<Vec<PathBuf>>,
}

/// A table that a version of the tree holds.
pub(crate) struct Table {
    id: TableFileId,
    info: Arc<TableInfo>,
    path: PathBuf,
    environment: Arc<TableEnvironment>,
    opened: OnceLock<Opened>,
    is_obsolete: AtomicBool,
    /// Lookups that went into it, and the time of the last one, as far as they are counted.
    reads: AtomicU64,
    last_read_micros: AtomicU64,
    /// The level that it is in, for counters.
    level: AtomicU8,
}

/// What is known of a table once it was opened.
pub(super) struct Opened {
    pub(super) contents: Contents,
    pub(super) footer: Footer,
    pub(super) index: IndexLayout,
    properties: Properties,
    fragments: Arc<[Fragment]>,
}

pub(super) enum Contents {
    Mapped { map: Mapping, verified: Box<[AtomicU64]> },
    File(Arc<dyn RandomReader>),
}

/// What a block is, for the counters and for errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Data,
    Index,
    Filter,
}

/// A version of a key that was found in a table.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) seq: SeqNo,
    pub(crate) kind: EntryKind,
    pub(crate) value: Value,
}

impl Table {
    /// A table that is in the directory `dir`; it is not opened yet.
    pub(crate) fn new(
        id: TableFileId,
        info: Arc<TableInfo>,
        dir: &Path,
        environment: &Arc<TableEnvironment>,
    ) -> Arc<Self> {
        Self::at(id, info, dir.join(id.file_name()), environment)
    }

    /// A table in a file of any name.
    pub(crate) fn at(
        id: TableFileId,
        info: Arc<TableInfo>,
        path: PathBuf,
        environment: &Arc<TableEnvironment>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            info,
            path,
            environment: Arc::clone(environment),
            opened: OnceLock::new(),
            is_obsolete: AtomicBool::new(false),
            reads: AtomicU64::new(0),
            last_read_micros: AtomicU64::new(0),
            level: AtomicU8::new(0),
        })
    }

    pub(crate) fn id(&self) -> TableFileId {
        self.id
    }

    pub(crate) fn info(&self) -> &Arc<TableInfo> {
        &self.info
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Says which level it is in from now on.
    pub(crate) fn set_level(&self, level: usize) {
        // Relaxed: a read that comes meanwhile is counted for one of the two levels.
        self.level.store(u8::try_from(level).unwrap_or(u8::MAX), Ordering::Relaxed);
    }

    #[inline]
    fn level(&self) -> u8 {
        self.level.load(Ordering::Relaxed)
    }

    /// Has the file removed when the last user of the table lets go of it.
    pub(crate) fn make_obsolete(&self) {
        self.is_obsolete.store(true, Ordering::Release);
    }

    /// How it was read, as far as that was counted.
    pub(crate) fn access(&self) -> terrane_policy::Access {
        terrane_policy::Access {
            reads: self.reads.load(Ordering::Relaxed),
            last_micros: self.last_read_micros.load(Ordering::Relaxed),
        }
    }

    /// Counts a lookup, where some design looks at how tables are read: otherwise readers of many
    /// threads would write to one cache line for nothing.
    #[inline]
    pub(super) fn note_read(&self) {
        // Relaxed: a count that is read late changes a choice, never an answer.
        if self.environment.counts_accesses.load(Ordering::Relaxed) {
            self.count_read();
        }
    }

    #[cold]
    fn count_read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.last_read_micros.fetch_max(self.environment.clock.now_micros(), Ordering::Relaxed);
    }

    /// What the table says about itself.
    pub(crate) fn properties(&self) -> Result<&Properties> {
        Ok(&self.opened()?.properties)
    }

    /// Its range tombstones.
    pub(crate) fn fragments(&self) -> Result<&Arc<[Fragment]>> {
        Ok(&self.opened()?.fragments)
    }

    /// The number of data blocks.
    pub(crate) fn block_count(&self) -> Result<usize> {
        Ok(self.opened()?.index.len())
    }

    /// The lengths of its filter, 0 if there is none, and of its index.
    pub(crate) fn filter_and_index_bytes(&self) -> Result<(u64, u64)> {
        let footer = &self.opened()?.footer;
        Ok((u64::from(footer.filter.len), u64::from(footer.index.len)))
    }

    pub(super) fn opened(&self) -> Result<&Opened> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let opened = self.open()?;
        Ok(self.opened.get_or_init(|| opened))
    }

    #[cold]
    fn open(&self) -> Result<Opened> {
        let TableEnvironment { storage, read_path, .. } = &*self.environment;
        let io = |error| Error::io("open", &self.path, error);
        let len = storage.len(&self.path).map_err(io)?;
        if len != self.info.size_bytes {
            let detail =
                format!("it is {len} bytes long, and was written with {}", self.info.size_bytes);
            return Err(Error::corruption(&self.path, None, "table", detail));
        }
        let contents = match read_path {
            ReadPath::Mapped => {
                let map = storage.map(&self.path).map_err(io)?;
                Contents::Mapped { map, verified: Box::default() }
            }
            ReadPath::Cached(access) => {
                let file = storage.open(&self.path, *access).map_err(io)?;
                if *access == Access::Direct && !file.is_direct() {
                    self.environment.counters.add(Counter::DirectRefused, 1);
                }
                Contents::File(file)
            }
        };
        let at = len.checked_sub(FOOTER_BYTES as u64);
        let at = at.ok_or_else(|| self.corrupt(0, "table", "it is shorter than a footer"))?;
        let footer = Footer::decode(&self.read(&contents, at, FOOTER_BYTES)?, &self.path, len)?;
        if (footer.number, footer.writer) != (self.id.number, self.id.writer) {
            return Err(self.corrupt(at, "table footer", "it is of another table"));
        }
        self.open_parts(contents, footer)
    }

    fn open_parts(&self, contents: Contents, footer: Footer) -> Result<Opened> {
        let properties = self.read_part(&contents, footer.properties, "properties")?;
        let properties = Properties::decode(&properties).map_err(|error| {
            error.of_file(&self.path, |detail| {
                self.corrupt(footer.properties.offset, "properties", &detail)
            })
        })?;
        let mut fragments = Vec::new();
        if !footer.range_tombstones.is_none() {
            let bytes = self.read_part(&contents, footer.range_tombstones, "range tombstones")?;
            fragments = range_block::decode(&bytes).map_err(|error| {
                self.corrupt(footer.range_tombstones.offset, "range tombstones", &error.to_string())
            })?;
        }
        let index = self.read_part(&contents, footer.index, "index")?;
        let index = IndexLayout::parse(&index, self.info.size_bytes)
            .map_err(|error| self.corrupt(footer.index.offset, "index", &error.to_string()))?;
        if let (Contents::Mapped { .. }, false) = (&contents, footer.filter.is_none()) {
            let filter = self.read_part(&contents, footer.filter, "filter")?;
            self.parse_filter(&filter, footer.filter)?;
        }
        let contents = match contents {
            Contents::Mapped { map, .. } => {
                let words = index.len().div_ceil(64);
                Contents::Mapped { map, verified: (0..words).map(|_| AtomicU64::new(0)).collect() }
            }
            file @ Contents::File(_) => file,
        };
        Ok(Opened { contents, footer, index, properties, fragments: fragments.into() })
    }

    fn corrupt(&self, offset: u64, what: &'static str, detail: &str) -> Error {
        Error::corruption(&self.path, Some(offset), what, detail)
    }

    /// Bytes of the file, as they are.
    pub(super) fn read<'a>(
        &self,
        contents: &'a Contents,
        offset: u64,
        len: usize,
    ) -> Result<std::borrow::Cow<'a, [u8]>> {
        let past_end = || self.corrupt(offset, "table", "a part lies outside of the file");
        match contents {
            Contents::Mapped { map, .. } => {
                let start = usize::try_from(offset).map_err(|_| past_end())?;
                let end = start.checked_add(len).ok_or_else(past_end)?;
                Ok(map.get(start..end).ok_or_else(past_end)?.into())
            }
            Contents::File(file) => {
                // Lengths come from the footer or the index, both checked against the file.
                if offset.checked_add(len as u64).is_none_or(|end| end > self.info.size_bytes) {
                    return Err(past_end());
                }
                let mut buffer = vec![0; len];
                file.read_at(offset, &mut buffer)
                    .map_err(|error| Error::io("read", &self.path, error))?;
                Ok(buffer.into())
            }
        }
    }

    /// A part other than a data block, verified; such parts are not compressed.
    fn read_part<'a>(
        &self,
        contents: &'a Contents,
        handle: Handle,
        what: &'static str,
    ) -> Result<std::borrow::Cow<'a, [u8]>> {
        let len = handle.len as usize + TRAILER_BYTES;
        let stored = self.read(contents, handle.offset, len)?;
        self.environment.counters.add(Counter::TableBytesRead, len as u64);
        let (bytes, compressed) =
            stored::verify(&stored, self.id, handle.offset, &self.path, what)?;
        if compressed {
            return Err(self.corrupt(handle.offset, what, "it must not be compressed"));
        }
        let len = bytes.len();
        Ok(match stored {
            std::borrow::Cow::Borrowed(stored) => stored.get(..len).unwrap_or_default().into(),
            std::borrow::Cow::Owned(mut stored) => {
                stored.truncate(len);
                stored.into()
            }
        })
    }

    fn parse_filter<'a>(&self, bytes: &'a [u8], handle: Handle) -> Result<Filter<'a>> {
        Filter::parse(bytes)
            .map_err(|error| self.corrupt(handle.offset, "filter", &error.to_string()))
    }

    /// Whether the table may hold a version of the key of this hash.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> Result<bool> {
        let opened = self.opened()?;
        if opened.footer.filter.is_none() {
            return Ok(true);
        }
        self.environment.counters.add(Counter::FilterProbes, 1);
        let filter = self.part(opened, opened.footer.filter, Part::Filter)?;
        let may = self.parse_filter(&filter, opened.footer.filter)?.may_contain(hash);
        if !may {
            self.environment.counters.add(Counter::FilterNegatives, 1);
        }
        Ok(may)
    }

    /// The newest version of `key` not newer than `seq`. Filters are not asked, and range
    /// tombstones not considered.
    #[inline]
    pub(crate) fn get(&self, key: &[u8], seq: SeqNo) -> Result<Option<Found>> {
        self.get_from(None, key, seq)
    }

    /// As [`Table::get`], where the first block that may hold the key is known.
    pub(crate) fn get_from(
        &self,
        block: Option<usize>,
        key: &[u8],
        seq: SeqNo,
    ) -> Result<Option<Found>> {
        let opened = self.opened()?;
        if opened.index.len() == 0 {
            return Ok(None);
        }
        self.note_read();
        let index_bytes = self.part(opened, opened.footer.index, Part::Index)?;
        let index = Index::new(&index_bytes, &opened.index);
        let mut number = block.unwrap_or_else(|| index.search(key));
        loop {
            self.environment.counters.add_get_block(self.level());
            let block = self.data_block(opened, &index, number)?;
            let place = index.block(number);
            let layout = Layout::parse(&block)
                .map_err(|error| self.corrupt(place.start, "data block", &error.to_string()))?;
            let view = Block::new(&block, &layout);
            let corrupt = |error: crate::codec::DecodeError| {
                self.corrupt(place.start, "data block", &error.to_string())
            };
            if let Some(entry) = view.find(key, seq).map_err(corrupt)? {
                let value = entry.value_start..entry.value_start + entry.value.len();
                let value = Value::of_block(&block, value);
                return Ok(Some(Found { seq: entry.seq, kind: entry.kind, value }));
            }
            // Versions of one key may go on in the next block.
            if !index.continues_in(number + 1, key) {
                return Ok(None);
            }
            number += 1;
        }
    }

    /// The number of the first data block that may hold versions of `key`.
    pub(crate) fn block_of(&self, key: &[u8]) -> Result<usize> {
        let opened = self.opened()?;
        let bytes = self.part(opened, opened.footer.index, Part::Index)?;
        Ok(Index::new(&bytes, &opened.index).search(key))
    }

    /// A key above all of the blocks before block `number`, and not above any of its own; that of a
    /// block that goes on with versions of a key is this key.
    pub(crate) fn separator(&self, number: usize) -> Result<Vec<u8>> {
        let opened = self.opened()?;
        let bytes = self.part(opened, opened.footer.index, Part::Index)?;
        let index = Index::new(&bytes, &opened.index);
        Ok(if number < opened.index.len() { index.separator(number) } else { Vec::new() })
    }

    /// As [`Table::block_of`], and asks for the memory of that block.
    pub(crate) fn approach(&self, key: &[u8]) -> Result<usize> {
        let opened = self.opened()?;
        let bytes = self.part(opened, opened.footer.index, Part::Index)?;
        let index = Index::new(&bytes, &opened.index);
        let number = index.search(key);
        if let Contents::Mapped { map, .. } = &opened.contents {
            let start = index.block(number).start as usize;
            prefetch_lines(map.get(start..).unwrap_or_default(), BLOCK_HEAD_LINES);
        }
        Ok(number)
    }

    /// Asks for the memory of the filter that the key of this hash is looked up in.
    pub(crate) fn approach_filter(&self, hash: u64) -> Result<()> {
        let opened = self.opened()?;
        if let (Contents::Mapped { .. }, false) = (&opened.contents, opened.footer.filter.is_none())
        {
            let filter = self.part(opened, opened.footer.filter, Part::Filter)?;
            self.parse_filter(&filter, opened.footer.filter)?.approach(hash);
        }
        Ok(())
    }

    /// Asks for the memory of the first entry at or after `(key, seq)`, which is in block `number`
    /// if anywhere. Nothing is read from storage for it.
    pub(crate) fn approach_entry(&self, number: usize, key: &[u8], seq: SeqNo) -> Result<()> {
        let opened = self.opened()?;
        // A table may hold range tombstones only.
        if let (Contents::Mapped { .. }, true) = (&opened.contents, number < opened.index.len()) {
            let bytes = self.part(opened, opened.footer.index, Part::Index)?;
            let index = Index::new(&bytes, &opened.index);
            let block = self.data_block(opened, &index, number)?;
            // Damage is found, and told, when the entry is read.
            if let Ok(layout) = Layout::parse(&block) {
                Block::new(&block, &layout).approach(key, seq);
            }
        }
        Ok(())
    }

    /// Whether block `number` exists and may begin with versions of `key`, which the block before
    /// ended with.
    pub(crate) fn continues_in(&self, number: usize, key: &[u8]) -> Result<bool> {
        let opened = self.opened()?;
        let bytes = self.part(opened, opened.footer.index, Part::Index)?;
        Ok(Index::new(&bytes, &opened.index).continues_in(number, key))
    }

    /// A data block by number, verified and decompressed.
    pub(crate) fn block(&self, number: usize) -> Result<BlockRef> {
        let opened = self.opened()?;
        let bytes = self.part(opened, opened.footer.index, Part::Index)?;
        self.data_block(opened, &Index::new(&bytes, &opened.index), number)
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.environment.counters
    }

    /// Whether the cache has the block at `offset`; the cache does not take that for a use of it.
    pub(super) fn is_cached(&self, offset: u64) -> bool {
        self.environment.cache.contains(&BlockKey { table: self.id.number, offset })
    }

    pub(super) fn ledger(&self) -> &Arc<MemoryLedger> {
        &self.environment.ledger
    }

    /// Where a data block lies, with its trailer.
    pub(super) fn block_place(&self, number: usize) -> Result<std::ops::Range<u64>> {
        let opened = self.opened()?;
        let bytes = self.part(opened, opened.footer.index, Part::Index)?;
        Ok(Index::new(&bytes, &opened.index).block(number))
    }

    /// Where a data block lies, for errors about its contents.
    pub(crate) fn block_offset(&self, number: usize) -> Result<u64> {
        Ok(self.block_place(number)?.start)
    }

    fn data_block(&self, opened: &Opened, index: &Index<'_>, number: usize) -> Result<BlockRef> {
        let place = index.block(number);
        let len = place.end.saturating_sub(place.start) as usize;
        if len <= TRAILER_BYTES || number >= opened.index.len() {
            return Err(self.corrupt(place.start, "data block", "it is too short"));
        }
        match &opened.contents {
            Contents::Mapped { map, verified } => {
                self.mapped_block(map, verified, number, place.start, len)
            }
            Contents::File(_) => self.cached_block(opened, place.start, len, Part::Data),
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
            .ok_or_else(|| self.corrupt(offset, "data block", "it lies outside of the file"))?;
        prefetch_lines(stored, BLOCK_HEAD_LINES);
        // Relaxed: a thread that does not see the bit yet only verifies once more.
        let seen = verified.get(number / 64);
        let bit = 1 << (number % 64);
        // The bit is set for blocks that are verified and not compressed: the end of such a block
        // need not be looked at again.
        let is_plain = seen.is_some_and(|seen| seen.load(Ordering::Relaxed) & bit != 0);
        if !is_plain {
            let verify = || {
                self.environment.counters.add(Counter::TableBytesRead, len as u64);
                stored::verify(stored, self.id, offset, &self.path, "data block")
            };
            if stored.get(len - TRAILER_BYTES).is_some_and(|&byte| byte != 0) {
                return self.through_cache(offset, Part::Data, || {
                    stored::decompress(verify()?.0, &self.path, offset, "data block")
                });
            }
            verify()?;
            seen.map(|seen| seen.fetch_or(bit, Ordering::Relaxed));
        }
        Ok(BlockRef::Mapped(map.clone(), start..start + len - TRAILER_BYTES))
    }

    /// The index or the filter.
    #[inline]
    fn part<'a>(&self, opened: &'a Opened, handle: Handle, part: Part) -> Result<PartBytes<'a>> {
        match &opened.contents {
            // Verified when the table was opened.
            Contents::Mapped { map, .. } => {
                let start = handle.offset as usize;
                let bytes = map.get(start..start + handle.len as usize).unwrap_or_default();
                Ok(PartBytes::Mapped(bytes))
            }
            Contents::File(_) => {
                let len = handle.len as usize + TRAILER_BYTES;
                Ok(PartBytes::Cached(self.cached_block(opened, handle.offset, len, part)?))
            }
        }
    }

    fn cached_block(
        &self,
        opened: &Opened,
        offset: u64,
        len: usize,
        part: Part,
    ) -> Result<BlockRef> {
        self.through_cache(offset, part, || {
            let stored = self.read(&opened.contents, offset, len)?;
            self.environment.counters.add(Counter::TableBytesRead, len as u64);
            let (bytes, compressed) =
                stored::verify(&stored, self.id, offset, &self.path, part.name())?;
            if compressed {
                return stored::decompress(bytes, &self.path, offset, part.name());
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
        part: Part,
        load: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<BlockRef> {
        let TableEnvironment { cache, counters, ledger, .. } = &*self.environment;
        let key = BlockKey { table: self.id.number, offset };
        if let Some(block) = cache.get(&key) {
            counters.add(part.hits(), 1);
            return Ok(BlockRef::Heap(block));
        }
        counters.add_cache_miss(part.cache_part(), self.level());
        let block = HeapBlock::new(load()?, ledger);
        cache.insert(key, Arc::clone(&block));
        Ok(BlockRef::Heap(block))
    }

    /// Reads everything, past the cache, and checks it: all checksums, the order and the count of
    /// entries, and that they are within the range that the tree knows.
    pub(crate) fn verify(&self) -> Result<()> {
        super::verify::verify(self)
    }

    /// The blocks of the table as they are in the file, past the cache.
    pub(super) fn raw_block(&self, number: usize) -> Result<Vec<u8>> {
        let opened = self.opened()?;
        let bytes = self.part(opened, opened.footer.index, Part::Index)?;
        let place = Index::new(&bytes, &opened.index).block(number);
        let len = place.end.saturating_sub(place.start) as usize;
        let stored = self.read(&opened.contents, place.start, len)?;
        let (bytes, compressed) =
            stored::verify(&stored, self.id, place.start, &self.path, "data block")?;
        if compressed {
            return stored::decompress(bytes, &self.path, place.start, "data block");
        }
        Ok(bytes.to_vec())
    }
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Data => "data block",
            Self::Index => "index",
            Self::Filter => "filter",
        }
    }

    /// Where its hits are counted.
    #[inline]
    fn hits(self) -> Counter {
        match self {
            Self::Data => Counter::CacheDataHits,
            Self::Index => Counter::CacheIndexHits,
            Self::Filter => Counter::CacheFilterHits,
        }
    }

    /// As what its misses are counted.
    fn cache_part(self) -> CachePart {
        match self {
            Self::Data => CachePart::Data,
            Self::Index => CachePart::Index,
            Self::Filter => CachePart::Filter,
        }
    }
}

/// The bytes of an index or a filter.
enum PartBytes<'a> {
    Mapped(&'a [u8]),
    Cached(BlockRef),
}

impl std::ops::Deref for PartBytes<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(bytes) => bytes,
            Self::Cached(block) => block,
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if *self.is_obsolete.get_mut() {
            (self.environment.discard)(&self.environment, &self.path);
        }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({})", self.info)
    }
}
