//! A segment that is written through a memory map.
//!
//! A write to the map is a copy without a system call. The copied bytes are in the kernel's page
//! cache at once, so they survive the death of the process. A store to a page for which there is no
//! disk space raises SIGBUS, so the whole file must be allocated before it is mapped, and its file
//! system must overwrite allocated blocks in place ([`disk_segment`](super::disk_segment)). If a page is
//! lost later, [`map_guard`](super::map_guard) replaces it, and the write fails.
//!
//! The file is mapped before the first write through the map. Some file systems and sandboxes refuse
//! maps, and a limited address space (`ulimit -v`) may have no room for one; all writes are then made
//! with system calls.
//!
//! Large pieces are written with a system call, which costs less than the faults of their pages, and
//! leaves the pages unmapped: a sync write-protects mapped pages one by one, each of which interrupts
//! all other processors.
//!
//! Bytes that are synced right after are written with a system call instead; the map shows them
//! because both use the page cache. The first store to a page after a sync faults, and on ext4 that
//! fault makes the next sync commit the journal: syncs of an overwritten file took three times as
//! long (310 µs instead of 110 µs).
#![allow(clippy::disallowed_types, reason = "a mapping needs a file")]

use std::fs::File;
use std::io;
use std::sync::{Arc, OnceLock};

use super::mapping::{WeakMapping, WritableMapping};
use super::written_segment::{SegmentFile, WrittenSegment};
use super::{LARGE_PIECE_BYTES, RecordWriter, Segment, Syncer};

/// A file of fixed length that is mapped for writing, if possible.
#[derive(Debug)]
pub(super) struct MappedSegment {
    /// The map once it is needed, or the answer of the operating system if the file cannot be mapped.
    map: OnceLock<io::Result<WritableMapping>>,
    /// The same file, for writes with system calls.
    file: WrittenSegment,
}

impl MappedSegment {
    /// A segment of the first `len` bytes of a file, all of which must be allocated.
    pub(super) fn new(file: File, len: u64) -> Self {
        Self { map: OnceLock::new(), file: WrittenSegment::new(file, len) }
    }

    fn map(&self) -> Option<&WritableMapping> {
        let map = self.map.get_or_init(|| self.file.file().map(self.file.len()));
        map.as_ref().ok()
    }
}

impl Segment for MappedSegment {
    fn len(&self) -> u64 {
        self.file.len()
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let Some(map) = self.map() else { return self.file.write(offset, bytes) };
        if bytes.len() >= LARGE_PIECE_BYTES {
            // Checked first, as in `write_zeros`.
            let file = self.file.file();
            file.check_len().inspect_err(|_| map.note_shortened(offset))?;
            file.write_within(offset, bytes)?;
        } else {
            map.write(offset, bytes)?;
        }
        map.check()
    }

    fn write_through(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_through(offset, bytes)
    }

    fn syncer(&self) -> Arc<dyn Syncer> {
        let map = self.map.get().and_then(|map| map.as_ref().ok()).map(WritableMapping::downgrade);
        Arc::new(MappedSyncer { map: map.unwrap_or_default(), file: Arc::clone(self.file.file()) })
    }

    fn map_refusal(&self) -> Option<String> {
        self.map.get()?.as_ref().err().map(ToString::to_string)
    }

    fn record_writer(&self) -> Option<Arc<dyn RecordWriter>> {
        let map = self.map()?.clone();
        Some(Arc::new(MappedWriter { map, file: Arc::clone(self.file.file()) }))
    }

    fn unmap_pages(&self, between: &dyn Fn()) {
        if let Some(Ok(map)) = self.map.get() {
            map.discard_pages(between);
        }
    }
}

/// Syncs a mapped file.
#[derive(Debug)]
struct MappedSyncer {
    /// The map, unless it is gone: unmapping takes long, and no thread that syncs should do it.
    map: WeakMapping,
    file: Arc<SegmentFile>,
}

impl Syncer for MappedSyncer {
    fn sync(&self) -> io::Result<()> {
        self.file.sync()?;
        // The file has none of the bytes that were stored to the page in place of a lost one.
        self.map.upgrade().map_or(Ok(()), |map| map.check())
    }

    /// A sync of the whole file would also write back the pages that writers are about to fill. That
    /// would write-protect each of these pages, which interrupts all other processors, and the pages
    /// would fault again.
    fn sync_start(&self, len: u64) -> io::Result<()> {
        /// The smallest page.
        const PAGE_BYTES: u64 = 4 << 10;
        self.file.check_len()?;
        if len <= PAGE_BYTES && self.file.sync_first_page()? { Ok(()) } else { self.sync() }
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
        self.map.write_record(offset, record)?;
        self.map.check()
    }

    /// Zeros are written with system calls, because a fault in the map would read missing pages from
    /// the disk, and would take a journal transaction for each page that was never written.
    fn write_zeros(&self, offset: u64, len: u64) -> io::Result<()> {
        if offset.checked_add(len).is_none_or(|end| end > self.map.len() as u64) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // Checked first, because zeros would make a shortened file longer again, with a hole that reads
        // as the end of the log.
        self.file.check_len().inspect_err(|_| self.map.note_shortened(offset))?;
        self.file.write_zeros(offset, len)?;
        self.map.populate(offset, len);
        Ok(())
    }
}
