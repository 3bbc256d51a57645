//! Open files and locks of a [`MemoryStorage`].

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::MemoryStorage;
use super::node::{Node, NodeId, Open};
use crate::files::storage::direct::{ALIGN, DirectFile};
use crate::files::storage::{
    Appender, Lock, LockProbe, RandomReader, RecordWriter, Segment, Syncer,
};

/// A file opened for appending, or for reads and writes of blocks.
#[derive(Debug)]
pub(super) struct MemoryAppender {
    storage: MemoryStorage,
    id: NodeId,
    _open: Open,
    path: PathBuf,
}

impl MemoryAppender {
    pub(super) fn new(storage: MemoryStorage, (id, open): (NodeId, Open), path: &Path) -> Self {
        Self { storage, id, _open: open, path: path.to_owned() }
    }
}

impl Appender for MemoryAppender {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.storage.lock_state();
        state.take_room(bytes.len() as u64)?;
        let node = state.nodes.get_mut(&self.id).ok_or(io::ErrorKind::NotFound)?;
        node.write(node.data().len(), bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.storage.sync_node(self.id, &self.path, Node::sync)
    }
}

/// Refuses unaligned requests, like a device.
fn check_aligned(offset: u64, bytes: &[u8]) -> io::Result<()> {
    let places = [offset, bytes.len() as u64, bytes.as_ptr().addr() as u64];
    if places.iter().all(|place| place.is_multiple_of(ALIGN as u64)) {
        Ok(())
    } else {
        Err(io::ErrorKind::InvalidInput.into())
    }
}

impl DirectFile for MemoryAppender {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        check_aligned(offset, buffer)?;
        let state = self.storage.lock_state();
        let data = state.nodes.get(&self.id).ok_or(io::ErrorKind::NotFound)?.data();
        let rest = usize::try_from(offset).ok().and_then(|start| data.get(start..));
        let rest = rest.unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        check_aligned(offset, bytes)?;
        let mut state = self.storage.lock_state();
        let len = state.nodes.get(&self.id).ok_or(io::ErrorKind::NotFound)?.data().len() as u64;
        state.take_room((offset + bytes.len() as u64).saturating_sub(len))?;
        let node = state.nodes.get_mut(&self.id).ok_or(io::ErrorKind::NotFound)?;
        node.write(offset as usize, bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.storage.lock_state();
        state.nodes.get_mut(&self.id).ok_or(io::ErrorKind::NotFound)?.set_len(len as usize);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.storage.sync_node(self.id, &self.path, Node::sync)
    }

    fn is_direct(&self) -> bool {
        true
    }
}

impl MemoryStorage {
    fn sync_node(&self, id: NodeId, path: &Path, sync: impl FnOnce(&mut Node)) -> io::Result<()> {
        let mut state = self.lock_state();
        state.note_crash_point(&format!("sync {}", path.display()));
        sync(state.nodes.get_mut(&id).ok_or(io::ErrorKind::NotFound)?);
        Ok(())
    }
}

/// A file opened for reading.
#[derive(Debug)]
pub(super) struct MemoryReader {
    storage: MemoryStorage,
    id: NodeId,
    _open: Open,
}

impl MemoryReader {
    pub(super) fn new(storage: MemoryStorage, (id, open): (NodeId, Open)) -> Self {
        Self { storage, id, _open: open }
    }
}

