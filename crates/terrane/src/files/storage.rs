//! File access for the engine.
//!
//! All input and output goes through [`Storage`], so that the engine runs unchanged on a disk
//! ([`DiskStorage`]), in memory with simulated crashes ([`MemoryStorage`]), and with injected faults
//! ([`FaultStorage`]).
//!
//! There are three kinds of file, by how they are written:
//! - *appended* once from front to back, then only read: tables, manifests;
//! - *segments*, created at their full length and overwritten in place: the log. A write to a
//!   segment survives the death of the process;
//! - *replaced* as a whole, by renaming a new file over the old one: the pointer to the manifest.
//!
//! Nothing survives a power failure until it is synced: contents by `sync` of the file, names by
//! [`Storage::sync_dir`] of the directory. A directory is a name in its parent.

mod ancestors;
mod direct;
mod directory_lock;
mod disk;
mod disk_files;
mod disk_lock;
mod disk_segment;
mod fault;
#[cfg(unix)]
mod held_dirs;
#[cfg(target_os = "linux")]
mod map_guard;
#[cfg(target_os = "linux")]
mod mapped_segment;
#[cfg(target_os = "linux")]
mod mapping;
mod memory;
mod opening_readers;
mod place;
mod size_limit;
mod slow_device;
mod system;
mod written_segment;

use std::fmt;
use std::io;
use std::ops::Range;
#[cfg(unix)]
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use ancestors::sync_ancestors;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(miri)
))]
pub(crate) use direct::{ALIGN, AlignedBuffer};
pub(crate) use directory_lock::DirectoryLock;
pub use disk::DiskStorage;
pub use fault::{Fault, FaultStorage, Operation};
pub use memory::{Crash, CrashPoint, MemoryStorage, Survival};
pub(crate) use opening_readers::OpeningReaders;
pub(crate) use size_limit::bytes_max as file_bytes_max;
pub use size_limit::check as check_file_size;
pub(crate) use system::is_out_of_files;

/// The length from which pieces of log records are written with a system call instead of through a map.
pub(crate) const LARGE_PIECE_BYTES: usize = 64 << 10;

/// How a file is read or appended to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Access {
    /// Through the page cache of the operating system.
    Buffered,
    /// Bypassing the page cache. If the file system does not support that, access goes through the
    /// page cache, and [`RandomReader::is_direct`] and [`Appender::is_direct`] return false.
    Direct,
}

/// A directory that keeps its meaning, and a view of its storage in which it does.
#[derive(Debug, Clone)]
pub struct HeldDir {
    /// The path by which the view reaches the directory. On a disk it is absolute.
    pub path: PathBuf,
    /// The view. Paths that are not below a held directory mean what they mean in the storage itself.
    pub storage: Arc<dyn Storage>,
}

/// Holds a directory of a storage; see [`Storage::hold_dir`].
pub(crate) fn hold_dir(storage: &Arc<dyn Storage>, dir: &Path) -> io::Result<HeldDir> {
    let held = storage.hold_dir(dir)?;
    Ok(held.unwrap_or_else(|| HeldDir { path: dir.to_owned(), storage: Arc::clone(storage) }))
}

/// A file system.
///
/// Errors are those of the operating system; a full disk is [`io::ErrorKind::StorageFull`].
pub trait Storage: Send + Sync + fmt::Debug {
    /// Creates a directory and its missing ancestors; existing ones are left unchanged. The names of
    /// new directories are not durable until [`Storage::sync_dir`] of each parent.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Returns a view of this storage in which paths below `dir` lead into the directory that has
    /// this path now, even if it is renamed, a link on the path changes, or the working directory
    /// does. The view also holds the directories that this storage holds.
    ///
    /// A database does all its work through such a view. `None`, which is the default, means that
    /// paths keep their meaning, or that the storage cannot hold directories; the database then uses
    /// the storage itself. A storage that wraps another one must wrap the view, too.
    ///
    /// # Errors
    /// The directory does not exist or cannot be opened.
    fn hold_dir(&self, dir: &Path) -> io::Result<Option<HeldDir>> {
        let _ = dir;
        Ok(None)
    }

