//! A value file in use.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::base::error::{Error, Result};
use crate::base::stats::Counter;
use crate::files::buffer::{BlockMut, Priority, Slots, pin};
use crate::files::storage::RandomReader;
use crate::files::table::{TableEnvironment, TableReader};
use crate::files::value::Value;
use crate::files::value_pointer::{ValueFileName, ValuePointer};

/// Values of up to this length may be cached whatever the capacity.
pub(super) const CACHED_BYTES: u32 = 128 << 10;

/// A longer value displaces as many blocks as it is long. It may be cached by a lookup if it takes at most one part in
/// so many of the capacity, and not more than the pool can make room for in a few steps.
const CACHED_SHARE: usize = 64;
const CACHED_BYTES_MAX: u32 = 4 << 20;

/// The length of the parts of a file that have one slot each: at most one value of a part is in
/// memory. The slots thus take no more memory than those of a table with blocks of this length.
const SLOT_BYTES: u64 = 4 << 10;

/// The length of the tag before a value in memory.
const TAG_BYTES: usize = 16;

/// The same for a log segment, which has only large values, and of which each tree has its own slots.
const SEGMENT_SLOT_BYTES: u64 = 64 << 10;

/// How a file is read.
enum FileReader {
    /// It is opened when it is read, and may be closed again.
    Closable(TableReader),
    /// It stays open, because its name may be gone.
    Open(Arc<dyn RandomReader>),
}

/// A value file of a version. The file is opened on first use, and removed when the last user drops
/// an obsolete one.
pub(crate) struct ValueFile {
    name: ValueFileName,
    path: PathBuf,
    size_bytes: u64,
    reader: FileReader,
    /// The values in memory, created when the first one is read.
    slots: OnceLock<Slots>,
    /// The length of the parts that have one slot each.
    slot_bytes: u64,
    environment: Arc<TableEnvironment>,
    is_obsolete: AtomicBool,
}

impl ValueFile {
    /// Creates a value file in the directory `dir`, with the length that the manifest states.
    pub(crate) fn new(
        name: ValueFileName,
        size_bytes: u64,
        dir: &Path,
        environment: &Arc<TableEnvironment>,
    ) -> Arc<Self> {
        let reader = FileReader::Closable(TableReader::new(&environment.open_files));
        let path = dir.join(name.file_name());
        Self::with_reader((name, path, size_bytes), reader, environment)
    }

    /// Creates a value file of a log segment, which is open already.
    pub(crate) fn of_segment(
        name: ValueFileName,
        size_bytes: u64,
        path: &Path,
        reader: Arc<dyn RandomReader>,
        environment: &Arc<TableEnvironment>,
    ) -> Arc<Self> {
        let path = path.to_owned();
        Self::with_reader((name, path, size_bytes), FileReader::Open(reader), environment)
    }

    fn with_reader(
        (name, path, size_bytes): (ValueFileName, PathBuf, u64),
        reader: FileReader,
        environment: &Arc<TableEnvironment>,
    ) -> Arc<Self> {
        let slot_bytes = match reader {
            FileReader::Closable(_) => SLOT_BYTES,
            FileReader::Open(_) => SEGMENT_SLOT_BYTES,
        };
        Arc::new(Self {
            name,
            path,
            size_bytes,
            reader,
            slots: OnceLock::new(),
            slot_bytes,
            environment: Arc::clone(environment),
            is_obsolete: AtomicBool::new(false),
        })
    }

    /// Marks the file for removal when the last user drops it.
    pub(crate) fn make_obsolete(&self) {
        // The reference count of the `Arc` orders this store before the read in `drop`, because the
        // caller holds a reference.
        self.is_obsolete.store(true, Ordering::Release);
    }

    /// Opens the file, so that it can be read even if another process removes its name.
    pub(crate) fn open(&self) -> Result<()> {
        self.read_at(0, &mut [])
    }

    /// Returns a value, from the buffer manager or with one read of the file.
    ///
    /// # Errors
    /// The value cannot be read, or is not the one to which the pointer refers.
    pub(crate) fn read(&self, pointer: &ValuePointer) -> Result<Value> {
        if let Some(value) = self.cached(pointer) {
            return Ok(value);
        }
        // A slot has one value, and keeps the one that it has.
        let has_other = || self.slots().is_resident(self.slot_of(pointer));
        if pointer.len > CACHED_BYTES && (!self.may_cache(pointer.len) || has_other()) {
            return self.read_once(pointer);
        }
        let mut memory = self.memory_for(pointer)?;
        let read = self.read_at(pointer.offset, Self::value_in(pointer, &mut memory));
        self.environment.noting_damage(read)?;
        self.keep(pointer, memory)
    }

    /// Returns memory for a value and its tag.
    ///
    /// # Errors
    /// The value is not within the file.
    pub(super) fn memory_for(&self, pointer: &ValuePointer) -> Result<BlockMut> {
        self.check_bounds(pointer)?;
        Ok(self.environment.allocate_at_once(part_of(pointer).end))
    }

