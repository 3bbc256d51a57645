//! The read path of an open table: blocks from the buffer manager, or from the file.
//!
//! A block that is in memory was verified and decompressed when it was read. Closures that get such a
//! block run in a pinned thread, and must not read other blocks.

use std::ops::Range;

use terrane_memtable::prefetch_lines;

use super::footer::Handle;
use super::index::Index;
use super::open_files::TableReader;
use super::open_table::OpenTable;
use super::packing::{self, Packing};
use super::reader::{Table, TableEnvironment, TableFile};
use super::scan_window::Toward;
use super::sequential_file::SequentialFile;
use super::slots::{INDEX_SLOT, data_slot};
use super::stored::{self, TRAILER_BYTES};
use crate::base::error::Result;
use crate::base::stats::{BlockKind, Counter, Counters};
use crate::files::buffer::{BlockMut, BlockRef, BlockView, Priority, pin};
use crate::files::io_threads::IoThreads;

/// The number of cache lines at the start of a data block that a search in it reads: the heads and
/// offsets of about forty entries.
pub(super) const BLOCK_HEAD_LINES: usize = 4;

/// One in this many reads is timed while there are hot records, chosen by the offset: enough to know whether
/// reads wait for a device.
const TIMED_READS: u64 = 16;
const TIMED_UNIT: u64 = 4096;

/// How far a block that is read with others may extend beyond them, at least.
const SLACK_BYTES: u64 = 4096;

impl Table {
    /// Returns the data block with this number, verified and decompressed.
    pub(crate) fn block(&self, number: usize) -> Result<BlockRef> {
        let opened = self.opened()?;
        self.counters().add(Counter::DataUses, 1);
        if let Some(block) = opened.slots.get(data_slot(number), &pin()) {
            prefetch_lines(&block, BLOCK_HEAD_LINES);
            return Ok(block.share());
        }
        self.file.load_data_block(opened, number)
    }

