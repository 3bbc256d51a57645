//! Read-ahead of scans: a scan that comes to a block which is not in memory reads the following blocks
//! with it, as many as scans of this tree have needed ([`super::scan_lengths`]). A long scan also reads the
//! next blocks on another thread while its caller consumes the current ones.
//!
//! Only the first blocks that a scan reads go into the buffer manager in any case. The others do while it has
//! free memory, so that a long scan evicts nothing that other readers use. A failed read-ahead is discarded.
//! The block is then read individually, so an error surfaces, with its location, only if the scan reaches the
//! damaged block.

use std::ops::Range;
use std::sync::Arc;

use super::reader::Table;
use super::scan_lengths::{NextRead, ScanLengths};
use crate::base::error::Result;
use crate::base::stats::Counter;
use crate::files::buffer::BlockRef;
use crate::files::io_threads::Pending;

/// The number of blocks from the first one on that a scan keeps in memory at the expense of others.
const KEPT_BLOCKS: u32 = 2;

/// While reads are quick because they come from the page cache, the number of consecutive blocks that a scan
/// reads individually. One large read then gains little, and a short scan would read too much.
const QUICK_READS_ALONE: u32 = 16;

/// The size of the first read-ahead while reads are quick.
const FIRST_BYTES: u64 = 32 << 10;

/// The size up to which reads double.
const BYTES_MAX: u64 = 512 << 10;

/// From this size on, the next read of a scan that probably goes on is started before it is needed.
const OVERLAPPED_BYTES: u64 = 64 << 10;

/// The read-ahead of one cursor over a table.
#[derive(Debug, Default)]
pub(super) struct ScanWindow {
    /// The consecutive blocks that were not in memory.
    run: Option<BlockRun>,
    /// The last read.
    last: LastRead,
    current: Option<Blocks>,
    coming: Option<(Range<usize>, Pending<Result<Blocks>>)>,
}

/// Consecutive blocks that a scan needed and that were not in memory.
#[derive(Debug)]
struct BlockRun {
    lengths: Arc<ScanLengths>,
    level: u8,
    /// The bytes of the run in tables before.
    before: u64,
    /// The offset in the file of the first block.
    start: u64,
    /// The offset after the last block.
    end: u64,
    /// The block after the last one.
    next: usize,
    /// The number of blocks, in all tables.
    count: u32,
}

/// The last read of a window.
#[derive(Debug, Clone, Copy, Default)]
struct LastRead {
    bytes: u64,
    goes_on: bool,
}

/// How far a scan has come with its read-ahead, for the next table.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ScanPace {
    before: u64,
    count: u32,
    last: LastRead,
}

/// Consecutive blocks as stored in the file.
#[derive(Debug)]
struct Blocks {
    numbers: Range<usize>,
    /// The offset of the first block in the file.
    start: u64,
    stored: BlockRef,
}

impl BlockRun {
    /// A run that begins with a block, or continues the blocks of a table before.
    fn new(table: &Table, number: usize, pace: ScanPace) -> Result<Self> {
        let start = table.block_place(number)?.start;
        let (lengths, level) = (Arc::clone(table.file.scan_lengths()), table.file.level());
        let ScanPace { before, count, .. } = pace;
        Ok(Self { lengths, level, before, start, end: start, next: number, count })
    }

    /// The bytes of the run before an offset in the file.
    fn bytes_before(&self, offset: u64) -> u64 {
        self.before + offset.saturating_sub(self.start)
    }
}

impl ScanWindow {
    /// The window of a scan that comes from the end of the table before and continues at the first block.
    pub(super) fn continuing(table: &Table, pace: ScanPace) -> Result<Self> {
        let run = Some(BlockRun::new(table, 0, pace)?);
        Ok(Self { run, last: pace.last, current: None, coming: None })
    }

    /// Returns the pace if the last of the table's `blocks` blocks was not in memory. The run of blocks goes on
    /// in the next table.
    pub(super) fn take_pace(&mut self, blocks: usize) -> Option<ScanPace> {
        let run = self.run.take_if(|run| run.next == blocks)?;
        let ScanWindow { last, .. } = *self;
        Some(ScanPace { before: run.bytes_before(run.end), count: run.count, last })
    }