    /// Returns the descriptor of a held directory, given by the path of its [`HeldDir`].
    #[cfg(unix)]
    fn descriptor(&self, dir: &Path) -> Option<BorrowedFd<'_>> {
        let _ = dir;
        None
    }

    /// Returns the names of all files in a directory, without its directories. A missing directory
    /// is [`io::ErrorKind::NotFound`].
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Returns the length of a file in bytes.
    fn len(&self, path: &Path) -> io::Result<u64>;

    /// Creates a file for appending. Fails if a file of this name exists.
    fn create(&self, path: &Path, access: Access) -> io::Result<Box<dyn Appender>>;

    /// Opens a file for reads at any offset.
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn RandomReader>>;

    /// Creates a segment of `len` zero bytes and allocates disk space for all of them. Fails if a
    /// file of this name exists.
    fn create_segment(&self, path: &Path, len: u64) -> io::Result<Box<dyn Segment>>;

    /// Opens a segment for overwriting.
    fn open_segment(&self, path: &Path) -> io::Result<Box<dyn Segment>>;

    /// Renames a file, replacing the file at the new name if there is one.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a name of a file. The file itself is removed with its last name.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable. Succeeds without doing so if the file system does not offer
    /// it, see [`Storage::take_unsynced_dirs`]; an error is a sync that failed.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Returns the held directories that the file system refused to sync, each with the answer of the
    /// operating system. Each directory is returned once.
    fn take_unsynced_dirs(&self) -> Vec<(PathBuf, String)> {
        Vec::new()
    }

    /// Returns how many bytes new files in a directory can take on their file system. `None`, which is the
    /// default, if that is unknown.
    ///
    /// On a full disk, a database begins a flush or a compaction only if its output has space, so that the
    /// attempt takes no space from deletes. If the space is unknown, it tries. A quota need not count. A
    /// storage that wraps another one should forward the call.
    fn free_bytes(&self, dir: &Path) -> Option<u64> {
        let _ = dir;
        None
    }

    /// Takes an exclusive lock, which is released when the value is dropped or the process dies.
    /// Creates the file if it does not exist, and keeps it when the lock is released. If another
    /// process holds the lock, the error is [`io::ErrorKind::WouldBlock`] and its text names the
    /// holder.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>>;

    /// Takes a shared lock on an existing file, which is released when the value is dropped or the
    /// process dies. Any number of processes can hold it, and none of them needs write permission.
    ///
    /// A storage that cannot do this returns [`io::ErrorKind::Unsupported`]. Opening a database
    /// read-only alongside a writer may then take several attempts.
    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Opens a file, and creates it if it does not exist, to find out whether it is locked with
    /// [`Storage::lock_shared`].
    ///
    /// If this returns an error, which is the default, a writer keeps no files for readers. Implement
    /// it together with `lock_shared`; a storage that wraps another one must forward both.
    fn probe_lock(&self, path: &Path) -> io::Result<Box<dyn LockProbe>> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns a number that changes whenever unsynced data may have been lost; `None` if unknown.
    fn boot_id(&self) -> Option<u128>;

    /// Returns an unpredictable number.
    fn entropy(&self) -> u64;
}

/// A file that is written from front to back.
pub trait Appender: Send {
    /// Appends `bytes`. With [`Access::Direct`] some of them may stay in a buffer until
    /// [`Appender::flush`] or [`Appender::sync`].
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes all appended bytes visible to readers of the file.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Makes all appended bytes visible and durable. Does not make the name of the file durable.
    fn sync(&mut self) -> io::Result<()>;

    /// Returns true if writes bypass the page cache.
    fn is_direct(&self) -> bool {
        false
    }

    /// Returns false if the file no longer has a name. A storage that cannot check this returns true.
    fn has_name(&self) -> io::Result<bool> {
        Ok(true)
    }
}

/// A file that any number of threads read at any offset.
pub trait RandomReader: Send + Sync + fmt::Debug {
    /// Fills `buffer` with the bytes from `offset` on. Fails if the file ends before the buffer is
    /// full.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Returns true if reads bypass the page cache.
    fn is_direct(&self) -> bool {
        false
    }