    /// Calls `read` with a data block, if it is in memory. Does not count the use of the block.
    #[inline]
    pub(super) fn with_resident<T>(
        &self,
        opened: &OpenTable,
        number: usize,
        read: impl FnOnce(BlockView<'_>) -> T,
    ) -> Option<T> {
        let guard = pin();
        let block = opened.slots.get(data_slot(number), &guard)?;
        prefetch_lines(&block, BLOCK_HEAD_LINES);
        Some(read(block))
    }

    /// Returns a data block if it is in memory.
    #[inline]
    pub(super) fn resident_block(&self, number: usize) -> Result<Option<BlockRef>> {
        let opened = self.opened()?;
        let guard = pin();
        let Some(block) = opened.slots.get(data_slot(number), &guard) else { return Ok(None) };
        self.counters().add(Counter::DataUses, 1);
        prefetch_lines(&block, BLOCK_HEAD_LINES);
        Ok(Some(block.share()))
    }

    /// Returns true if a data block is in memory. This does not count as a use of the block.
    pub(crate) fn is_block_resident(&self, number: usize) -> bool {
        self.is_resident(data_slot(number))
    }

    /// The threads that read on behalf of readers of the table.
    pub(crate) fn io_threads(&self) -> &IoThreads {
        &self.file.environment.io_threads
    }

    /// Returns a block and those after it in a direction that begin within `bytes` bytes and do not extend
    /// far beyond, and the bytes of all.
    pub(super) fn blocks_within(
        &self,
        number: usize,
        toward: Toward,
        bytes: u64,
    ) -> Result<(Range<usize>, u64)> {
        let longest = bytes + (bytes / 4).max(SLACK_BYTES);
        self.with_index(|opened, index| {
            let count = opened.index.len();
            if number >= count {
                return (number..number, 0);
            }
            let place = index.block(number);
            // The distances at which a block begins and ends.
            let distances = |other: usize| {
                let other = index.block(other);
                match toward {
                    Toward::End => {
                        [other.start, other.end].map(|at| at.saturating_sub(place.start))
                    }
                    Toward::Start => {
                        [other.end, other.start].map(|at| place.end.saturating_sub(at))
                    }
                }
            };
            let is_within = |&other: &usize| {
                let [begin, end] = distances(other);
                begin < bytes && end <= longest
            };
            let numbers = match toward {
                Toward::End => {
                    number..number + 1 + (number + 1..count).take_while(is_within).count()
                }
                Toward::Start => {
                    number - (0..number).rev().take_while(is_within).count()..number + 1
                }
            };
            let last = if toward == Toward::End { numbers.end - 1 } else { numbers.start };
            (numbers, distances(last)[1])
        })
    }

    /// Reads consecutive blocks as stored in the file, without verification. Returns them with their
    /// offset.
    pub(super) fn read_blocks(&self, numbers: &Range<usize>) -> Result<(u64, BlockRef)> {
        let (start, mut stored) = memory_for_blocks(self, numbers)?;
        self.file.read_into(&self.opened()?.reader, start, &mut stored)?;
        self.counters().add(Counter::TableBytesRead, stored.len() as u64);
        Ok((start, stored.freeze()))
    }

    /// Verifies and decompresses a data block that was read ahead. Puts it into its slot if the buffer
    /// manager has free memory, or if `keeps` says so.
    pub(super) fn install_block(
        &self,
        number: usize,
        stored: &[u8],
        offset: u64,
        keeps: bool,
    ) -> Result<BlockRef> {
        let opened = self.opened()?;
        let environment = &*self.file.environment;
        let TableEnvironment { buffer, counters, .. } = environment;
        environment.hot_records.yield_to_blocks(buffer);
        counters.add_cache_miss(BlockKind::Data, self.file.level());
        let (path, what) = (self.path(), "data block");
        let verified = stored::verify(stored, self.id(), offset, path, what);
        let (bytes, packing) = self.file.environment.noting_damage(verified)?;
        let len = packing::unpacked_len(bytes, packing, path, offset, what)?;
        if !keeps && !buffer.has_room(len) {
            return self.standalone_block(bytes, packing, offset);
        }
        let mut block = environment.allocate_at_once(len);
        packing::unpack(bytes, packing, &mut block, path, offset, what)?;
        Ok(opened.slots.fill(data_slot(number), block.freeze(), Priority::Data))
    }

    /// Reads a data block from a file, bypassing the buffer manager. Returns it verified and
    /// decompressed.
    pub(super) fn raw_block(&self, file: &SequentialFile, number: usize) -> Result<BlockRef> {
        let place = self.block_place(number)?;
        let len = place.end.saturating_sub(place.start) as usize;
        self.file.check_place(place.start, len)?;
        if len <= TRAILER_BYTES {
            return Err(self.file.corrupt(place.start, "data block", "it is too short"));
        }
        let mut stored = vec![0; len];
        file.read_into(&self.file, self.opened()?, place.start, &mut stored)?;
        let verified = stored::verify(&stored, self.id(), place.start, self.path(), "data block");
        let (bytes, packing) = self.file.environment.noting_damage(verified)?;
        self.standalone_block(bytes, packing, place.start)
    }

    /// Copies a verified block to memory outside the buffer pool, and decompresses it.
    pub(super) fn standalone_block(
        &self,
        bytes: &[u8],
        packing: Packing,
        offset: u64,
    ) -> Result<BlockRef> {
        let (path, what) = (self.path(), "data block");
        let len = packing::unpacked_len(bytes, packing, path, offset, what)?;
        let mut block = self.file.environment.buffer.standalone(len);
        packing::unpack(bytes, packing, &mut block, path, offset, what)?;
        Ok(block.freeze())
    }

    /// Returns the location of a data block in the file, including its trailer.
    pub(super) fn block_place(&self, number: usize) -> Result<Range<u64>> {
        self.with_index(|_, index| index.block(number))
    }

    /// Returns the offset of a data block, for errors about its contents.
    pub(crate) fn block_offset(&self, number: usize) -> Result<u64> {
        Ok(self.block_place(number)?.start)
    }

    /// Calls `read` with the index.
    #[inline]
    pub(super) fn with_index<T>(
        &self,
        read: impl FnOnce(&OpenTable, &Index<'_>) -> T,
    ) -> Result<T> {
        let opened = self.opened()?;
        self.with_index_of(opened, |index| read(opened, index))
    }

    /// Calls `read` with the index of an open table.
    #[inline]
    pub(super) fn with_index_of<T>(
        &self,
        opened: &OpenTable,
        read: impl FnOnce(&Index<'_>) -> T,
    ) -> Result<T> {
        let (handle, kind) = (opened.footer.index, BlockKind::Index);
        self.file.with_part(opened, INDEX_SLOT, handle, kind, |bytes| {
            read(&Index::new(bytes, &opened.index))
        })
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.file.environment.counters
    }

    /// Returns true if a block is in memory. This does not count as a use of the block.
    pub(super) fn is_resident(&self, slot: usize) -> bool {
        self.opened_already().is_some_and(|opened| opened.slots.is_resident(slot))
    }
}

/// Returns the offset of consecutive blocks in the file, and memory outside of the buffer pool for them.
pub(super) fn memory_for_blocks(table: &Table, numbers: &Range<usize>) -> Result<(u64, BlockMut)> {
    let last = numbers.end.saturating_sub(1);
    let (start, end) =
        table.with_index(|_, index| (index.block(numbers.start).start, index.block(last).end))?;
    let len = end.saturating_sub(start) as usize;
    table.file.check_place(start, len)?;
    Ok((start, table.file.environment.buffer.standalone(len)))
}

impl TableFile {
    /// Calls `read` with the bytes of the index or the filter.
    #[inline]
    pub(super) fn with_part<T>(
        &self,
        opened: &OpenTable,
        slot: usize,
        handle: Handle,
        kind: BlockKind,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<T> {
        {
            let guard = pin();
            if let Some(part) = opened.slots.get(slot, &guard) {
                return Ok(read(&part));
            }
        }
        let len = handle.len as usize + TRAILER_BYTES;
        Ok(read(&self.load(opened, slot, handle.offset, len, kind)?))
    }

    /// Reads a data block that is not in memory.
    #[cold]
    pub(super) fn load_data_block(&self, opened: &OpenTable, number: usize) -> Result<BlockRef> {
        let place = self.place_of(opened, number)?;
        self.announce(opened, number, &place);
        let len = (place.end - place.start) as usize;
        self.load(opened, data_slot(number), place.start, len, BlockKind::Data)
    }

    /// Returns the location of a data block with its trailer, which is not shorter than a trailer.
    pub(super) fn place_of(&self, opened: &OpenTable, number: usize) -> Result<Range<u64>> {
        let (handle, kind) = (opened.footer.index, BlockKind::Index);
        let place = self.with_part(opened, INDEX_SLOT, handle, kind, |bytes| {
            Index::new(bytes, &opened.index).block(number)
        })?;
        let len = place.end.saturating_sub(place.start);
        if len <= TRAILER_BYTES as u64 || number >= opened.index.len() {
            return Err(self.corrupt(place.start, "data block", "it is too short"));
        }
        Ok(place)
    }

    /// Reads a block from the file and puts it into its slot, unless another thread does so.
    #[cold]
    fn load(
        &self,
        opened: &OpenTable,
        slot: usize,
        offset: u64,
        len: usize,
        kind: BlockKind,
    ) -> Result<BlockRef> {
        let priority = if kind == BlockKind::Data { Priority::Data } else { Priority::Meta };
        opened.slots.load_once(slot, priority, || {
            let block = self.read_block(&opened.reader, offset, len, kind);
            self.environment.noting_damage(block)
        })
    }

    fn is_timed(&self, offset: u64) -> bool {
        let TableEnvironment { hot_records, buffer, .. } = &*self.environment;
        (offset / TIMED_UNIT).is_multiple_of(TIMED_READS) && hot_records.are_active(buffer)
    }

    /// Reads a block from the file, verified and decompressed.
    fn read_block(
        &self,
        reader: &TableReader,
        offset: u64,
        len: usize,
        kind: BlockKind,
    ) -> Result<BlockRef> {
        let environment = &*self.environment;
        environment.counters.add_cache_miss(kind, self.level());
        self.check_place(offset, len)?;
        // Indexes and filters are worth a wait.
        let mut stored = match kind {
            BlockKind::Data => environment.allocate_at_once(len),
            _ => environment.allocate(len),
        };
        let mut read = || self.read_into(reader, offset, &mut stored);
        match self.is_timed(offset) {
            true => {
                environment.hot_records.yield_to_blocks(&environment.buffer);
                environment.io_threads.read_alone(read)?;
            }
            false => read()?,
        }
        self.unpack(stored, offset, kind)
    }

    /// Verifies and decompresses a block that was read.
    pub(super) fn unpack(
        &self,
        mut stored: BlockMut,
        offset: u64,
        kind: BlockKind,
    ) -> Result<BlockRef> {
        let environment = &*self.environment;
        environment.counters.add(Counter::TableBytesRead, stored.len() as u64);
        let what = kind.name();
        let (bytes, packing) = stored::verify(&stored, self.id, offset, &self.path, what)?;
        if packing == Packing::Plain {
            let len = bytes.len();
            stored.truncate(len);
            return Ok(stored.freeze());
        }
        if kind != BlockKind::Data {
            return Err(self.corrupt(offset, what, "it must not be compressed"));
        }
        let len = packing::unpacked_len(bytes, packing, &self.path, offset, what)?;
        let mut block = environment.allocate_at_once(len);
        packing::unpack(bytes, packing, &mut block, &self.path, offset, what)?;
        Ok(block.freeze())
    }
}
