//! Read-ahead of scans: after a few consecutive blocks that are not in memory, a scan reads the next
//! blocks with one large read. A long scan also reads the following blocks on another thread while
//! its caller consumes the current ones.
//!
//! Blocks that were read ahead go into the buffer manager only while it has free memory, so a scan
//! evicts nothing that other readers use. A failed read-ahead is discarded. The block is then read
//! individually, so an error surfaces, with its location, only if the scan reaches the damaged
//! block.

use std::ops::Range;
use std::sync::Arc;

use super::reader::Table;
use crate::base::error::Result;
use crate::base::stats::Counter;
use crate::files::buffer::BlockRef;
use crate::files::io_threads::Pending;

/// The number of consecutive blocks that a scan reads individually, because a short scan needs no
/// more.
const READS_ALONE: u32 = 2;

/// The same while reads are quick because they come from the page cache. One large read then gains
/// little, and a short scan would read too much.
const QUICK_READS_ALONE: u32 = 16;

/// The size of the first read-ahead, and the size up to which it doubles.
const FIRST_BYTES: u64 = 32 << 10;
const BYTES_MAX: u64 = 256 << 10;

/// From this size on, the next read is started before it is needed.
const OVERLAPPED_BYTES: u64 = 64 << 10;

/// The read-ahead of one cursor over a table.
#[derive(Debug, Default)]
pub(super) struct ScanWindow {
    /// The block after the last block that was not in memory.
    next: usize,
    /// The number of consecutive blocks that were not in memory.
    misses: u32,
    /// The size of the last read-ahead.
    bytes: u64,
    current: Option<Blocks>,
    coming: Option<(Range<usize>, Pending<Result<Blocks>>)>,
}

/// How far a scan has come with its read-ahead, for the next table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScanPace {
    misses: u32,
    bytes: u64,
}

/// Consecutive blocks as stored in the file.
#[derive(Debug)]
struct Blocks {
    numbers: Range<usize>,
    /// The offset of the first block in the file.
    start: u64,
    stored: BlockRef,
}

impl ScanWindow {
    /// The window of a scan that comes from the end of the table before and continues at the first block.
    pub(super) fn continuing(pace: ScanPace) -> Self {
        let ScanPace { misses, bytes } = pace;
        Self { misses, bytes, ..Self::default() }
    }

    /// Returns the pace if the last of the table's `blocks` blocks was not in memory.
    pub(super) fn pace(&self, blocks: usize) -> Option<ScanPace> {
        (self.next == blocks).then_some(ScanPace { misses: self.misses, bytes: self.bytes })
    }

    /// Returns a block that is not in memory.
    pub(super) fn block(&mut self, table: &Arc<Table>, number: usize) -> Result<BlockRef> {
        // Blocks in between may have been in memory.
        if number != self.next && !self.covers(number) {
            *self = Self::default();
        }
        self.next = number + 1;
        self.misses = self.misses.saturating_add(1);
        let alone = if table.io_threads().is_slow() { READS_ALONE } else { QUICK_READS_ALONE };
        if self.misses > alone {
            self.advance_to(table, number);
            let current = self.current.as_ref().filter(|blocks| blocks.numbers.contains(&number));
            if let Some(Ok(block)) = current.map(|blocks| blocks.block(table, number)) {
                return Ok(block);
            }
        }
        let read = || table.block(number);
        table.io_threads().read_alone(read)
    }

    /// Returns true if a block was read ahead, or is being read.
    fn covers(&self, number: usize) -> bool {
        self.current.as_ref().is_some_and(|blocks| blocks.numbers.contains(&number))
            || self.coming.as_ref().is_some_and(|(numbers, _)| numbers.contains(&number))
    }

    /// Makes the current blocks include `number`, if they can be read.
    fn advance_to(&mut self, table: &Arc<Table>, number: usize) {
        if self.current.as_ref().is_some_and(|blocks| blocks.numbers.contains(&number)) {
            return;
        }
        // Released first, so that there are never more than two windows in memory.
        self.current = None;
        let coming = self.coming.take().filter(|(numbers, _)| numbers.contains(&number));
        let blocks = match coming {
            Some((_, pending)) => pending.wait().and_then(Result::ok),
            None => {
                let numbers = self.grow(table, number);
                if numbers.is_empty() {
                    return;
                }
                let read = || Blocks::read(table, numbers);
                table.io_threads().read_alone(read).ok()
            }
        };
        if let Some(blocks) = &blocks
            && self.bytes >= OVERLAPPED_BYTES
            && table.io_threads().helps()
        {
            let numbers = self.grow(table, blocks.numbers.end);
            if !numbers.is_empty() {
                let (table, range) = (Arc::clone(table), numbers.clone());
                let pending = table.clone().io_threads().start(move || Blocks::read(&table, range));
                self.coming = Some((numbers, pending));
            }
        }
        self.current = blocks;
    }

    /// Returns the blocks to read next, from `number` on; empty if they are so large that each is
    /// better read individually, or if other scans take all memory for reading ahead.
    fn grow(&mut self, table: &Table, number: usize) -> Range<usize> {
        self.bytes = (self.bytes * 2).clamp(FIRST_BYTES, BYTES_MAX);
        self.bytes = self.bytes.min(table.file.environment.standalone_room());
        let end = table.blocks_within(number, self.bytes).unwrap_or(number);
        if end > number + 1 { number..end } else { number..number }
    }
}

impl Blocks {
    fn read(table: &Table, numbers: Range<usize>) -> Result<Self> {
        let (start, stored) = table.read_blocks(&numbers)?;
        Ok(Self { numbers, start, stored })
    }

    /// Returns a block, verified and decompressed.
    fn block(&self, table: &Table, number: usize) -> Result<BlockRef> {
        let place = table.block_place(number)?;
        let from = place.start.saturating_sub(self.start) as usize;
        let to = place.end.saturating_sub(self.start) as usize;
        let stored = self.stored.get(from..to).unwrap_or_default();
        table.counters().add(Counter::DataUses, 1);
        table.install_block(number, stored, place.start)
    }
}
