//! Reads of several parts of files that the kernel begins together (io_uring).
//!
//! A reader that hands reads to other threads ([`super::io_threads`]) pays for waking each of them. With a ring, one
//! system call begins all reads and waits for them; where the file system can read without waiting, no thread wakes but
//! the reader. On two processors and a device of 100 µs, 32 reads at once complete 1.5 to 2 times as fast, with a third
//! of the processor time.
//!
//! 1. Rings are created on demand, and a ring serves one thread at a time. With [`RINGS_MAX`] in use, or where the
//!    system refuses them or a ring has failed, readers use threads.
//! 2. A read that fails, or ends early, is not done. The caller reads it again by itself, which reports the error.
#![cfg_attr(
    not(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64"),
        not(miri)
    )),
    allow(dead_code, reason = "other systems have no rings")
)]

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
mod ring;

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(miri)
)))]
#[path = "io_rings/absent.rs"]
mod ring;

use std::fmt;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use self::ring::Ring;
use crate::files::storage::{RandomReader, is_out_of_files};

/// The number of threads of a database that read with a ring at once. Each ring takes a file descriptor.
const RINGS_MAX: usize = 8;

/// A read of a part of a file.
pub(crate) struct FileRead<'a> {
    pub(crate) reader: &'a dyn RandomReader,
    pub(crate) offset: u64,
    pub(crate) buffer: &'a mut [u8],
    /// Whether the buffer has been filled.
    pub(crate) is_done: bool,
}

/// The rings of a database.
#[derive(Default)]
pub(crate) struct IoRings(Mutex<State>);

#[derive(Default)]
struct State {
    idle: Vec<Ring>,
    /// The number of rings, idle or in use.
    count: usize,
    /// The system has refused a ring.
    is_refused: bool,
}

/// A ring in use by one thread.
pub(crate) struct RingLease<'a> {
    rings: &'a IoRings,
    /// `None` once the ring has failed.
    ring: Option<Ring>,
}

impl IoRings {
    /// Rings that nobody gets.
    pub(crate) fn none() -> Self {
        Self(Mutex::new(State { is_refused: true, ..State::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a ring, if one is free or can be created.
    pub(crate) fn lease(&self) -> Option<RingLease<'_>> {
        let mut state = self.lock();
        if let Some(ring) = state.idle.pop() {
            return Some(RingLease { rings: self, ring: Some(ring) });
        }
        if state.is_refused || state.count == RINGS_MAX {
            return None;
        }
        state.count += 1;
        drop(state);
        match Ring::new() {
            Ok(ring) => Some(RingLease { rings: self, ring: Some(ring) }),
            Err(error) => {
                let mut state = self.lock();
                state.count -= 1;
                state.is_refused = !is_shortage(&error);
                None
            }
        }
    }
}

/// Returns true if a ring may be created later: memory or descriptors are short now.
fn is_shortage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::WouldBlock)
        || is_out_of_files(error)
}

impl RingLease<'_> {
    /// Returns true if the system can read the file by its descriptor.
    pub(crate) fn can_read(&self, reader: &dyn RandomReader) -> bool {
        self.ring.is_some() && Ring::can_read(reader)
    }

    /// Fills the buffers of the reads whose files the system can read by their descriptor.
    pub(crate) fn read(&mut self, reads: &mut [FileRead<'_>]) {
        // A ring that fails, or whose read panics, is not used again.
        let Some(mut ring) = self.ring.take() else { return };
        if ring.read(reads) {
            self.ring = Some(ring);
        }
    }
}

impl Drop for RingLease<'_> {
    fn drop(&mut self) {
        let mut state = self.rings.lock();
        match self.ring.take() {
            Some(ring) => state.idle.push(ring),
            None => {
                state.count -= 1;
                state.is_refused = true;
            }
        }
    }
}

impl fmt::Debug for IoRings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        write!(f, "IoRings({} of {} in use)", state.count - state.idle.len(), state.count)
    }
}

#[cfg(test)]
mod tests;
