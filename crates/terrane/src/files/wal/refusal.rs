//! The pause after a full disk has refused a new file. Otherwise every write on a full disk would create a
//! file, fail to allocate it and remove it.

use std::time::{Duration, Instant};

use crate::base::error::{Error, Result};

/// How long the log refuses segments by itself after a full disk has refused one. Writes resume at most
/// this long after another program has freed space.
const PAUSE: Duration = Duration::from_millis(250);

/// A new file that a full disk refused.
#[derive(Debug)]
pub(super) struct Refusal {
    /// The length of the file. A shorter one may have space.
    bytes: u64,
    error: Error,
    retry_at: Instant,
}

impl Refusal {
    /// Returns the refusal of a new file of `bytes` bytes; `None` if the disk was not full.
    pub(super) fn of(bytes: u64, error: &Error) -> Option<Self> {
        let is_full = matches!(error, Error::DiskFull(_));
        is_full.then(|| Self { bytes, error: error.clone(), retry_at: Instant::now() + PAUSE })
    }

    /// Fails for a file of `bytes` bytes until the disk may be asked again.
    pub(super) fn check(&self, bytes: u64) -> Result<()> {
        let is_refused = bytes >= self.bytes && Instant::now() < self.retry_at;
        if is_refused { Err(self.error.clone()) } else { Ok(()) }
    }
}
