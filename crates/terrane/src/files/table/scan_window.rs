//! Read-ahead of scans: a scan that comes to a block which is not in memory reads the following blocks
//! with it, as many as scans of this tree have needed ([`super::scan_lengths`]). A long scan also reads the
//! next blocks on other threads while its caller consumes the current ones.
//!
//! Of the blocks that were read ahead, only the first ones of a scan go into the buffer manager in any case.
//! The others do while it has free memory, so that a long scan evicts little that other readers use. A failed
//! read-ahead is discarded. The block is then read individually, so an error surfaces, with its location,
//! only if the scan reaches the damaged block.

mod run;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use self::run::BlockRun;
pub(crate) use self::run::{ScanPace, Toward};
use super::reader::Table;
use super::scan_lengths::NextRead;
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
const BYTES_MAX: u64 = 256 << 10;

/// From this size on, the next reads of a scan that probably goes on are started before they are needed.
const OVERLAPPED_BYTES: u64 = 64 << 10;

/// The number of reads that are started before they are needed.
const COMING_MAX: usize = 2;

/// The read-ahead of one cursor over a table.
#[derive(Debug, Default)]
pub(super) struct ScanWindow {
    /// The consecutive blocks that were not in memory.
    run: Option<BlockRun>,
    /// The last read.
    last: NextRead,
    current: Option<Blocks>,
    /// The reads after it that have been started, in the order of the scan.
    coming: VecDeque<(Range<usize>, Upcoming<Blocks>)>,
}

/// A read that was begun for a cursor.
#[derive(Debug)]
pub(super) enum Upcoming<T: Send> {
    /// Another thread reads.
    Begun(Pending<Result<T>>),
    Done(T),
}

impl<T: Send> Upcoming<T> {
    /// Waits for the read. Returns `None` if it failed.
    pub(super) fn wait(self) -> Option<T> {
        match self {
            Self::Begun(pending) => pending.wait()?.ok(),
            Self::Done(read) => Some(read),
        }
    }
}

/// Consecutive blocks as stored in the file.
#[derive(Debug)]
pub(super) struct Blocks {
    numbers: Range<usize>,
    /// The offset of the first block in the file.
    start: u64,
    stored: BlockRef,
}

impl ScanWindow {
    /// The window of a scan that comes from the end of the table before and continues at the first block.
    pub(super) fn continuing(table: &Table, pace: ScanPace) -> Result<Self> {
        let (run, last) = pace.in_table(table)?;
        Ok(Self { run: Some(run), last, ..Self::default() })
    }

    /// Returns the pace if the last of the table's `blocks` blocks was not in memory. The run of blocks goes on
    /// in the next table.
    pub(super) fn take_pace(&mut self, blocks: usize) -> Option<ScanPace> {
        let run = self.run.take_if(|run| run.is_next(blocks))?;
        Some(ScanPace::new(run, self.last))
    }

    /// Returns the blocks to read for a seek to a block that is not in memory: with it those that scans need after it.
    /// Returns `None` if they were read ahead.
    pub(super) fn plan(&mut self, table: &Table, number: usize) -> Option<Range<usize>> {
        if self.covers(number) {
            return None;
        }
        self.end_run();
        self.run = Some(BlockRun::new(table, number, Toward::End).ok()?);
        let numbers = self.grow(table, number);
        Some(if numbers.is_empty() { number..number + 1 } else { numbers })
    }

    /// Takes over the read of several blocks.
    pub(super) fn expect(&mut self, numbers: Range<usize>, read: Upcoming<Blocks>) {
        self.coming.push_back((numbers, read));
    }

    /// Abandons the reads that were started for a seek which did not follow.
    pub(super) fn forget_start(&mut self) {
        if self.run.as_ref().is_some_and(BlockRun::is_empty) {
            self.end_run();
        }
    }

    /// Returns a block that is not in memory, for a scan in this direction.
    pub(super) fn block(
        &mut self,
        table: &Arc<Table>,
        number: usize,
        toward: Toward,
    ) -> Result<BlockRef> {
        let count = self.note(table, number, toward)?;
        let keeps = count <= KEPT_BLOCKS;
        if table.io_threads().is_slow() || count > QUICK_READS_ALONE || self.covers(number) {
            self.advance_to(table, number);
            let current = self.current.as_ref().filter(|blocks| blocks.numbers.contains(&number));
            if let Some(Ok(block)) = current.map(|blocks| blocks.block(table, number, keeps)) {
                return Ok(block);
            }
        }
        let read = || table.block(number);
        table.io_threads().read_alone(read)
    }

