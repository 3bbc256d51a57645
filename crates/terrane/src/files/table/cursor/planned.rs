//! Reads that begin before a cursor seeks, together with those of the other cursors of the seek.

use std::ops::Range;
use std::sync::Arc;

use super::super::reader::Table;
use super::super::scan_window::Upcoming;
use super::super::together::Loaded;
use super::{Prefetched, TableCursor};
use crate::base::stats::Counter;
use crate::files::value::Value;

impl TableCursor {
    /// Calls `visit` with the pointers of separated values after the current entry, as
    /// [`super::super::block::BlockCursor::separated_after`] does.
    pub(crate) fn separated_after(&self, count: usize, visit: impl FnMut(Value)) {
        self.entries.separated_after(count, visit);
    }

    /// Returns the blocks to read for the next seek, if its block was prefetched and is not in memory, and reads wait
    /// for a device.
    pub(in crate::files::table) fn plan_read(&mut self) -> Option<(Arc<Table>, Range<usize>)> {
        let Prefetched::Block(number) = self.prefetched else { return None };
        // Jobs bypass the pool.
        if self.ahead.is_some()
            || !self.table.io_threads().helps()
            || self.table.is_block_resident(number)
        {
            return None;
        }
        let numbers = self.window.get_or_insert_default().plan(&self.table, number)?;
        Some((Arc::clone(&self.table), numbers))
    }

    /// Takes over what was read for the next seek.
    pub(in crate::files::table) fn expect(&mut self, numbers: Range<usize>, loaded: Loaded) {
        match loaded {
            Loaded::Block(block) => {
                self.table.counters().add(Counter::DataUses, 1);
                self.loading = Some((numbers.start, Upcoming::Done(block)));
            }
            Loaded::Blocks(blocks) => {
                let window = self.window.get_or_insert_default();
                window.expect(numbers, Upcoming::Done(blocks));
            }
        }
    }

    /// Reads the blocks for the next seek. After an error the seek reads its block again.
    pub(in crate::files::table) fn read_now(&mut self, numbers: Range<usize>) {
        let threads = self.table.io_threads();
        if numbers.len() > 1 {
            self.window.get_or_insert_default().read(&self.table, numbers);
        } else if let Ok(block) = threads.read_alone(|| self.table.block(numbers.start)) {
            self.loading = Some((numbers.start, Upcoming::Done(block)));
        }
    }

    /// Begins to read the blocks for the next seek on another thread.
    pub(in crate::files::table) fn begin_read(&mut self, numbers: Range<usize>) {
        if numbers.len() > 1 {
            self.window.get_or_insert_default().begin(&self.table, numbers);
            return;
        }
        let (table, number) = (Arc::clone(&self.table), numbers.start);
        let pending = self.table.io_threads().start(move || table.block(number));
        self.loading = Some((number, Upcoming::Begun(pending)));
    }
}
