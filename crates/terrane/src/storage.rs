//! Files, as the engine needs them.
//!
//! All input and output goes through [`Storage`], so that the engine runs unchanged on a disk
//! ([`DiskStorage`]), in memory with crashes ([`MemoryStorage`]), and with faults
//! ([`FaultStorage`]).
//!
//! There are three kinds of file, by how they are written:
//! - *appended* once from front to back, then only read: tables, manifests;
//! - *segments*, made at their full length and overwritten in place: the log. What is written to a
//!   segment survives the death of the process without a system call;
//! - *replaced* as a whole, by renaming a new file over the old one: the pointer to the manifest.
//!
//! Nothing survives the loss of power until it is synced: contents by `sync` of the file, names by
//! [`Storage::sync_dir`] of the directory.

mod direct;
mod disk;
mod disk_segment;
mod fault;
mod mapping;
mod memory;

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub use disk::DiskStorage;
pub use fault::{Fault, FaultStorage, Operation};
pub use mapping::Mapping;
pub use memory::{Crash, CrashPoint, MemoryStorage, Survival};

/// How a file is read, or appended to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Through the page cache of the operating system.
    Buffered,
    /// Around it, where the file system can do that; where it cannot, through it, and
    /// [`RandomReader::is_direct`] and [`Appender::is_direct`] say so.
    Direct,
}

/// A place for files.
///
/// Errors are those of the operating system; a full disk is [`io::ErrorKind::StorageFull`].
pub trait Storage: Send + Sync + fmt::Debug {
    /// Makes a directory and those above it; existing ones are left as they are.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// The names of all files in a directory.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// The length of a file in bytes.
    fn len(&self, path: &Path) -> io::Result<u64>;

    /// Makes a file to be appended to. Fails if there is one of this name.
    fn create(&self, path: &Path, access: Access) -> io::Result<Box<dyn Appender>>;

    /// Opens a file to be read at any place.
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn RandomReader>>;

    /// Maps a whole file into memory, to be read.
    fn map(&self, path: &Path) -> io::Result<Mapping>;

    /// Makes a segment of `len` bytes of zeros, with room on disk for all of them. Fails if there
    /// is a file of this name.
    fn create_segment(&self, path: &Path, len: u64) -> io::Result<Box<dyn Segment>>;

    /// Opens a segment to be overwritten.
    fn open_segment(&self, path: &Path) -> io::Result<Box<dyn Segment>>;

    /// Gives a file another name, replacing one that has it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a name, and the file with its last one.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Takes a lock that ends with the value, or with the process. `Err` of
    /// [`io::ErrorKind::WouldBlock`] carries who holds it as its text.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>>;

    /// A number that changes whenever unsynced data may have been lost; `None` if that cannot be
    /// told.
    fn boot_id(&self) -> Option<u128>;

    /// A number that no one can guess.
    fn entropy(&self) -> u64;
}

/// A file that is written from front to back.
pub trait Appender: Send {
    /// Writes all of `bytes` at the end. With [`Access::Direct`] some of them may wait in memory
    /// for [`Appender::flush`] or [`Appender::sync`].
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Has readers of the file see all that was written.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Makes all that was written durable, but not the name of the file. Readers see it, too.
    fn sync(&mut self) -> io::Result<()>;

    /// Whether what is written goes around the page cache.
    fn is_direct(&self) -> bool {
        false
    }
}

/// A file that is read at any place, by any number of threads.
pub trait RandomReader: Send + Sync + fmt::Debug {
    /// Fills `buffer` from `offset` on; an end of file before that is an error.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Whether it reads around the page cache.
    fn is_direct(&self) -> bool {
        false
    }
}

/// A file of fixed length that is overwritten in place.
pub trait Segment: Send + fmt::Debug {
    /// The length in bytes.
    fn len(&self) -> u64;

    /// Whether there is no room at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes at `offset`. What was written survives the death of the process.
    ///
    /// # Errors
    /// The range is not within the segment.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// As [`Segment::write`], in the way that is cheaper for bytes that are synced at once.
    ///
    /// # Errors
    /// The range is not within the segment, or the operating system failed; what the range holds
    /// is not known then.
    fn write_through(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write(offset, bytes)
    }

    /// A handle that makes written data durable while others go on writing.
    fn syncer(&self) -> Arc<dyn Syncer>;

    /// A handle that readies parts to be written to, where that is of use.
    fn preparer(&self) -> Option<Arc<dyn Preparer>> {
        None
    }
}

/// Readies parts of a segment to be written to, while others write.
pub trait Preparer: Send + Sync + fmt::Debug {
    /// Has the memory of a part there before it is needed, and changes nothing in it. What lies
    /// outside of the segment is left out.
    fn prepare(&self, offset: u64, len: u64);
}

/// Makes what was written to a segment durable.
pub trait Syncer: Send + Sync + fmt::Debug {
    /// Returns once everything written before the call survives the loss of power.
    fn sync(&self) -> io::Result<()>;
}

/// A lock on a database, held until it is dropped.
pub trait Lock: Send + Sync + fmt::Debug {}