    /// Adds a block that was not in memory to the run, and returns the number of its blocks.
    pub(super) fn note(
        &mut self,
        table: &Arc<Table>,
        number: usize,
        toward: Toward,
    ) -> Result<u32> {
        let place = table.block_place(number)?;
        let goes_on = self
            .run
            .as_ref()
            .is_some_and(|run| run.goes_on_at(&place, toward, self.covers(number)));
        if !goes_on {
            self.end_run();
        }
        let run = match &mut self.run {
            Some(run) => run,
            run => run.insert(BlockRun::new(table, number, toward)?),
        };
        Ok(run.add(number, &place, table.io_threads().is_slow()))
    }

    /// Returns true if a block was read ahead, or is being read.
    fn covers(&self, number: usize) -> bool {
        self.current.as_ref().is_some_and(|blocks| blocks.numbers.contains(&number))
            || self.coming.iter().any(|(numbers, _)| numbers.contains(&number))
    }

    /// Ends the run of blocks, whose length later scans learn.
    fn end_run(&mut self) {
        self.coming.clear();
        (self.run, self.last, self.current) = (None, NextRead::default(), None);
    }

    /// Makes the current blocks include `number`, if they can be read.
    fn advance_to(&mut self, table: &Arc<Table>, number: usize) {
        if self.current.as_ref().is_some_and(|blocks| blocks.numbers.contains(&number)) {
            return;
        }
        // Released first, so that there are never more windows in memory.
        self.current = None;
        while self.coming.front().is_some_and(|(numbers, _)| !numbers.contains(&number)) {
            self.coming.pop_front();
        }
        self.current = match self.coming.pop_front() {
            Some((_, read)) => read.wait(),
            None => {
                let numbers = self.grow(table, number);
                if numbers.is_empty() {
                    return;
                }
                let read = || Blocks::read(table, numbers);
                table.io_threads().read_much_alone(self.last.bytes, read).ok()
            }
        };
        while self.coming.len() < COMING_MAX
            && self.last.goes_on
            && self.last.bytes >= OVERLAPPED_BYTES
            && let Some(next) = self.after_all()
            && self.start_next(table, next)
        {}
    }

    /// Returns the block after all that were read.
    fn after_all(&self) -> Option<usize> {
        let current = self.current.as_ref().map(|blocks| &blocks.numbers);
        let last = self.coming.back().map(|(numbers, _)| numbers).or(current)?;
        self.toward().after(last)
    }

    fn toward(&self) -> Toward {
        self.run.as_ref().map_or(Toward::End, BlockRun::toward)
    }

    /// Starts to read the blocks from `number` on, if another thread helps and there is more than one.
    fn start_next(&mut self, table: &Arc<Table>, number: usize) -> bool {
        if !table.io_threads().helps() {
            return false;
        }
        let numbers = self.grow(table, number);
        let starts = !numbers.is_empty();
        if starts {
            self.begin(table, numbers);
        }
        starts
    }

    /// Reads blocks. A failed read is discarded.
    pub(super) fn read(&mut self, table: &Table, numbers: Range<usize>) {
        let read = || Blocks::read(table, numbers.clone());
        let read = table.io_threads().read_much_alone(self.last.bytes, read);
        if let Ok(blocks) = read {
            self.expect(numbers, Upcoming::Done(blocks));
        }
    }

    /// Begins to read blocks on another thread.
    pub(super) fn begin(&mut self, table: &Arc<Table>, numbers: Range<usize>) {
        let (of, range) = (Arc::clone(table), numbers.clone());
        let read = move || Blocks::read(&of, range);
        let pending = table.io_threads().start_much(self.last.bytes, read);
        self.expect(numbers, Upcoming::Begun(pending));
    }

    /// Returns the blocks to read next, from `number` on; empty if one is enough, if they are so large that
    /// each is better read individually, or if other scans take all memory for reading ahead.
    fn grow(&mut self, table: &Table, number: usize) -> Range<usize> {
        let learned = self.run.as_ref().filter(|_| table.io_threads().is_slow());
        let learned = learned.and_then(|run| run.next_read(&table.block_place(number).ok()?));
        let NextRead { bytes, goes_on } = learned.unwrap_or_else(|| {
            let bytes = (self.last.bytes * 2).clamp(FIRST_BYTES, BYTES_MAX);
            NextRead { bytes, goes_on: true }
        });
        let room = table.file.environment.standalone_room() / 4;
        let (numbers, bytes) =
            table.blocks_within(number, self.toward(), bytes.min(room)).unwrap_or_default();
        self.last = NextRead { bytes, goes_on };
        if numbers.len() > 1 && bytes <= room { numbers } else { number..number }
    }
}

impl Blocks {
    pub(super) fn new(numbers: Range<usize>, start: u64, stored: BlockRef) -> Self {
        Self { numbers, start, stored }
    }

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
mod tests;
