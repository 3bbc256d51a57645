//! The state machine of a database: one file per verb.
//!
//! | module | one line |
//! |---|---|
//! | `open`, `recover`, `close` | from files to a running database and back |
//! | `write`, `room`, `slow_down` | log, memtable, visibility; what holds writers up, or back |
//! | `write_queue` | writers one after the other, as in LevelDB |
//! | `stall_events` | who is told of that |
//! | `read`, `multi_get`, `scan` | point lookups, one and many; cursors over everything |
//! | `read_pool`, `parallel_read` | several runs searched at the same time for one of them |
//! | `gate`, `pace` | which merges go on and how fast; how far one has come |
//! | `flush`, `compact`, `install` | memtables and tables into tables; the edit that makes it true |
//! | `deletes` | memtables that are flushed so that deletes are persistent in time |
//! | `log_age` | files of the log that are gone in time, for the same |
//! | `drain` | threads that empty the front level of FloDB's memtables |
//! | `drop_covered` | tables that range tombstones cover go unread |
//! | `work`, `picking` | who does what next in the background, and what that depends on |
//! | `unreadable` | what damaged tables hold up |
//! | `keyspaces` | making, dropping and redesigning trees |
//! | `checkpoint` | a second database of the same contents |
//! | `remembered` | what the database was asked for, kept over its openings |
//! | `files` | which files are needed, and the end of the others |
//! | `tree`, `commit`, `snapshots`, `health` | the parts of the state |
//!
//! Locks, in the order in which they are taken: `writer`, then `manifest`, then those within a
//! tree. None is held during input or output, except `manifest` while an edit is kept and
//! `writer` while the log moves to another segment.

mod catalog;
mod context;
mod jobs;
mod life;
mod pipeline;
mod read;
#[cfg(test)]
mod tests;
mod tree;
mod write;

pub(crate) use context::health::{Health, JobKind};
pub(crate) use life::open::Opened;
pub(crate) use read::scan::ReadView;
pub(crate) use tree::usage::ScanCount;
pub(crate) use tree::{Tree, TreeState, memtable_config, pressure_of};
pub(crate) use write::{Write, insert_one};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use terrane_memtable::{Padded, Pool};

use crate::clock::Clock;
use crate::durability::Durability;
use crate::event::EventLog;
use crate::manifest::Manifest;
use crate::memory::MemoryLedger;
use crate::options::{Background, Settings};
use crate::stats::Counters;
use crate::storage::{Lock, Storage};
use crate::table::TableEnvironment;
use crate::types::{KeyspaceId, SeqNo};
use crate::wal::{LogSync, LogWriter};
use catalog::history::Remembered;
use jobs::workers::Work;
use pipeline::commit_queue::{CommitQueue, Entrance};
use pipeline::snapshots::Snapshots;
use read::pool::ReadPool;
use write::queue::WriteQueue;

/// All trees of a database.
pub(crate) type Trees = BTreeMap<KeyspaceId, Arc<Tree>>;

/// An open database.
#[derive(Debug)]
pub(crate) struct Engine {
    /// Given to no other opening of a database by this process.
    pub(crate) number: u64,
    pub(crate) dir: PathBuf,
    pub(crate) settings: Settings,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) counters: Arc<Counters>,
    remembered: Remembered,
    pub(crate) ledger: Arc<MemoryLedger>,
    pub(crate) tables: Arc<TableEnvironment>,
    pub(crate) health: Health,
    pub(crate) events: Arc<EventLog>,
    pub(crate) snapshots: Snapshots,
    /// Memory of flushed memtables, for the next ones.
    pub(crate) pool: Arc<Pool>,
    trees: ArcSwap<Trees>,
    writer: Padded<Mutex<Writer>>,
    /// Told when writers that wait for room may look again.
    room: std::sync::Condvar,
    commits: CommitQueue,
    write_queue: WriteQueue,
    log_sync: Arc<LogSync>,
    manifest: Mutex<Option<Manifest>>,
    work: Work,
    gate: jobs::gate::Gate,
    drains: jobs::drain::DrainSignal,
    /// Threads that help readers, if there are any.
    read_pool: Option<Arc<ReadPool>>,
    background: Background,
    /// Tells tables written by this opening of the database from those of any other.
    writer_id: u64,
    /// Files of tables whose edit is in doubt; see [`crate::manifest`].
    doubtful: Mutex<Vec<PathBuf>>,
    lock: Mutex<Option<Box<dyn Lock>>>,
}

/// What only one writer at a time may touch.
#[derive(Debug)]
pub(crate) struct Writer {
    /// `None` for a database that is read-only, or not open yet.
    log: Option<LogWriter>,
    next_seq: SeqNo,
    entrance: Entrance,
    /// Bytes written since memory was last counted.
    uncounted_bytes: usize,
}

impl Engine {
    fn lock_writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_manifest(&self) -> MutexGuard<'_, Option<Manifest>> {
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All trees, as they are now.
    pub(crate) fn trees(&self) -> arc_swap::Guard<Arc<Trees>> {
        self.trees.load()
    }

    /// The tree of a keyspace, if it was not dropped.
    pub(crate) fn tree(&self, id: KeyspaceId) -> Option<Arc<Tree>> {
        self.trees.load().get(&id).cloned()
    }

    /// The newest sequence number that readers may see.
    #[inline]
    pub(crate) fn visible(&self) -> SeqNo {
        self.commits.visible()
    }

    /// A sequence number below which no one reads, but lookups that have begun already and ask
    /// again if they must.
    #[inline]
    fn horizon(&self) -> SeqNo {
        self.snapshots.horizon(&self.commits)
    }

    /// Holds the newest visible sequence number; to be released.
    pub(crate) fn hold_snapshot(&self) -> SeqNo {
        self.snapshots.hold(&self.commits)
    }

    pub(crate) fn durability(&self) -> Durability {
        self.settings.durability
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn is_inline(&self) -> bool {
        self.background == Background::Inline
    }
}
