//! The consecutive blocks that a scan needed and that were not in memory, whose length later scans learn.

use std::ops::Range;
use std::sync::Arc;

use super::super::reader::Table;
use super::super::scan_lengths::{BEGIN_BYTES, NextRead, ScanLengths};
use crate::base::error::Result;

/// A run of blocks. Its length is counted when it ends, which is when this value is dropped.
#[derive(Debug)]
pub(super) struct BlockRun {
    lengths: Arc<ScanLengths>,
    level: u8,
    toward: Toward,
    /// The bytes of the run in tables before.
    before: u64,
    /// The offset in the file at which the run begins.
    origin: u64,
    /// The distances from the origin at which the last block begins and ends, in the direction of the scan.
    last: Range<u64>,
    /// The block after the last one in the direction of the scan, if there is one.
    next: Option<usize>,
    /// The number of blocks, in all tables.
    count: u32,
    /// Whether reads waited for a device. Otherwise nothing is to be learned.
    is_slow: bool,
}

/// The direction of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Toward {
    End,
    Start,
}

impl Toward {
    /// Returns the block after blocks, in this direction.
    pub(super) fn after(self, numbers: &Range<usize>) -> Option<usize> {
        match self {
            Self::End => Some(numbers.end),
            Self::Start => numbers.start.checked_sub(1),
        }
    }
}

/// How far a scan has come with its read-ahead at the end of a table, for the next table.
#[derive(Debug)]
pub(crate) struct ScanPace {
    run: BlockRun,
    last: NextRead,
}

impl ScanPace {
    pub(super) fn new(run: BlockRun, last: NextRead) -> Self {
        Self { run, last }
    }

    /// Continues the run in the next table, which has blocks.
    pub(super) fn in_table(self, table: &Table) -> Result<(BlockRun, NextRead)> {
        let Self { mut run, last } = self;
        run.origin = table.block_place(0)?.start;
        run.before += run.last.end;
        run.last = 0..0;
        run.level = table.file.level();
        run.next = Some(0);
        Ok((run, last))
    }
}

impl BlockRun {
    /// A run that begins with a block.
    pub(super) fn new(table: &Table, number: usize, toward: Toward) -> Result<Self> {
        let place = table.block_place(number)?;
        let origin = match toward {
            Toward::End => place.start,
            Toward::Start => place.end,
        };
        Ok(Self {
            lengths: Arc::clone(table.file.scan_lengths()),
            level: table.file.level(),
            toward,
            before: 0,
            origin,
            last: 0..0,
            next: Some(number),
            count: 0,
            is_slow: false,
        })
    }

    pub(super) fn toward(&self) -> Toward {
        self.toward
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns true if a block is the one after the last block.
    pub(super) fn is_next(&self, number: usize) -> bool {
        self.next == Some(number)
    }

    /// Returns the distances from the origin at which a block begins and ends; `None` if it is behind the
    /// origin.
    fn distances(&self, place: &Range<u64>) -> Option<Range<u64>> {
        Some(match self.toward {
            Toward::End => {
                place.start.checked_sub(self.origin)?..place.end.checked_sub(self.origin)?
            }
            Toward::Start => {
                self.origin.checked_sub(place.end)?..self.origin.checked_sub(place.start)?
            }
        })
    }

    /// Returns true if a block belongs to the run: it follows, or after blocks in memory that take less than
    /// what a new read costs. `is_read` says whether it was read with the others.
    pub(super) fn goes_on_at(&self, place: &Range<u64>, toward: Toward, is_read: bool) -> bool {
        let gap = || self.distances(place)?.start.checked_sub(self.last.end);
        toward == self.toward && (is_read || gap().is_some_and(|gap| gap <= BEGIN_BYTES))
    }

    /// Adds a block, and returns the number of blocks.
    pub(super) fn add(&mut self, number: usize, place: &Range<u64>, is_slow: bool) -> u32 {
        if let Some(distances) = self.distances(place) {
            self.last = distances;
        }
        self.next = self.toward.after(&(number..number + 1));
        self.count = self.count.saturating_add(1);
        self.is_slow = is_slow;
        self.count
    }

    /// Returns what to read next, from a block on; `None` if the run is longer than all classes of lengths.
    pub(super) fn next_read(&self, place: &Range<u64>) -> Option<NextRead> {
        let done = self.before + self.distances(place).map_or(0, |distances| distances.start);
        self.lengths.next_read(self.level, done)
    }
}

impl Drop for BlockRun {
    fn drop(&mut self) {
        if self.count > 0 && self.is_slow {
            self.lengths.note(self.level, self.before + self.last.start + 1);
        }
    }
}
