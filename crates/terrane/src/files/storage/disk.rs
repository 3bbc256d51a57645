//! Files on a disk, through the operating system.
#![allow(clippy::disallowed_methods, reason = "this module makes the file system calls")]
#![allow(clippy::disallowed_types, reason = "this module makes the file system calls")]

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::Path;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

#[cfg(target_os = "linux")]
use super::direct::{DirectAppender, DirectFile, DirectReader};
use super::disk_lock::{self, DiskProbe};
use super::{Access, Appender, Lock, LockProbe, RandomReader, Segment, Storage, disk_segment};

/// The file system of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiskStorage;

impl Storage for DiskStorage {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            // The engine's own file names are UTF-8; other files are ignored.
            if let (true, Ok(name)) =
                (entry.file_type()?.is_file(), entry.file_name().into_string())
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::metadata(path)?.len())
    }

    fn create(&self, path: &Path, access: Access) -> io::Result<Box<dyn Appender>> {
        match access {
            Access::Buffered => {
                let file = OpenOptions::new().append(true).create_new(true).open(path)?;
                Ok(Box::new(DiskAppender(file)))
            }
            Access::Direct => create_direct(path),
        }
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn RandomReader>> {
        match access {
            Access::Buffered => Ok(Arc::new(DiskReader(File::open(path)?))),
            Access::Direct => open_direct(path),
        }
    }

    fn create_segment(&self, path: &Path, len: u64) -> io::Result<Box<dyn Segment>> {
        disk_segment::create(path, len)
    }

    fn open_segment(&self, path: &Path) -> io::Result<Box<dyn Segment>> {
        disk_segment::open(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    #[cfg(unix)]
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    /// Other systems make a name durable together with its file.
    #[cfg(not(unix))]
    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        Ok(Box::new(disk_lock::lock(path)?))
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        Ok(Box::new(disk_lock::lock_shared(path)?))
    }

    fn probe_lock(&self, path: &Path) -> io::Result<Box<dyn LockProbe>> {
        Ok(Box::new(DiskProbe::open(path)?))
    }

    fn boot_id(&self) -> Option<u128> {
        // Read once, because it does not change while this process lives. A failure is not stored,
        // because it may be temporary.
        static BOOT_ID: OnceLock<u128> = OnceLock::new();
        if let Some(id) = BOOT_ID.get() {
            return Some(*id);
        }
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let id = u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()?;
        Some(*BOOT_ID.get_or_init(|| id))
    }

    fn entropy(&self) -> u64 {
        // The keys of the standard hash maps come from the operating system's generator.
        RandomState::new().hash_one(std::process::id())
    }
}

struct DiskAppender(File);

impl Appender for DiskAppender {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    #[cfg(unix)]
    fn has_name(&self) -> io::Result<bool> {
        Ok(std::os::unix::fs::MetadataExt::nlink(&self.0.metadata()?) > 0)
    }
}

#[derive(Debug)]
struct DiskReader(File);

#[cfg(unix)]
impl RandomReader for DiskReader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.0, buffer, offset)
    }
}

