//! Files on a disk, through the operating system.
#![allow(clippy::disallowed_methods, reason = "this module makes the file system calls")]

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::disk_lock::{self, DiskProbe};
#[cfg(unix)]
use super::held_dirs::HeldDirs;
use super::place::Place;
use super::{
    Access, Appender, HeldDir, Lock, LockProbe, RandomReader, Segment, Storage, disk_files,
    disk_segment, system,
};

/// The file system of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiskStorage;

impl Storage for DiskStorage {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        system::create_dir_all(Place::by_path(dir))
    }

    #[cfg(unix)]
    fn hold_dir(&self, dir: &Path) -> io::Result<Option<HeldDir>> {
        HeldDirs::default().hold(dir).map(Some)
    }

    /// A directory with open files cannot be renamed, so its absolute path suffices.
    #[cfg(not(unix))]
    fn hold_dir(&self, dir: &Path) -> io::Result<Option<HeldDir>> {
        Ok(Some(HeldDir { path: std::path::absolute(dir)?, storage: Arc::new(*self) }))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        system::list(Place::by_path(dir))
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        system::len(Place::by_path(path))
    }

    fn create(&self, path: &Path, access: Access) -> io::Result<Box<dyn Appender>> {
        disk_files::create(Place::by_path(path), access)
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn RandomReader>> {
        disk_files::open(Place::by_path(path), access)
    }

    fn create_segment(&self, path: &Path, len: u64) -> io::Result<Box<dyn Segment>> {
        disk_segment::create(Place::by_path(path), len)
    }

    fn open_segment(&self, path: &Path) -> io::Result<Box<dyn Segment>> {
        disk_segment::open(Place::by_path(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        system::rename(Place::by_path(from), Place::by_path(to))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        system::hard_link(Place::by_path(from), Place::by_path(to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        system::remove(Place::by_path(path))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        system::sync_dir(Place::by_path(dir)).map(drop)
    }

    fn free_bytes(&self, dir: &Path) -> Option<u64> {
        system::free_bytes(Place::by_path(dir))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        Ok(Box::new(disk_lock::lock(Place::by_path(path))?))
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        Ok(Box::new(disk_lock::lock_shared(Place::by_path(path))?))
    }

    fn probe_lock(&self, path: &Path) -> io::Result<Box<dyn LockProbe>> {
        Ok(Box::new(DiskProbe::open(Place::by_path(path))?))
    }

    fn boot_id(&self) -> Option<u128> {
        // Read once, because it does not change while this process lives. A failure is not stored,
        // because it may be temporary.
        static BOOT_ID: OnceLock<u128> = OnceLock::new();
        if let Some(id) = BOOT_ID.get() {
            return Some(*id);
        }
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let id = u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()?;
        Some(*BOOT_ID.get_or_init(|| id))
    }

    fn entropy(&self) -> u64 {
        // The keys of the standard hash maps come from the operating system's generator.
        RandomState::new().hash_one(std::process::id())
    }
}
