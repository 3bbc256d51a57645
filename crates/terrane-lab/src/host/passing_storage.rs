//! Storage for databases that need not survive a crash.
//!
//! A database in a temporary directory is removed when the process ends, so it need not survive a
//! power failure and syncs are useless. Without this storage, every flush would wait for the disk,
//! thousands of times a second with small buffers, and databases measured in parallel would wait
//! for each other's syncs. Everything else works as on the default storage.

use std::io;
use std::path::Path;
use std::sync::Arc;

use terrane::storage::{
    Access, Appender, DiskStorage, Lock, LockProbe, RandomReader, Segment, Storage, Syncer,
};

/// The default storage without syncs.
#[derive(Debug, Clone, Copy, Default)]
pub struct PassingStorage;

impl Storage for PassingStorage {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        DiskStorage.create_dir_all(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        DiskStorage.list(dir)
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        DiskStorage.len(path)
    }

    fn create(&self, path: &Path, access: Access) -> io::Result<Box<dyn Appender>> {
        Ok(Box::new(PassingFile(DiskStorage.create(path, access)?)))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn RandomReader>> {
        DiskStorage.open(path, access)
    }

    fn create_segment(&self, path: &Path, len: u64) -> io::Result<Box<dyn Segment>> {
        Ok(Box::new(PassingSegment(DiskStorage.create_segment(path, len)?)))
    }

    fn open_segment(&self, path: &Path) -> io::Result<Box<dyn Segment>> {
        Ok(Box::new(PassingSegment(DiskStorage.open_segment(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        DiskStorage.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        DiskStorage.hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        DiskStorage.remove(path)
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn free_bytes(&self, dir: &Path) -> Option<u64> {
        DiskStorage.free_bytes(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        DiskStorage.lock(path)
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        DiskStorage.lock_shared(path)
    }

    fn probe_lock(&self, path: &Path) -> io::Result<Box<dyn LockProbe>> {
        DiskStorage.probe_lock(path)
    }

    fn boot_id(&self) -> Option<u128> {
        DiskStorage.boot_id()
    }

    fn entropy(&self) -> u64 {
        DiskStorage.entropy()
    }
}

/// A table file that is never synced.
struct PassingFile(Box<dyn Appender>);

impl Appender for PassingFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.append(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    fn is_direct(&self) -> bool {
        self.0.is_direct()
    }
}

/// A log segment that is never synced.
#[derive(Debug)]
struct PassingSegment(Box<dyn Segment>);

impl Segment for PassingSegment {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write(offset, bytes)
    }

    fn syncer(&self) -> Arc<dyn Syncer> {
        Arc::new(NoSync)
    }
}

#[derive(Debug)]
struct NoSync;

impl Syncer for NoSync {
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
