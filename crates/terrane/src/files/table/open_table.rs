//! Opens a table: reads and checks everything that stays in memory.
//!
//! The footer, the properties, the range tombstones, the layout of the index and one word per block
//! stay in memory. Everything else is read through the buffer manager. The file itself may be closed
//! between two reads ([`open_files`](super::open_files)).

use std::io;
use std::ops::Range;
use std::sync::Arc;

use terrane_memtable::Fragment;

use super::footer::{FOOTER_BYTES, Footer, Handle};
use super::in_order::InOrder;
use super::index::IndexLayout;
use super::open_files::TableReader;
use super::packing::Packing;
use super::properties::Properties;
use super::range_block;
use super::reader::{TableEnvironment, TableFile};
use super::slots::{INDEX_SLOT, data_slot};
use super::stored::{self, TRAILER_BYTES};
use crate::base::error::{Error, Result};
use crate::base::memory_ledger::Charge;
use crate::base::stats::Counter;
use crate::files::buffer::{BLOCK_LEN_MAX, Slots, pin};
use crate::files::storage::{Access, RandomReader};

/// The parts of an open table that stay in memory.
pub(super) struct OpenTable {
    pub(super) reader: TableReader,
    pub(super) footer: Footer,
    pub(super) index: IndexLayout,
    pub(super) properties: Properties,
    pub(super) fragments: Arc<[Fragment]>,
    /// The blocks that are in memory: the index, the filter, and the data blocks.
    pub(super) slots: Slots,
    pub(super) in_order: InOrder,
    _charge: Charge,
}

impl TableFile {
    #[cold]
    pub(super) fn open(&self) -> Result<OpenTable> {
        let TableEnvironment { storage, access, .. } = &*self.environment;
        let io = |error| Error::io("open", &self.path, error);
        let len = storage.len(&self.path).map_err(io)?;
        if len != self.size_bytes {
            let detail = format!("it is {len} bytes long instead of {}", self.size_bytes);
            return Err(Error::corruption(&self.path, None, "table", detail));
        }
        let reader = TableReader::new(&self.environment.open_files);
        let is_direct = reader.with(|| self.open_shared(), |file| file.is_direct()).map_err(io)?;
        if *access == Access::Direct && !is_direct {
            self.environment.counters.add(Counter::DirectRefused, 1);
        }
        let at = len.checked_sub(FOOTER_BYTES as u64);
        let at = at.ok_or_else(|| self.corrupt(0, "table", "it is shorter than a footer"))?;
        let footer = Footer::decode(&self.read(&reader, at, FOOTER_BYTES)?, &self.path, len)?;
        if (footer.number, footer.writer) != (self.id.number, self.id.writer) {
            return Err(self.corrupt(at, "table footer", "it belongs to another table"));
        }
        self.open_parts(reader, footer)
    }

    fn open_parts(&self, reader: TableReader, footer: Footer) -> Result<OpenTable> {
        let properties = self.read_part(&reader, footer.properties, "properties")?;
        let properties = Properties::decode(&properties).map_err(|error| {
            error.of_file(&self.path, |detail| {
                self.corrupt(footer.properties.offset, "properties", &detail)
            })
        })?;
        let mut fragments = Vec::new();
        if !footer.range_tombstones.is_none() {
            let bytes = self.read_part(&reader, footer.range_tombstones, "range tombstones")?;
            fragments = range_block::decode(&bytes).map_err(|error| {
                self.corrupt(footer.range_tombstones.offset, "range tombstones", &error.to_string())
            })?;
        }
        let (index, slots) = self.open_index(&reader, &footer)?;
        let fragment_bytes = |fragment: &Fragment| {
            let end = fragment.end.as_ref().map_or(0, |end| end.len());
            size_of::<Fragment>() + fragment.start.len() + end + 8 * fragment.seqs.len()
        };
        let bytes = size_of::<OpenTable>()
            + slots.len() * size_of::<usize>()
            + index.memory_bytes()
            + fragments.iter().map(fragment_bytes).sum::<usize>();
        let charge = Charge::new(&self.environment.ledger, |ledger| &ledger.tables, bytes);
        self.environment.make_room_for_tables();
        let fragments = fragments.into();
        Ok(OpenTable {
            reader,
            footer,
            index,
            properties,
            fragments,
            slots,
            in_order: InOrder::default(),
            _charge: charge,
        })
    }

    /// Returns the layout of the index and the slots of the table, including the blocks that were
    /// put into memory when the table was written.
    ///
    /// An index that must be read here, because it was evicted or never warmed, is not put into its
    /// slot, because a compaction may have opened the table.
    fn open_index(&self, reader: &TableReader, footer: &Footer) -> Result<(IndexLayout, Slots)> {
        let parse = |bytes: &[u8]| {
            IndexLayout::parse(bytes, self.size_bytes)
                .map_err(|error| self.corrupt(footer.index.offset, "index", &error.to_string()))
        };
        let warm = self.environment.warm.take(self.id);
        let resident = warm
            .as_ref()
            .and_then(|slots| slots.peek(INDEX_SLOT, &pin()).map(|index| parse(&index)));
        let layout = match resident {
            Some(layout) => layout?,
            None => parse(&self.read_part(reader, footer.index, "index")?)?,
        };
        let count = data_slot(layout.len());
        let slots = warm.filter(|slots| slots.len() == count);
        let slots = slots.unwrap_or_else(|| Slots::new(&self.environment.buffer, count));
        Ok((layout, slots))
    }

