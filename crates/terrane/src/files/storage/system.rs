//! The system calls of a disk storage, on files given by their [`Place`](super::place::Place).
//!
//! A file that the engine writes is never reached through a symbolic link, because the target may
//! belong to someone else. A file that it only reads may be a link. Everything that is opened must
//! be a regular file: reading a FIFO or a device may wait forever.

#[cfg(not(unix))]
mod elsewhere;
#[cfg(unix)]
mod unix;

use std::io;

#[cfg(not(unix))]
pub(super) use elsewhere::*;
#[cfg(unix)]
pub(super) use unix::*;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// For reads.
    Read,
    /// For appending; the file must not exist.
    CreateForAppend,
    /// For reads and writes; the file must not exist.
    Create,
    /// For reads and writes of an existing file.
    Overwrite,
    /// As a lock that is taken exclusively; the file is created if it does not exist.
    Lock,
    /// As a lock that is shared, without write permission.
    SharedLock,
}

/// Returns true if the process or the system has no descriptor left.
pub(crate) fn is_out_of_files(error: &io::Error) -> bool {
    #[cfg(unix)]
    let codes =
        [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE].map(rustix::io::Errno::raw_os_error);
    // ERROR_TOO_MANY_OPEN_FILES
    #[cfg(not(unix))]
    let codes = [4];
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}
