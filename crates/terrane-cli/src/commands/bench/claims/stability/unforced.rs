//! Files that are not forced to disk.
//!
//! All databases of a stage share one device. What they write in a second is little, but each of some
//! hundred syncs a second would have all others wait, and it is the budget that they are to wait for.

use std::io;
use std::path::Path;
use std::sync::Arc;

use terrane::storage::{
    Access, Appender, DiskStorage, Lock, Mapping, RandomReader, Segment, Storage, Syncer,
};

/// The files of the machine, where syncs do nothing.
#[derive(Debug)]
pub(super) struct Unforced;

impl Storage for Unforced {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        DiskStorage.create_dir_all(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        DiskStorage.list(dir)
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        DiskStorage.len(path)
    }

    fn create(&self, path: &Path, _access: Access) -> io::Result<Box<dyn Appender>> {
        Ok(Box::new(Appended(DiskStorage.create(path, Access::Buffered)?)))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn RandomReader>> {
        DiskStorage.open(path, access)
    }

    fn map(&self, path: &Path) -> io::Result<Mapping> {
        DiskStorage.map(path)
    }

    fn create_segment(&self, path: &Path, len: u64) -> io::Result<Box<dyn Segment>> {
        Ok(Box::new(Logged(DiskStorage.create_segment(path, len)?)))
    }

    fn open_segment(&self, path: &Path) -> io::Result<Box<dyn Segment>> {
        Ok(Box::new(Logged(DiskStorage.open_segment(path)?)))
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

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        DiskStorage.lock(path)
    }

    fn boot_id(&self) -> Option<u128> {
        DiskStorage.boot_id()
    }

    fn entropy(&self) -> u64 {
        DiskStorage.entropy()
    }
}

struct Appended(Box<dyn Appender>);

impl Appender for Appended {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct Logged(Box<dyn Segment>);

impl Segment for Logged {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write(offset, bytes)
    }

    fn write_through(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write(offset, bytes)
    }

    fn syncer(&self) -> Arc<dyn Syncer> {
        Arc::new(Nothing)
    }
}

#[derive(Debug)]
struct Nothing;

impl Syncer for Nothing {
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
