//! Which answers depend on a sync.
//!
//! With the durability `sync`, the server writes as `process`, and makes one sync for all commands of an
//! iteration of a worker before it sends their answers. An answer depends on a sync if its command wrote,
//! or if it may have read what another worker wrote and has not synced yet.
//!
//! 1. A worker sets its flag before its first write of an iteration, and clears it after a sync that
//!    succeeded. So a reader that has seen a write finds the flag set, or the write is durable.
//! 2. A thread that runs a single command counts itself among the threads with unsynced writes before its
//!    first write, and leaves the count after its own sync succeeded.
//! 3. After a failed sync, the flag stays set and the count stays, so that every later answer that may show
//!    the lost write is an error, until the database is opened again.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use terrane::{Db, Durability, Result};

/// Tracks the workers with writes that are not durable yet.
#[derive(Debug)]
pub(crate) struct Durable {
    /// Whether writes are synced before they are answered.
    is_synced: bool,
    flags: Vec<Flag>,
    /// The threads of long commands with writes that are not durable yet.
    threads: AtomicUsize,
}

/// In a cache line of its own, because its worker changes it in every iteration.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Flag(AtomicBool);

impl Durable {
    pub(crate) fn new(durability: Durability, workers: usize) -> Self {
        let is_synced = durability == Durability::Sync;
        let flags = (0..workers).map(|_| Flag::default()).collect();
        Self { is_synced, flags, threads: AtomicUsize::new(0) }
    }

    /// Returns the writes of a worker's command.
    pub(crate) fn unsynced(&self, worker: usize) -> Unsynced<'_> {
        let flag = self.flags.get(worker).filter(|_| self.is_synced).map(|flag| &flag.0);
        Unsynced::new(flag.map_or(Mark::None, Mark::Worker))
    }

    /// Returns the writes of a command that runs in its own thread.
    pub(crate) fn unsynced_of_thread(&self) -> Unsynced<'_> {
        Unsynced::new(if self.is_synced { Mark::Thread(&self.threads) } else { Mark::None })
    }

    /// Returns whether data that a command has read so far may be lost, because no sync has covered it yet.
    pub(crate) fn is_exposed(&self) -> bool {
        let is_set = |flag: &Flag| flag.0.load(Ordering::SeqCst);
        self.is_synced && (self.flags.iter().any(is_set) || self.threads.load(Ordering::SeqCst) > 0)
    }

    /// Returns whether a worker has writes that are not durable yet.
    pub(crate) fn has_unsynced(&self, worker: usize) -> bool {
        self.is_synced && self.flags.get(worker).is_some_and(|flag| flag.0.load(Ordering::SeqCst))
    }

    /// Makes a worker's writes and the data it has read durable, if the durability demands it.
    pub(crate) fn sync(&self, db: &Db, worker: usize) -> Result<()> {
        if !self.is_exposed() {
            return Ok(());
        }
        db.sync()?;
        if let Some(flag) = self.flags.get(worker) {
            flag.0.store(false, Ordering::SeqCst);
        }
        Ok(())
    }
}

/// The writes of a command that are not durable yet.
#[derive(Debug)]
pub(crate) struct Unsynced<'a> {
    mark: Mark<'a>,
    has_written: Cell<bool>,
    has_read: Cell<bool>,
}

/// The mark that shows other threads that a command has unsynced writes.
#[derive(Debug, Clone, Copy)]
enum Mark<'a> {
    /// Writes are durable enough by themselves.
    None,
    Worker(&'a AtomicBool),
    Thread(&'a AtomicUsize),
}

impl<'a> Unsynced<'a> {
    fn new(mark: Mark<'a>) -> Self {
        Self { mark, has_written: Cell::new(false), has_read: Cell::new(false) }
    }

    /// Called before a write.
    #[inline]
    pub(crate) fn note_write(&self) {
        let is_first = !self.has_written.replace(true);
        match self.mark {
            Mark::Worker(flag) => flag.store(true, Ordering::SeqCst),
            Mark::Thread(count) if is_first => {
                count.fetch_add(1, Ordering::SeqCst);
            }
            Mark::None | Mark::Thread(_) => {}
        }
    }

    /// Makes the writes of a long command's thread durable.
    pub(crate) fn sync_thread(&self, db: &Db) -> Result<()> {
        if let Mark::Thread(count) = self.mark
            && self.has_written.replace(false)
        {
            db.sync()?;
            count.fetch_sub(1, Ordering::SeqCst);
        }
        Ok(())
    }

    pub(crate) fn has_written(&self) -> bool {
        self.has_written.get()
    }

    /// Called if the command's reply shows stored data.
    #[inline]
    pub(crate) fn note_read(&self) {
        self.has_read.set(true);
    }

    pub(crate) fn has_read(&self) -> bool {
        self.has_read.get()
    }

    /// Returns the durability of writes; `None` for that of the database.
    pub(crate) fn durability(&self) -> Option<Durability> {
        match self.mark {
            Mark::None => None,
            Mark::Worker(_) | Mark::Thread(_) => Some(Durability::Process),
        }
    }
}