impl RandomReader for MemoryReader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let state = self.storage.lock_state();
        let data = state.nodes.get(&self.id).ok_or(io::ErrorKind::NotFound)?.data();
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let end = start.checked_add(buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(data.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// A file of fixed length.
#[derive(Debug)]
pub(super) struct MemorySegment {
    syncer: Arc<MemorySyncer>,
}

#[derive(Debug)]
struct MemorySyncer {
    storage: MemoryStorage,
    id: NodeId,
    _open: Open,
    path: PathBuf,
    len: u64,
}

impl MemorySyncer {
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let end = offset.checked_add(bytes.len() as u64);
        if end.is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut state = self.storage.lock_state();
        let node = state.nodes.get_mut(&self.id).ok_or(io::ErrorKind::NotFound)?;
        node.write(offset as usize, bytes);
        Ok(())
    }
}

impl RecordWriter for MemorySyncer {
    fn write_record(&self, offset: u64, record: &[&[u8]]) -> io::Result<()> {
        self.write(offset, &record.concat())
    }

    fn write_zeros(&self, offset: u64, len: u64) -> io::Result<()> {
        let zeros = vec![0; len as usize];
        let is_zero = {
            let state = self.storage.lock_state();
            let node = state.nodes.get(&self.id).ok_or(io::ErrorKind::NotFound)?;
            node.data().get(offset as usize..).is_some_and(|data| data.starts_with(&zeros))
        };
        // Writing zeros over zeros would only make a crash image choose between equal bytes.
        if is_zero { Ok(()) } else { self.write(offset, &zeros) }
    }
}

impl MemorySegment {
    pub(super) fn new(
        storage: MemoryStorage,
        (id, open): (NodeId, Open),
        len: u64,
        path: &Path,
    ) -> Self {
        let path = path.to_owned();
        Self { syncer: Arc::new(MemorySyncer { storage, id, _open: open, path, len }) }
    }
}

impl Segment for MemorySegment {
    fn len(&self) -> u64 {
        self.syncer.len
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.syncer.write(offset, bytes)
    }

    fn syncer(&self) -> Arc<dyn Syncer> {
        Arc::clone(&self.syncer) as Arc<dyn Syncer>
    }

    fn record_writer(&self) -> Option<Arc<dyn RecordWriter>> {
        Some(Arc::clone(&self.syncer) as Arc<dyn RecordWriter>)
    }
}

impl Syncer for MemorySyncer {
    fn sync(&self) -> io::Result<()> {
        self.storage.sync_node(self.id, &self.path, Node::sync)
    }

    fn sync_start(&self, len: u64) -> io::Result<()> {
        self.storage.sync_node(self.id, &self.path, |node| node.sync_start(len as usize))
    }
}

/// A lock within the process.
#[derive(Debug)]
pub(super) struct HeldLock {
    storage: MemoryStorage,
    path: PathBuf,
}

impl HeldLock {
    pub(super) fn new(storage: MemoryStorage, path: PathBuf) -> Self {
        Self { storage, path }
    }
}

impl Lock for HeldLock {}

impl Drop for HeldLock {
    fn drop(&mut self) {
        self.storage.lock_state().locks.remove(&self.path);
    }
}

/// A shared lock within the process.
#[derive(Debug)]
pub(super) struct SharedLock {
    storage: MemoryStorage,
    path: PathBuf,
}

impl SharedLock {
    pub(super) fn new(storage: MemoryStorage, path: &Path) -> Self {
        *storage.lock_state().shared_locks.entry(path.to_owned()).or_default() += 1;
        Self { storage, path: path.to_owned() }
    }
}

impl Lock for SharedLock {}

impl Drop for SharedLock {
    fn drop(&mut self) {
        let mut state = self.storage.lock_state();
        if let Some(count) = state.shared_locks.get_mut(&self.path) {
            *count -= 1;
        }
    }
}

/// Finds out whether a path is locked.
#[derive(Debug)]
pub(super) struct MemoryProbe {
    storage: MemoryStorage,
    path: PathBuf,
}

impl MemoryProbe {
    pub(super) fn new(storage: MemoryStorage, path: &Path) -> Self {
        Self { storage, path: path.to_owned() }
    }
}

impl LockProbe for MemoryProbe {
    fn is_locked(&self) -> io::Result<bool> {
        let state = self.storage.lock_state();
        Ok(state.shared_locks.get(&self.path).is_some_and(|count| *count > 0))
    }
}
