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
    error: Error,
    retry_at: Instant,
}

impl Refusal {
    /// Returns the refusal of a new file; `None` if the disk was not full.
    pub(super) fn of(error: &Error) -> Option<Self> {
        let is_full = matches!(error, Error::DiskFull(_));
        is_full.then(|| Self { error: error.clone(), retry_at: Instant::now() + PAUSE })
    }

    /// Fails until the disk may be asked again.
    pub(super) fn check(&self) -> Result<()> {
        if Instant::now() < self.retry_at { Err(self.error.clone()) } else { Ok(()) }
    }
}
