//! The loss of a part of a log that is in use.

use std::fmt;
use std::io;
use std::path::Path;

/// A page of a log was lost while the log was written: the file was shortened, or the device failed to
/// read the page. Becomes [`Error::LogLost`](super::Error::LogLost) together with the path of the file.
#[derive(Debug)]
pub(crate) struct LostPage {
    /// The offset of the page in the file.
    pub(crate) offset: u64,
}

impl LostPage {
    /// Returns the lost page that an error of a storage is about, if any.
    pub(super) fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl fmt::Display for LostPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the file was shortened, or cannot be read at byte {}", self.offset)
    }
}

impl std::error::Error for LostPage {}

impl From<LostPage> for io::Error {
    fn from(lost: LostPage) -> Self {
        Self::other(lost)
    }
}

/// Writes the text of [`Error::LogLost`](super::Error::LogLost).
pub(super) fn explain(f: &mut fmt::Formatter<'_>, path: &Path, offset: u64) -> fmt::Result {
    write!(
        f,
        "writes are refused because {} was shortened by another program, or cannot be read, at byte \
         {offset}, and writes since the last sync may be lost; stop the other program, close the \
         database and open it again",
        path.display()
    )
}
