//! The limit of the process for the size of a file (`RLIMIT_FSIZE`, `ulimit -f`).
//!
//! A call that would make a file longer than the limit, or write behind it, raises SIGXFSZ, which ends
//! a process that does not handle it. A library must not change how its process handles a signal, so
//! the limit is compared before each such call. Stores to a memory map are not subject to it.

use std::io;

/// Fails if a file may not have `bytes` bytes, because of the limit of the process for the size of a file
/// (`RLIMIT_FSIZE`, `ulimit -f`).
///
/// A write behind that limit raises SIGXFSZ, which ends a process that does not handle it. [`DiskStorage`]
/// therefore calls this before each write; a storage that writes files itself should do the same.
///
/// [`DiskStorage`]: super::DiskStorage
///
/// # Errors
/// [`io::ErrorKind::FileTooLarge`], with a text that names the limit.
pub fn check(bytes: u64) -> io::Result<()> {
    check_against(bytes_max(), bytes)
}

/// Fails if a file may not have `bytes` bytes under a limit that [`bytes_max`] returned.
pub(super) fn check_against(limit: u64, bytes: u64) -> io::Result<()> {
    if bytes <= limit {
        return Ok(());
    }
    let text = format!(
        "{bytes} bytes exceed the {limit} bytes that the process may write to a file (ulimit -f)"
    );
    Err(io::Error::new(io::ErrorKind::FileTooLarge, text))
}

/// Returns the maximum length of a file; `u64::MAX` without a limit.
#[cfg(unix)]
pub(crate) fn bytes_max() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::Fsize).current.unwrap_or(u64::MAX)
}

/// Other systems have no such limit.
#[cfg(not(unix))]
pub(crate) fn bytes_max() -> u64 {
    u64::MAX
}
