//! Files on a disk, through the operating system.
#![allow(clippy::disallowed_methods, reason = "the one home of file system calls")]
#![allow(clippy::disallowed_types, reason = "as above")]

use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::sync::Arc;

use super::disk_segment::DiskSegment;
use super::{Access, Appender, Lock, Mapping, RandomReader, Segment, Storage};

/// Files below any directory of the operating system.
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
            // The engine's own names are all text; others are none of its business.
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

    fn create(&self, path: &Path) -> io::Result<Box<dyn Appender>> {
        let file = OpenOptions::new().append(true).create_new(true).open(path)?;
        Ok(Box::new(DiskAppender(file)))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn RandomReader>> {
        match access {
            Access::Buffered => Ok(Arc::new(DiskReader(File::open(path)?))),
            Access::Direct => open_direct(path),
        }
    }

    fn map(&self, path: &Path) -> io::Result<Mapping> {
        Mapping::of_file(&File::open(path)?)
    }

    fn create_segment(&self, path: &Path, len: u64) -> io::Result<Box<dyn Segment>> {
        Ok(Box::new(DiskSegment::create(path, len)?))
    }

    fn open_segment(&self, path: &Path) -> io::Result<Box<dyn Segment>> {
        Ok(Box::new(DiskSegment::open(path)?))
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

    /// Elsewhere names are durable with the files that they name.
    #[cfg(not(unix))]
    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let options = &mut OpenOptions::new();
        let mut file = options.read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let known = file.take(4096).read_to_string(&mut holder).is_ok();
                let holder = holder.trim();
                let holder =
                    if known && !holder.is_empty() { holder } else { "an unknown process" };
                return Err(io::Error::new(io::ErrorKind::WouldBlock, holder.to_owned()));
            }
        }
        file.set_len(0)?;
        file.rewind()?;
        let command: Vec<String> = std::env::args().take(8).collect();
        write!(file, "process {} ({})", std::process::id(), command.join(" "))?;
        Ok(Box::new(DiskLock(file)))
    }

    fn boot_id(&self) -> Option<u128> {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()
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

/// Opens a file for reads around the page cache; through it where the file system has no such
/// reads.
#[cfg(target_os = "linux")]
fn open_direct(path: &Path) -> io::Result<Arc<dyn RandomReader>> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::DIRECT.bits().cast_signed();
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => Ok(Arc::new(DirectReader { len: file.metadata()?.len(), file })),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            Ok(Arc::new(DiskReader(File::open(path)?)))
        }
        Err(error) => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_direct(path: &Path) -> io::Result<Arc<dyn RandomReader>> {
    Ok(Arc::new(DiskReader(File::open(path)?)))
}

/// Direct reads are aligned in memory, offset and length to this.
#[cfg(target_os = "linux")]
const DIRECT_ALIGN: usize = 4096;

#[cfg(target_os = "linux")]
#[derive(Debug)]
struct DirectReader {
    file: File,
    len: u64,
}

#[cfg(target_os = "linux")]
impl RandomReader for DirectReader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        use std::os::unix::fs::FileExt;
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let skipped = (offset % DIRECT_ALIGN as u64) as usize;
        let wanted = skipped + buffer.len();
        let aligned = wanted.next_multiple_of(DIRECT_ALIGN);
        let mut memory = vec![0; aligned + DIRECT_ALIGN];
        let start = memory.as_ptr().align_offset(DIRECT_ALIGN);
        let window = memory.get_mut(start..start + aligned).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut read = 0;
        // The last page of a file is cut short by its end.
        while read < wanted {
            let at = offset - skipped as u64 + read as u64;
            match self.file.read_at(&mut window[read..], at) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => read += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        buffer.copy_from_slice(&window[skipped..wanted]);
        Ok(())
    }
}

/// The operating system lets go of the lock when the file is closed.
#[derive(Debug)]
struct DiskLock(#[allow(dead_code, reason = "held, not used")] File);

impl Lock for DiskLock {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direct_reads_see_what_buffered_reads_see() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let bytes: Vec<u8> = (0..20_001u32).map(|i| (i % 251) as u8).collect();
        let mut file = DiskStorage.create(&path).unwrap();
        file.append(&bytes).unwrap();
        file.sync().unwrap();
        let map = DiskStorage.map(&path).unwrap();
        assert_eq!(&map[..], &bytes[..]);
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
    fn second_lock_names_the_holder() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let lock = DiskStorage.lock(&path).unwrap();
        let error = DiskStorage.lock(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(error.to_string().contains(&format!("process {}", std::process::id())));
        drop(lock);
        DiskStorage.lock(&path).unwrap();
    }

    #[test]
    fn existing_files_are_never_overwritten_by_create() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        DiskStorage.create(&path).unwrap().append(b"x").unwrap();
        assert!(DiskStorage.create(&path).is_err());
        assert!(DiskStorage.create_segment(&path, 4096).is_err());
        assert_eq!(DiskStorage.len(&path).unwrap(), 1);
    }
}
