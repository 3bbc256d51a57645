//! Opens a table: reads and checks everything that stays in memory.
//!
//! The footer, the properties, the range tombstones and the layout of the index stay in memory.
//! Everything else is read in place from a mapping, or through the block cache. Without a mapping the
//! file itself may be closed between two reads ([`open_files`](super::open_files)).

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use terrane_memtable::Fragment;

use super::filter::Filter;
use super::footer::{FOOTER_BYTES, Footer, Handle};
use super::index::IndexLayout;
use super::open_files::TableReader;
use super::properties::Properties;
use super::range_block;
use super::reader::{ReadPath, TableEnvironment, TableFile};
use super::stored::{self, TRAILER_BYTES};
use crate::error::{Error, Result};
use crate::stats::Counter;
use crate::storage::{Access, Mapping};

/// The parts of an open table that stay in memory.
pub(super) struct OpenTable {
    pub(super) contents: Contents,
    pub(super) footer: Footer,
    pub(super) index: IndexLayout,
    pub(super) properties: Properties,
    pub(super) fragments: Arc<[Fragment]>,
}

/// The bytes of an open table.
pub(super) enum Contents {
    /// A mapping, and one bit per block, which is set if the block is verified and not compressed.
    Mapped { map: Mapping, verified: Box<[AtomicU64]> },
    /// The file is read with system calls.
    File(TableReader, Access),
}

impl TableFile {
    #[cold]
    pub(super) fn open(&self) -> Result<OpenTable> {
        let TableEnvironment { storage, read_path, .. } = &*self.environment;
        let io = |error| Error::io("open", &self.path, error);
        let len = storage.len(&self.path).map_err(io)?;
        if len != self.size_bytes {
            let detail = format!("it is {len} bytes long instead of {}", self.size_bytes);
            return Err(Error::corruption(&self.path, None, "table", detail));
        }
        let contents = match read_path {
            ReadPath::Mapped => {
                let map = storage.map(&self.path).map_err(io)?;
                Contents::Mapped { map, verified: Box::default() }
            }
            ReadPath::Cached(access) => {
                let file = TableReader::new(&self.environment.open_files);
                let open = || storage.open(&self.path, *access);
                let is_direct = file.with(open, |file| file.is_direct()).map_err(io)?;
                if *access == Access::Direct && !is_direct {
                    self.environment.counters.add(Counter::DirectRefused, 1);
                }
                Contents::File(file, *access)
            }
        };
        let at = len.checked_sub(FOOTER_BYTES as u64);
        let at = at.ok_or_else(|| self.corrupt(0, "table", "it is shorter than a footer"))?;
        let footer = Footer::decode(&self.read(&contents, at, FOOTER_BYTES)?, &self.path, len)?;
        if (footer.number, footer.writer) != (self.id.number, self.id.writer) {
            return Err(self.corrupt(at, "table footer", "it belongs to another table"));
        }
        self.open_parts(contents, footer)
    }

    fn open_parts(&self, contents: Contents, footer: Footer) -> Result<OpenTable> {
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
        let index = IndexLayout::parse(&index, self.size_bytes)
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
            file @ Contents::File(..) => file,
        };
        Ok(OpenTable { contents, footer, index, properties, fragments: fragments.into() })
    }

    /// Reads from a file that is not mapped. Opens it if it was closed to make room for others.
    fn read_file(
        &self,
        file: &TableReader,
        access: Access,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<()> {
        let open = || self.environment.storage.open(&self.path, access);
        let read = file.with(open, |file| file.read_at(offset, buffer));
        let read = read.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
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

    /// Reads bytes of the file without verification.
    pub(super) fn read<'a>(
        &self,
        contents: &'a Contents,
        offset: u64,
        len: usize,
    ) -> Result<Cow<'a, [u8]>> {
        let past_end = || self.corrupt(offset, "table", "a part is outside of the file");
        match contents {
            Contents::Mapped { map, .. } => {
                let start = usize::try_from(offset).map_err(|_| past_end())?;
                let end = start.checked_add(len).ok_or_else(past_end)?;
                Ok(map.get(start..end).ok_or_else(past_end)?.into())
            }
            Contents::File(file, access) => {
                // The offset may come from a damaged index; this bounds the allocation.
                if offset.checked_add(len as u64).is_none_or(|end| end > self.size_bytes) {
                    return Err(past_end());
                }
                let mut buffer = vec![0; len];
                self.read_file(file, *access, offset, &mut buffer)?;
                Ok(buffer.into())
            }
        }
    }

    /// Reads and verifies a part other than a data block. Such parts are not compressed.
    fn read_part<'a>(
        &self,
        contents: &'a Contents,
        handle: Handle,
        what: &'static str,
    ) -> Result<Cow<'a, [u8]>> {
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
            Cow::Borrowed(stored) => stored.get(..len).unwrap_or_default().into(),
            Cow::Owned(mut stored) => {
                stored.truncate(len);
                stored.into()
            }
        })
    }

    pub(super) fn parse_filter<'a>(&self, bytes: &'a [u8], handle: Handle) -> Result<Filter<'a>> {
        Filter::parse(bytes)
            .map_err(|error| self.corrupt(handle.offset, "filter", &error.to_string()))
    }
}