    /// Returns the part of the memory for a value that the value takes.
    pub(super) fn value_in<'a>(pointer: &ValuePointer, memory: &'a mut BlockMut) -> &'a mut [u8] {
        memory.get_mut(part_of(pointer)).unwrap_or_default()
    }

    /// Verifies a value that was read, and puts it into its slot.
    ///
    /// # Errors
    /// It is not the value to which the pointer refers.
    pub(super) fn keep(&self, pointer: &ValuePointer, mut memory: BlockMut) -> Result<Value> {
        self.verify(pointer, Self::value_in(pointer, &mut memory))?;
        if let Some(tag) = memory.get_mut(..TAG_BYTES) {
            tag.copy_from_slice(&tag_of(pointer));
        }
        let block = memory.freeze();
        let value = Value::of_block(block.view(), part_of(pointer));
        self.slots().fill(self.slot_of(pointer), block, Priority::Data);
        Ok(value)
    }

    fn slots(&self) -> &Slots {
        let count = self.size_bytes.div_ceil(self.slot_bytes) as usize;
        self.slots.get_or_init(|| Slots::new(&self.environment.buffer, count))
    }

    fn slot_of(&self, pointer: &ValuePointer) -> usize {
        (pointer.offset / self.slot_bytes) as usize
    }

    /// Returns a value that is in memory.
    pub(super) fn cached(&self, pointer: &ValuePointer) -> Option<Value> {
        let (slots, part, guard) = (self.slots.get()?, part_of(pointer), pin());
        let block = slots.get(self.slot_of(pointer), &guard)?;
        // A damaged pointer may have the right tag with another length.
        let is_it = block.len() == part.end && block.get(..TAG_BYTES) == Some(&tag_of(pointer)[..]);
        is_it.then(|| Value::of_block(block, part))
    }

    /// Returns true if a large value may displace other blocks.
    fn may_cache(&self, len: u32) -> bool {
        let capacity = self.environment.buffer.bytes().capacity;
        len <= CACHED_BYTES_MAX && len as usize <= capacity / CACHED_SHARE
    }

    /// Reads a value as [`Self::read`] does, for a scan, which would fill the cache with large values.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub(crate) fn read_scanned(&self, pointer: &ValuePointer) -> Result<Value> {
        match pointer.len > CACHED_BYTES {
            true => self.cached(pointer).map_or_else(|| self.read_once(pointer), Ok),
            false => self.read(pointer),
        }
    }

    /// Reads a value as [`Self::read`] does, for a job that reads each value once.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub(crate) fn read_once(&self, pointer: &ValuePointer) -> Result<Value> {
        self.check_bounds(pointer)?;
        let len = pointer.len as usize;
        let mut block = self.environment.buffer.standalone(len);
        self.environment.noting_damage(self.read_at(pointer.offset, &mut block))?;
        self.verify(pointer, &block)?;
        Ok(Value::of_block(block.freeze().view(), 0..len))
    }

    /// Checks that a value is within the file. This bounds the memory for it, because the length may
    /// come from a damaged table.
    fn check_bounds(&self, pointer: &ValuePointer) -> Result<()> {
        let ValuePointer { offset, len, .. } = *pointer;
        if offset.checked_add(len.into()).is_none_or(|end| end > self.size_bytes) {
            return Err(self.corrupt(offset, "a table refers to a value beyond its end"));
        }
        Ok(())
    }

    /// Verifies the bytes of a value that was read against its pointer.
    fn verify(&self, pointer: &ValuePointer, value: &[u8]) -> Result<()> {
        let ValuePointer { offset, len, checksum, .. } = *pointer;
        self.environment.counters.add(Counter::ValueBytesRead, len.into());
        if self.name.checksum(offset, value) != checksum {
            let damage = self.corrupt(offset, "the checksum of a value does not match");
            return self.environment.noting_damage(Err(damage));
        }
        Ok(())
    }

    pub(super) fn environment(&self) -> &TableEnvironment {
        &self.environment
    }

    fn open_shared(&self) -> io::Result<Arc<dyn RandomReader>> {
        self.environment.storage.open(&self.path, self.environment.access)
    }

    /// Returns the file, which stays open as long as the value exists.
    pub(super) fn shared_reader(&self) -> io::Result<Arc<dyn RandomReader>> {
        match &self.reader {
            FileReader::Closable(reader) => reader.with(|| self.open_shared(), Arc::clone),
            FileReader::Open(reader) => Ok(Arc::clone(reader)),
        }
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let open = || self.open_shared();
        let read = match &self.reader {
            FileReader::Closable(reader) => reader.with(open, |file| file.read_at(offset, buffer)),
            FileReader::Open(reader) => Ok(reader.read_at(offset, buffer)),
        };
        let read = read.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                Error::corruption(&self.path, None, "value file", "the file is missing")
            }
            _ => Error::io("open", &self.path, error),
        })?;
        read.map_err(|error| Error::io("read", &self.path, error))
    }

    fn corrupt(&self, offset: u64, detail: &str) -> Error {
        Error::corruption(&self.path, Some(offset), "value", detail)
    }
}

/// Returns which part of a block in memory is the value.
fn part_of(pointer: &ValuePointer) -> Range<usize> {
    TAG_BYTES..TAG_BYTES + pointer.len as usize
}

/// Returns the tag before a value in memory, which identifies the value.
fn tag_of(pointer: &ValuePointer) -> [u8; TAG_BYTES] {
    let mut tag = [0; TAG_BYTES];
    tag[..8].copy_from_slice(&pointer.offset.to_le_bytes());
    tag[8..].copy_from_slice(&pointer.checksum.to_le_bytes());
    tag
}

impl Drop for ValueFile {
    fn drop(&mut self) {
        if *self.is_obsolete.get_mut() {
            (self.environment.discard)(&self.environment, &self.path);
        }
    }
}

impl fmt::Debug for ValueFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValueFile({}, {} bytes)", self.name.file_name(), self.size_bytes)
    }
}
