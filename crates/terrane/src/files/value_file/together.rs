//! Reads of several values that begin together, for the keys of a batch or the next entries of a scan.
//!
//! Values that cannot be read together, or are damaged, are left out. Whoever needs them reads them individually, so that
//! an error surfaces only then.

use std::sync::Arc;

use super::ValueFiles;
use super::file::{CACHED_BYTES, ValueFile};
use super::files::FoundFile;
use crate::base::types::SeqNo;
use crate::files::buffer::BlockMut;
use crate::files::io_rings::{FileRead, RingLease};
use crate::files::io_threads::IoThreads;
use crate::files::storage::RandomReader;
use crate::files::table::TableEnvironment;
use crate::files::value::Value;
use crate::files::value_pointer::ValuePointer;

/// An entry whose value is separated, and its encoded pointer.
pub(crate) struct SeparatedEntry<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) seq: SeqNo,
    pub(crate) pointer: Value,
}

/// A value that is not in memory.
struct Missing<'a> {
    /// The index of its entry.
    at: usize,
    file: FoundFile<'a>,
    pointer: ValuePointer,
}

/// The memory for a value, and where to read it.
struct Part<'a> {
    of: &'a Missing<'a>,
    reader: Arc<dyn RandomReader>,
    memory: BlockMut,
}

impl ValueFiles {
    /// Returns true if reads of values wait for a device.
    pub(crate) fn reads_wait(&self) -> bool {
        self.files().values().next().is_some_and(|file| file.environment().io_threads.helps())
    }

    /// Returns a value that is in memory.
    pub(crate) fn cached(&self, entry: &SeparatedEntry<'_>) -> Option<Value> {
        let (file, pointer) = self.find(entry.key, entry.seq, &entry.pointer).ok()?;
        file.cached(&pointer)
    }

    /// Reads the values of entries, all those that are not in memory together. Returns `None` for a value that must be
    /// read individually.
    pub(crate) fn read_together(&self, entries: &[SeparatedEntry<'_>]) -> Vec<Option<Value>> {
        let mut values = vec![None; entries.len()];
        let mut missing = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            let Ok((file, pointer)) = self.find(entry.key, entry.seq, &entry.pointer) else {
                continue;
            };
            values[at] = file.cached(&pointer);
            if values[at].is_none() && pointer.len <= CACHED_BYTES {
                missing.push(Missing { at, file, pointer });
            }
        }
        if missing.len() < 2 {
            return values;
        }
        let TableEnvironment { io_threads: threads, io_rings, .. } = missing[0].file.environment();
        if !threads.helps() {
            return values;
        }
        let mut lease = io_rings.lease();
        match lease.as_mut().and_then(|lease| read_with(lease, threads, &missing)) {
            Some(read) => read.into_iter().for_each(|(at, value)| values[at] = Some(value)),
            None => {
                drop(lease);
                read_on_threads(threads, &missing, &mut values);
            }
        }
        values
    }
}

/// Reads values with a ring. Returns none if their files cannot be read so.
fn read_with(
    lease: &mut RingLease<'_>,
    threads: &IoThreads,
    missing: &[Missing<'_>],
) -> Option<Vec<(usize, Value)>> {
    if !lease.can_read(&*missing.first()?.file.shared_reader().ok()?) {
        return None;
    }
    let mut parts: Vec<Part<'_>> = missing.iter().filter_map(Part::of).collect();
    let sizes = (parts.len(), parts.iter().map(|part| part.memory.len() as u64).sum());
    let mut reads: Vec<FileRead<'_>> = parts.iter_mut().map(Part::as_read).collect();
    threads.read_together(sizes, || lease.read(&mut reads));
    let done: Vec<bool> = reads.into_iter().map(|read| read.is_done).collect();
    if !done.contains(&true) {
        return None;
    }
    let read = parts.into_iter().zip(done).filter(|(_, is_done)| *is_done);
    let value = |(Part { of, memory, .. }, _): (Part<'_>, bool)| {
        Some((of.at, of.file.keep(&of.pointer, memory).ok()?))
    };
    Some(read.filter_map(value).collect())
}

fn read_on_threads(threads: &IoThreads, missing: &[Missing<'_>], values: &mut [Option<Value>]) {
    let Some((first, rest)) = missing.split_first() else { return };
    let start = |missing: &Missing<'_>| {
        let (file, pointer) = (missing.file.share(), missing.pointer);
        (missing.at, threads.start_much(pointer.len.into(), move || file.read(&pointer)))
    };
    let pending: Vec<_> = rest.iter().map(start).collect();
    let read = || first.file.read(&first.pointer);
    values[first.at] = threads.read_much_alone(first.pointer.len.into(), read).ok();
    for (at, read) in pending {
        values[at] = read.wait().and_then(Result::ok);
    }
}

impl<'a> Part<'a> {
    fn of(of: &'a Missing<'a>) -> Option<Self> {
        let reader = of.file.shared_reader().ok()?;
        Some(Self { of, reader, memory: of.file.memory_for(&of.pointer).ok()? })
    }

    fn as_read(&mut self) -> FileRead<'_> {
        let Self { of, reader, memory } = self;
        let buffer = ValueFile::value_in(&of.pointer, memory);
        FileRead { reader: &**reader, offset: of.pointer.offset, buffer, is_done: false }
    }
}
