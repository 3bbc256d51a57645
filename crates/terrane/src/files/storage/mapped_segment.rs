//! A segment that is written through a memory map.
//!
//! A write to the map is a copy without a system call. The copied bytes are in the kernel's page
//! cache at once, so they survive the death of the process. A store to a page for which there is no
//! disk space raises SIGBUS, so the whole file must be allocated before it is mapped, and its file
//! system must overwrite allocated blocks in place ([`disk_segment`](super::disk_segment)).
//!
//! Bytes that are synced right after are written with a system call instead; the map shows them
//! because both use the page cache. The first store to a page after a sync faults, and on ext4 that
//! fault makes the next sync commit the journal: syncs of an overwritten file took three times as
//! long (310 µs instead of 110 µs).
#![allow(clippy::disallowed_types, reason = "a mapping needs a file")]

use std::fs::File;
use std::io;
use std::sync::Arc;

use super::mapping::WritableMapping;
use super::written_segment::{SegmentFile, WrittenSegment};
use super::{RecordWriter, Segment, Syncer};

/// A file of fixed length, mapped for writing.
#[derive(Debug)]
pub(super) struct MappedSegment {
    map: WritableMapping,
    /// The same file, for writes with system calls.
    file: WrittenSegment,
}

impl MappedSegment {
    /// A segment of the first `len` bytes of a file, which are mapped and allocated.
    pub(super) fn new(map: WritableMapping, file: File, len: u64) -> Self {
        Self { map, file: WrittenSegment::new(file, len) }
    }
}

impl Segment for MappedSegment {
    fn len(&self) -> u64 {
        self.map.len() as u64
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.map.write(offset, bytes)
    }

    fn write_through(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write(offset, bytes)
    }

    fn syncer(&self) -> Arc<dyn Syncer> {
        Arc::new(MappedSyncer(Arc::clone(self.file.file())))
    }

    fn record_writer(&self) -> Option<Arc<dyn RecordWriter>> {
        let (map, file) = (self.map.clone(), Arc::clone(self.file.file()));
        Some(Arc::new(MappedWriter { map, file }))
    }
}

/// Syncs a mapped file.
#[derive(Debug)]
struct MappedSyncer(Arc<SegmentFile>);

impl Syncer for MappedSyncer {
    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    /// A sync of the whole file would also write back the pages that writers are about to fill. That
    /// would write-protect each of these pages, which interrupts all other processors, and the pages
    /// would fault again.
    fn sync_start(&self, len: u64) -> io::Result<()> {
        /// The smallest page.
        const PAGE_BYTES: u64 = 4 << 10;
        if len <= PAGE_BYTES && self.0.sync_first_page()? { Ok(()) } else { self.sync() }
    }
}

/// Writes records through the map.
#[derive(Debug)]
struct MappedWriter {
    map: WritableMapping,
    file: Arc<SegmentFile>,
}

impl RecordWriter for MappedWriter {
    fn write_record(&self, offset: u64, record: &[&[u8]]) -> io::Result<()> {
        self.map.write_record(offset, record)
    }

    /// Zeros are written with system calls, because a fault in the map would read missing pages from
    /// the disk, and would take a journal transaction for each page that was never written.
    fn write_zeros(&self, offset: u64, len: u64) -> io::Result<()> {
        if offset.checked_add(len).is_none_or(|end| end > self.map.len() as u64) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.file.write_zeros(offset, len)?;
        self.map.populate(offset, len);
        Ok(())
    }
}