    /// Returns true if the system should not read ahead for readers, because they do so themselves
    /// ([`super::scan_window`]) with threads.
    pub(super) fn expects_random_reads(&self) -> bool {
        let TableEnvironment { access, io_threads, .. } = &*self.environment;
        *access == Access::Buffered && io_threads.may_start()
    }

    /// Opens the file for readers.
    fn open_shared(&self) -> io::Result<Arc<dyn RandomReader>> {
        let TableEnvironment { storage, access, .. } = &*self.environment;
        let file = storage.open(&self.path, *access)?;
        if self.expects_random_reads() {
            file.expect_random_reads();
        }
        Ok(file)
    }

    /// Announces the bytes of the file after a block, if the blocks of the table are read in order.
    pub(super) fn announce(&self, opened: &OpenTable, number: usize, place: &Range<u64>) {
        if !self.expects_random_reads() {
            return;
        }
        let Some(Range { start, end }) = opened.in_order.note(number, place) else { return };
        let bytes = start..end.min(self.size_bytes);
        if !bytes.is_empty() {
            // The read of the block reports that the file cannot be opened.
            let _ = opened.reader.with(|| self.open_shared(), |file| file.will_read(bytes));
        }
    }

    /// Returns the file, which is opened first if it was closed to make room for others, and stays open as long as the
    /// value exists.
    pub(super) fn shared_reader(&self, reader: &TableReader) -> io::Result<Arc<dyn RandomReader>> {
        reader.with(|| self.open_shared(), Arc::clone)
    }

    /// Fills `buffer` from the file, which is opened first if it was closed to make room for others.
    pub(super) fn read_into(
        &self,
        reader: &TableReader,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<()> {
        let read = reader.with(|| self.open_shared(), |file| file.read_at(offset, buffer));
        let read = read.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                let detail = "the file is missing; another program removed it while it was in use";
                Error::corruption(&self.path, None, "table", detail)
            }
            _ => Error::io("open", &self.path, error),
        })?;
        read.map_err(|error| Error::io("read", &self.path, error))
    }

    pub(super) fn corrupt(&self, offset: u64, what: &'static str, detail: &str) -> Error {
        Error::corruption(&self.path, Some(offset), what, detail)
    }

    /// Checks that a part is within the file. Its place may come from a damaged index, and its
    /// length is about to be allocated.
    pub(super) fn check_place(&self, offset: u64, len: usize) -> Result<()> {
        let is_within = offset.checked_add(len as u64).is_some_and(|end| end <= self.size_bytes);
        if !is_within || len > BLOCK_LEN_MAX {
            return Err(self.corrupt(
                offset,
                "table",
                "a part is outside of the file, or too long",
            ));
        }
        Ok(())
    }

    /// Reads bytes of the file without verification.
    pub(super) fn read(&self, reader: &TableReader, offset: u64, len: usize) -> Result<Vec<u8>> {
        self.check_place(offset, len)?;
        let mut buffer = vec![0; len];
        self.read_into(reader, offset, &mut buffer)?;
        Ok(buffer)
    }

    /// Reads again and verifies all parts except the data blocks; readers find these parts in
    /// memory.
    pub(super) fn verify_parts(&self, opened: &OpenTable) -> Result<()> {
        let (reader, footer) = (&opened.reader, &opened.footer);
        let at = self.size_bytes.saturating_sub(FOOTER_BYTES as u64);
        Footer::decode(&self.read(reader, at, FOOTER_BYTES)?, &self.path, self.size_bytes)?;
        let parts = [
            (footer.index, "index"),
            (footer.filter, "filter"),
            (footer.properties, "properties"),
            (footer.range_tombstones, "range tombstones"),
        ];
        for (handle, what) in parts.into_iter().filter(|(handle, _)| !handle.is_none()) {
            self.read_part(reader, handle, what)?;
        }
        Ok(())
    }

    /// Reads and verifies a part that stays in memory. Such parts are not compressed.
    fn read_part(
        &self,
        reader: &TableReader,
        handle: Handle,
        what: &'static str,
    ) -> Result<Vec<u8>> {
        let len = handle.len as usize + TRAILER_BYTES;
        let mut stored = self.read(reader, handle.offset, len)?;
        self.environment.counters.add(Counter::TableBytesRead, len as u64);
        let (bytes, packing) = stored::verify(&stored, self.id, handle.offset, &self.path, what)?;
        if packing != Packing::Plain {
            return Err(self.corrupt(handle.offset, what, "it must not be compressed"));
        }
        let len = bytes.len();
        stored.truncate(len);
        Ok(stored)
    }
}
