//! What has the name of a file without being a regular file.

use std::fmt;
use std::io;

/// What has the name of a file of the database without being a regular file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WrongFileType {
    /// A directory.
    Directory,
    /// A symbolic link, in place of a file that the database writes or locks.
    SymbolicLink,
    /// A FIFO, from which a read could wait forever.
    Fifo,
    /// A socket.
    Socket,
    /// A device.
    Device,
    /// Something else.
    Unknown,
}

impl WrongFileType {
    /// Returns the type that an error of a storage states, if that is its cause.
    pub(crate) fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl fmt::Display for WrongFileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Directory => "a directory",
            Self::SymbolicLink => "a symbolic link",
            Self::Fifo => "a FIFO",
            Self::Socket => "a socket",
            Self::Device => "a device",
            Self::Unknown => "of an unknown type",
        })
    }
}

impl std::error::Error for WrongFileType {}

impl From<WrongFileType> for io::Error {
    fn from(found: WrongFileType) -> Self {
        Self::new(io::ErrorKind::InvalidInput, found)
    }
}