    /// Returns the descriptor of the file if [`RandomReader::read_at`] does nothing but read from it. Several such
    /// reads can then be given to the operating system together. `None` is the default; a storage that wraps
    /// another one and observes its reads must not forward the call.
    ///
    /// If [`RandomReader::is_direct`] returns true, offsets, lengths and addresses are multiples of 4 KiB.
    #[cfg(unix)]
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Announces reads at random offsets, so that the operating system need not read ahead.
    fn expect_random_reads(&self) {}

    /// Announces a read of these bytes, so that the operating system may begin it.
    fn will_read(&self, _bytes: Range<u64>) {}
}

/// A file of fixed length that is overwritten in place.
pub trait Segment: Send + fmt::Debug {
    /// Returns the length in bytes.
    fn len(&self) -> u64;

    /// Returns true if the length is 0.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes at `offset`. The written bytes survive the death of the process.
    ///
    /// # Errors
    /// The range is not within the segment, or the operating system failed, for example because a file
    /// system that copies on write has no space. Some of the bytes may then have been written.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Writes like [`Segment::write`], but costs less if the bytes are synced right after.
    ///
    /// # Errors
    /// As for [`Segment::write`].
    fn write_through(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write(offset, bytes)
    }

    /// Returns a handle that makes written bytes durable while writes continue.
    fn syncer(&self) -> Arc<dyn Syncer>;

    /// Returns the answer of the operating system if it refused to map the segment, whose writes are then
    /// system calls; `None`, which is the default, if it did not, or was not asked.
    fn map_refusal(&self) -> Option<String> {
        None
    }

    /// Returns a handle through which several threads write concurrently, if such writes cannot fail
    /// because they need neither space nor anything else from the operating system, unless the file is
    /// damaged meanwhile. Without it, the default, only one thread at a time appends to the log.
    fn record_writer(&self) -> Option<Arc<dyn RecordWriter>> {
        None
    }

    /// Unmaps the pages of a segment that receives no more writes, in steps between which it calls `between`.
    /// Dropping the segment then takes little time. By default there is nothing to unmap.
    fn unmap_pages(&self, _between: &dyn Fn()) {}
}

/// Writes to a segment from several threads concurrently. The bytes survive the death of the process,
/// and the handle may outlive its segment.
pub trait RecordWriter: Send + Sync + fmt::Debug {
    /// Writes the parts of a record one after the other, at `offset`, which is a multiple of eight.
    /// Bytes 8 to 16 of the record are written last, in one step: if the process dies before that, they
    /// keep their old value.
    ///
    /// # Errors
    /// The first part is shorter than 16 bytes, the record is not within the segment, or a part of the
    /// file is lost. The log then accepts no more records.
    fn write_record(&self, offset: u64, record: &[&[u8]]) -> io::Result<()>;

    /// Writes zeros, and prepares the range so that the next writes to it are fast.
    ///
    /// # Errors
    /// The range is not within the segment, or the operating system failed. The range then holds its
    /// former contents or zeros.
    fn write_zeros(&self, offset: u64, len: u64) -> io::Result<()>;
}

/// Makes writes to a segment durable.
pub trait Syncer: Send + Sync + fmt::Debug {
    /// Returns once all bytes written before the call survive a power failure.
    fn sync(&self) -> io::Result<()>;

    /// Returns once the first `len` bytes, as written before the call, survive a power failure. The
    /// first eight bytes do not change during the call. Costs less than [`Self::sync`], which the
    /// default calls, if other bytes are being written.
    ///
    /// # Errors
    /// The operating system failed; as after a failed sync, any unsynced bytes may be lost.
    fn sync_start(&self, len: u64) -> io::Result<()> {
        let _ = len;
        self.sync()
    }
}

/// A lock on a database, held until it is dropped.
pub trait Lock: Send + Sync + fmt::Debug {
    /// Returns false if the lock no longer protects the database, because its file was removed or
    /// replaced: another process can then take a lock at the same path. A storage that cannot check
    /// this returns true.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if the directory of the lock file was removed; otherwise the
    /// operating system failed.
    fn is_held(&self) -> io::Result<bool> {
        Ok(true)
    }
}

/// Finds out whether a file is locked.
pub trait LockProbe: Send + Sync + fmt::Debug {
    /// Returns true if any process holds a shared lock on the file. The probe takes no lock that
    /// outlasts the call.
    fn is_locked(&self) -> io::Result<bool>;
}