    /// Starts to read a block for a seek, with those that scans need after it, on another thread. Returns false
    /// if scans rarely need more than this block.
    pub(super) fn start(&mut self, table: &Arc<Table>, number: usize) -> bool {
        self.end_run();
        let Ok(run) = BlockRun::new(table, number, ScanPace::default()) else { return false };
        self.run = Some(run);
        self.start_next(table, number);
        self.coming.is_some()
    }

    /// Returns a block that is not in memory.
    pub(super) fn block(&mut self, table: &Arc<Table>, number: usize) -> Result<BlockRef> {
        // Blocks in between may have been in memory.
        let is_next = self.run.as_ref().is_some_and(|run| run.next == number);
        if !is_next && !self.covers(number) {
            self.end_run();
        }
        let place = table.block_place(number)?;
        let run = match &mut self.run {
            Some(run) => run,
            run => run.insert(BlockRun::new(table, number, ScanPace::default())?),
        };
        run.end = place.end;
        run.next = number + 1;
        run.count = run.count.saturating_add(1);
        let keeps = run.count <= KEPT_BLOCKS;
        if table.io_threads().is_slow() || run.count > QUICK_READS_ALONE {
            self.advance_to(table, number);
            let current = self.current.as_ref().filter(|blocks| blocks.numbers.contains(&number));
            if let Some(Ok(block)) = current.map(|blocks| blocks.block(table, number, keeps)) {
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

    /// Ends the run of blocks, whose length later scans learn.
    fn end_run(&mut self) {
        if let Some(run) = self.run.take() {
            run.lengths.note(run.level, run.bytes_before(run.end));
        }
        (self.last, self.current, self.coming) = (LastRead::default(), None, None);
    }

    /// Makes the current blocks include `number`, if they can be read.
    fn advance_to(&mut self, table: &Arc<Table>, number: usize) {
        if self.current.as_ref().is_some_and(|blocks| blocks.numbers.contains(&number)) {
            return;
        }
        // Released first, so that there are never more than two windows in memory.
        self.current = None;
        let coming = self.coming.take().filter(|(numbers, _)| numbers.contains(&number));
        self.current = match coming {
            Some((_, pending)) => pending.wait().and_then(Result::ok),
            None => {
                let numbers = self.grow(table, number);
                if numbers.is_empty() {
                    return;
                }
                let read = || Blocks::read(table, numbers);
                table.io_threads().read_much_alone(self.last.bytes, read).ok()
            }
        };
        if let Some(blocks) = &self.current
            && self.last.goes_on
            && self.last.bytes >= OVERLAPPED_BYTES
        {
            self.start_next(table, blocks.numbers.end);
        }
    }

    /// Starts to read the blocks from `number` on, if another thread helps and there is more than one.
    fn start_next(&mut self, table: &Arc<Table>, number: usize) {
        if !table.io_threads().helps() {
            return;
        }
        let numbers = self.grow(table, number);
        if !numbers.is_empty() {
            let (of, range) = (Arc::clone(table), numbers.clone());
            let read = move || Blocks::read(&of, range);
            self.coming = Some((numbers, table.io_threads().start_much(self.last.bytes, read)));
        }
    }

    /// Returns the blocks to read next, from `number` on; empty if one is enough, if they are so large that
    /// each is better read individually, or if other scans take all memory for reading ahead.
    fn grow(&mut self, table: &Table, number: usize) -> Range<usize> {
        let learned = self.run.as_ref().filter(|_| table.io_threads().is_slow()).and_then(|run| {
            let start = table.block_place(number).ok()?.start;
            run.lengths.next_read(run.level, run.bytes_before(start))
        });
        self.last = learned.map_or_else(
            || LastRead {
                bytes: (self.last.bytes * 2).clamp(FIRST_BYTES, BYTES_MAX),
                goes_on: true,
            },
            |NextRead { bytes, goes_on }| LastRead { bytes, goes_on },
        );
        self.last.bytes = self.last.bytes.min(table.file.environment.standalone_room() / 4);
        let end = table.blocks_within(number, self.last.bytes).unwrap_or(number);
        if end > number + 1 { number..end } else { number..number }
    }
}

impl Drop for ScanWindow {
    fn drop(&mut self) {
        self.end_run();
    }
}

impl Blocks {
    fn read(table: &Table, numbers: Range<usize>) -> Result<Self> {
        let (start, stored) = table.read_blocks(&numbers)?;
        Ok(Self { numbers, start, stored })
    }

    /// Returns a block, verified and decompressed. `keeps` says whether it goes into the buffer manager at the
    /// expense of other blocks.
    fn block(&self, table: &Table, number: usize, keeps: bool) -> Result<BlockRef> {
        let place = table.block_place(number)?;
        let from = place.start.saturating_sub(self.start) as usize;
        let to = place.end.saturating_sub(self.start) as usize;
        let stored = self.stored.get(from..to).unwrap_or_default();
        table.counters().add(Counter::DataUses, 1);
        table.install_block(number, stored, place.start, keeps)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use terrane_policy::Compression;

    use super::super::tests::long_table;
    use super::*;
    use crate::files::storage::{Access, MemoryStorage};

    /// A table with hundreds of blocks of about 500 bytes, whose reads appear to be slow.
    fn slow_table() -> Arc<Table> {
        let storage = MemoryStorage::new(1);
        long_table(&storage, Compression::None, Access::Buffered, 0).2
    }

    /// Reads blocks as a scan does, and returns the blocks that it read with the first one.
    fn scan(table: &Arc<Table>, blocks: Range<usize>) -> Range<usize> {
        (0..8).for_each(|_| {
            table.io_threads().read_alone(|| std::thread::sleep(Duration::from_micros(30)));
        });
        let mut window = ScanWindow::default();
        let mut first = None;
        for number in blocks.clone() {
            let block = window.block(table, number).unwrap();
            assert_eq!(block[..], table.block(number).unwrap()[..]);
            let read = window.current.as_ref().map(|blocks| blocks.numbers.clone());
            first.get_or_insert(read.unwrap_or(blocks.start..blocks.start + 1));
        }
        first.unwrap()
    }

    #[test]
    fn scans_read_at_once_what_scans_before_them_needed() {
        let table = slow_table();
        let bytes = |blocks: Range<usize>| {
            let [start, end] =
                [blocks.start, blocks.end - 1].map(|n| table.block_place(n).unwrap());
            end.end - start.start
        };
        for (needed, least, most) in
            [(90, 44 << 10, 49 << 10), (1, 0, 5 << 10), (20, 9 << 10, 13 << 10)]
        {
            for start in 0..128 {
                scan(&table, start..start + needed);
            }
            let read = bytes(scan(&table, 200..200 + needed));
            assert!((least..=most).contains(&read), "{read} bytes for {needed} blocks");
        }
    }

    #[test]
    fn the_length_of_a_scan_does_not_end_with_its_table() {
        let (first, second) = (slow_table(), slow_table());
        first.enter(0, &Arc::default());
        second.enter(0, first.file.scan_lengths());
        let count = first.block_count().unwrap();
        for _ in 0..128 {
            let mut window = ScanWindow::default();
            (count - 30..count).for_each(|number| drop(window.block(&first, number).unwrap()));
            let pace = window.take_pace(count).unwrap();
            let mut window = ScanWindow::continuing(&second, pace).unwrap();
            (0..60).for_each(|number| drop(window.block(&second, number).unwrap()));
        }
        // 90 blocks in all, of which 60 are in the second table.
        let read = scan(&first, 0..1).len();
        assert!((90..120).contains(&read), "{read} blocks");
    }

    /// Blocks that are in memory need no read, so the lengths on both sides of them count separately.
    #[test]
    fn a_gap_ends_a_run_of_blocks() {
        let table = slow_table();
        for _ in 0..128 {
            let mut window = ScanWindow::default();
            for start in [0, 200, 400] {
                (start..start + 8).for_each(|number| drop(window.block(&table, number).unwrap()));
            }
        }
        assert!(scan(&table, 0..1).len() <= 9);
    }
}
