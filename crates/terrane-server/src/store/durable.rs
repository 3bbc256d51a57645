//! Which answers depend on a sync.
//!
//! With the durability `sync`, the server writes as `process`, and makes one sync for all commands of an
//! iteration of a worker before it sends their answers. An answer depends on a sync if its command wrote,
//! or if it may have read what another worker wrote and has not synced yet.
//!
//! 1. A worker sets its flag before its first write of an iteration, and clears it after a sync that
//!    succeeded. So a reader that has seen a write finds the flag set, or the write is durable.
//! 2. A thread that runs a command of its own counts itself among the threads with unsynced writes before its first
//!    write, and leaves the count after its own sync succeeded.
//! 3. After a sync that failed, the flag stays set and the count stays, so that every later answer that may show the lost write is
//!    an error, until the database is opened again.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use terrane::{Db, Durability, Result};

/// Knows which workers have writes that are not durable yet.
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

    /// Returns the writes of a command of a worker.
    pub(crate) fn unsynced(&self, worker: usize) -> Unsynced<'_> {
        let flag = self.flags.get(worker).filter(|_| self.is_synced).map(|flag| &flag.0);
        Unsynced::new(flag.map_or(Mark::None, Mark::Worker))
    }

    /// Returns the writes of a command that runs in a thread of its own.
    pub(crate) fn unsynced_of_thread(&self) -> Unsynced<'_> {
        Unsynced::new(if self.is_synced { Mark::Thread(&self.threads) } else { Mark::None })
    }

    /// Returns whether what a command has read up to now may be lost, because a sync has to cover it.
    pub(crate) fn is_exposed(&self) -> bool {
        let is_set = |flag: &Flag| flag.0.load(Ordering::SeqCst);
        self.is_synced && (self.flags.iter().any(is_set) || self.threads.load(Ordering::SeqCst) > 0)
    }

    /// Returns whether a worker has written what is not durable yet.
    pub(crate) fn has_unsynced(&self, worker: usize) -> bool {
        self.is_synced && self.flags.get(worker).is_some_and(|flag| flag.0.load(Ordering::SeqCst))
    }

    /// Makes what a worker has written and read durable, if the durability demands it.
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

/// Where others see that a command has written what is not durable yet.
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

    /// Makes what a thread of a long command has written durable.
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

    /// Called if the answer of a command shows what is stored.
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
