//! A thread that removes the fields of hashes that have expired.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use terrane::{Clock, SystemClock};

use crate::call::shared::Shared;
use crate::commands::announce_expired;
use crate::store::SWEPT;

/// The time between two sweeps. A hash that has expired is invisible at once.
const INTERVAL: Duration = Duration::from_secs(1);

/// The thread, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Sweeper {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Sweeper {
    pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<Self> {
        let (end, ends) = channel();
        let shared = Arc::clone(shared);
        let thread = std::thread::Builder::new().name("terrane-serve-sweep".to_owned());
        let thread = thread.spawn(move || {
            while ends.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                // A sweep that fails is retried; the database reports its errors to all writers. A sweep that
                // waits would keep a key locked.
                while !shared.is_ending()
                    && !shared.databases.is_stalled()
                    && shared
                        .databases
                        .sweep(&shared.locks, SystemClock.now_micros(), |slot, key| {
                            announce_expired(&shared, slot, key);
                        })
                        .is_ok_and(|swept| swept >= SWEPT)
                {}
            }
        })?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, its entries remain for the next start.
            let _ = thread.join();
        }
    }
}