#[cfg(windows)]
impl RandomReader for DiskReader {
    fn read_at(&self, mut offset: u64, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            match std::os::windows::fs::FileExt::seek_read(&self.0, buffer, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    offset += count as u64;
                    buffer = &mut buffer[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Opens a file for reads that bypass the page cache, or for buffered reads if the file system does
/// not support direct I/O.
#[cfg(target_os = "linux")]
fn open_direct(path: &Path) -> io::Result<Arc<dyn RandomReader>> {
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    Ok(match DiskDirect::of(file) {
        Ok(direct) => Arc::new(DirectReader::new(direct, len)),
        Err(file) => Arc::new(DiskReader(file)),
    })
}

#[cfg(not(target_os = "linux"))]
fn open_direct(path: &Path) -> io::Result<Arc<dyn RandomReader>> {
    Ok(Arc::new(DiskReader(File::open(path)?)))
}

/// Creates a file for writes that bypass the page cache, or for buffered writes if the file system
/// does not support direct I/O.
#[cfg(target_os = "linux")]
fn create_direct(path: &Path) -> io::Result<Box<dyn Appender>> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    Ok(match DiskDirect::of(file) {
        Ok(direct) => Box::new(DirectAppender::new(direct)),
        Err(file) => Box::new(DiskAppender(file)),
    })
}

#[cfg(not(target_os = "linux"))]
fn create_direct(path: &Path) -> io::Result<Box<dyn Appender>> {
    DiskStorage.create(path, Access::Buffered)
}

/// A file opened with `O_DIRECT`.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct DiskDirect {
    file: File,
    /// False once the device has refused a block of [`ALIGN`](super::direct::ALIGN) bytes.
    is_direct: AtomicBool,
}

#[cfg(target_os = "linux")]
impl DiskDirect {
    /// Switches an open file to direct I/O; returns the file if its file system refuses. The flag is
    /// set after the file is created, because a refused creation may leave the file behind.
    fn of(file: File) -> Result<Self, File> {
        let switched = rustix::fs::fcntl_getfl(&file)
            .and_then(|flags| rustix::fs::fcntl_setfl(&file, flags | rustix::fs::OFlags::DIRECT));
        match switched {
            Ok(()) => Ok(Self { file, is_direct: AtomicBool::new(true) }),
            Err(_) => Err(file),
        }
    }

    /// Runs an operation, and repeats it as buffered I/O if the device refuses the alignment. All
    /// later operations on the file are then buffered.
    fn attempt<T>(&self, mut go: impl FnMut(&File) -> io::Result<T>) -> io::Result<T> {
        // Read before the attempt, because another thread may clear the flag during it.
        let was_direct = self.is_direct();
        match go(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput && was_direct => {
                let flags = rustix::fs::fcntl_getfl(&self.file)?;
                rustix::fs::fcntl_setfl(&self.file, flags - rustix::fs::OFlags::DIRECT)?;
                // Relaxed: no other memory access depends on the flag. A thread that misses this store
                // at most repeats a failed operation once.
                self.is_direct.store(false, Ordering::Relaxed);
                go(&self.file)
            }
            other => other,
        }
    }
}

#[cfg(target_os = "linux")]
impl DirectFile for DiskDirect {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.attempt(|file| std::os::unix::fs::FileExt::read_at(file, buffer, offset))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.attempt(|file| std::os::unix::fs::FileExt::write_all_at(file, bytes, offset))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn is_direct(&self) -> bool {
        // Relaxed: see the store in `attempt`.
        self.is_direct.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direct_reads_see_what_buffered_reads_see() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let bytes: Vec<u8> = (0..20_001u32).map(|i| (i % 251) as u8).collect();
        let mut file = DiskStorage.create(&path, Access::Buffered).unwrap();
        file.append(&bytes).unwrap();
        file.sync().unwrap();
        for access in [Access::Buffered, Access::Direct] {
            let reader = DiskStorage.open(&path, access).unwrap();
            for (offset, len) in [(0, 1), (0, 20_001), (4095, 2), (4096, 4096), (19_999, 2), (7, 0)]
            {
                let mut buffer = vec![0; len];
                reader.read_at(offset as u64, &mut buffer).unwrap();
                assert_eq!(buffer, bytes[offset..offset + len], "{access:?} {offset} {len}");
            }
            let past_end = reader.read_at(20_000, &mut [0; 2]).unwrap_err();
            assert_eq!(past_end.kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    #[test]
    fn existing_files_are_never_overwritten_by_create() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        DiskStorage.create(&path, Access::Buffered).unwrap().append(b"x").unwrap();
        assert!(DiskStorage.create(&path, Access::Buffered).is_err());
        assert!(DiskStorage.create_segment(&path, 4096).is_err());
        assert_eq!(DiskStorage.len(&path).unwrap(), 1);
    }
}
