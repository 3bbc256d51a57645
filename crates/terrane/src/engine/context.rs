//! The state that all parts of the engine share.
//!
//! | module | one line |
//! |---|---|
//! | `attention` | the trees that background threads must visit |
//! | `health` | whether the database accepts writes, and why not |
//! | `reserve` | disk space that the database keeps for deletes |
//! | `memory_plan` | how the memory budget is divided |
//! | `memory_pressure` | keeps the block cache within the memory that the system has left |
//! | `memtable_memory` | the memory of memtables, and what they may take |
//! | `job_memory` | the memory of the buffers of jobs, and how many run concurrently within it |
//! | `values_in_log` | which values may stay in the log |
//! | `signals` | wakes the threads of a database, and stops them |

mod attention;
mod health;
mod job_memory;
mod memory_plan;
mod memory_pressure;
mod memtable_memory;
mod reserve;
mod signals;
mod values_in_log;

use std::path::PathBuf;
use std::sync::Arc;

use terrane_policy::Design;

use crate::base::clock::Clock;
use crate::base::compaction_filter::CompactionFilters;
use crate::base::error::{Error, Result};
use crate::base::event::{EventLog, LoggedEvent};
use crate::base::memory_ledger::MemoryLedger;
use crate::base::merge_operator::MergeOperators;
use crate::base::stats::Counters;
use crate::files::storage::Storage;
use crate::files::table::TableEnvironment;
use crate::files::wal::SegmentDirectory;
use crate::options::{Background, Settings};

pub(crate) use attention::{Attention, Registration, TreeSet};
pub(crate) use health::{BackgroundFailure, Health, JobKind};
pub(crate) use job_memory::{JobGrant, JobMemory};
pub(crate) use memory_plan::MemoryPlan;
pub(crate) use memory_pressure::{CACHE_BYTES_MIN, MemoryPressure, MemoryReading, Scarcity};
pub(crate) use memtable_memory::{MemtableMemory, TreeMemtables};
pub(crate) use reserve::{DiskReserve, FILES as RESERVE_FILES, reserve_bytes};
pub(crate) use signals::Signals;
pub(crate) use values_in_log::ValuesInLog;

/// The environment of an open database: what the parts read, count and report to.
#[derive(Debug)]
pub(crate) struct Context {
    /// Identifies this opening within the process.
    pub(crate) number: u64,
    pub(crate) dir: PathBuf,
    /// The log directory; `dir` unless the log has a separate one.
    pub(crate) log_dir: PathBuf,
    /// The segments of the log, for threads without its lock.
    pub(crate) log_segments: Arc<SegmentDirectory>,
    pub(crate) settings: Settings,
    pub(crate) background: Background,
    pub(crate) storage: Arc<dyn Storage>,
    /// The boot in which the files were written, if unsynced writes of that boot are known to have
    /// survived; `None` if they may have been lost.
    pub(crate) kept_boot: Option<u128>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) merge_operators: MergeOperators,
    pub(crate) compaction_filters: CompactionFilters,
    pub(crate) counters: Arc<Counters>,
    pub(crate) ledger: Arc<MemoryLedger>,
    pub(crate) tables: Arc<TableEnvironment>,
    pub(crate) health: Health,
    pub(crate) reserve: DiskReserve,
    pub(crate) events: Arc<EventLog>,
    pub(crate) memory_plan: MemoryPlan,
    pub(crate) memory_pressure: MemoryPressure,
    pub(crate) memtables: MemtableMemory,
    pub(crate) compaction_memory: Arc<JobMemory>,
    pub(crate) flush_memory: Arc<JobMemory>,
    pub(crate) signals: Signals,
    pub(crate) attention: Arc<Attention>,
}

impl Context {
    /// Returns true if the database has no threads and its callers do the background work.
    pub(crate) fn is_inline(&self) -> bool {
        self.background == Background::Inline
    }

    /// Fills the disk reserve. If the disk has no space for it, the database accepts only deletes.
    pub(crate) fn fill_reserve(&self, bytes: u64) {
        self.reserve.fill(bytes, &self.health);
    }

    /// Releases the disk reserve if `error` is that of a full disk. From now on only deletes are accepted,
    /// until the reserve can be filled again. Returns false if it was not filled.
    pub(crate) fn release_reserve(&self, error: &Error) -> bool {
        let is_released = self.reserve.release(error, &self.health);
        if error.is_out_of_space() {
            // A thread may find tables to drop.
            self.signals.wake();
        }
        is_released
    }

    /// Runs an operation on the manifest or the log without which the database could not be opened. If a
    /// full disk refuses it, runs it again with the space of the disk reserve.
    pub(crate) fn with_reserve<T>(&self, mut operation: impl FnMut() -> Result<T>) -> Result<T> {
        // Another thread may release or fill the reserve meanwhile. Either is a reason to try again.
        let was_filled = self.health.is_sound() || !self.reserve.is_released();
        let mut result = operation();
        if let Err(error) = &result
            && error.is_out_of_space()
            && (self.release_reserve(error) || was_filled)
        {
            result = operation();
        }
        if let Err(error) = &result
            && error.is_out_of_space()
            && self.reserve.release_for_manifest()
        {
            result = operation();
        }
        result
    }

    /// Refuses a job that writes up to `bytes` bytes if the disk reserve is released and the disk has no
    /// space for half of them: what the job drops or compresses may halve its output.
    pub(crate) fn check_room(&self, bytes: u64) -> Result<()> {
        if self.health.is_sound() { Ok(()) } else { self.reserve.check_room(bytes / 2) }
    }

    /// Refuses a write that needs space while the disk reserve cannot be filled.
    pub(crate) fn check_space(&self) -> Result<()> {
        if self.health.is_sound() {
            return Ok(());
        }
        self.health.check_writable()?;
        self.reserve.shortage(&self.health).map_or(Ok(()), Err)
    }

    /// Returns true if the log has a separate directory.
    pub(crate) fn has_log_apart(&self) -> bool {
        self.log_dir != self.dir
    }

    /// Refuses `operation`, which waits for background work, if an event listener calls it: the
    /// background work may be waiting for the listener.
    pub(crate) fn check_outside_listener(&self, operation: &str) -> Result<()> {
        if !self.events.is_in_listener() {
            return Ok(());
        }
        let found = format!("`{operation}`, which waits for background work");
        Err(Error::invalid("the call in an event listener", found, "one that does not wait"))
    }

    /// Returns which values may stay in the log under `design`; `None` if a flush may take none from
    /// there. A deadline for deletes rules this out, because log files must then be removed in time. So
    /// does a separate log directory, because a file cannot have names on two devices.
    pub(crate) fn values_in_log(&self, design: &Design) -> Option<ValuesInLog> {
        let separation = design.values.separation();
        let may_link = !self.has_log_apart() && self.settings.delete_persistence_micros().is_none();
        separation
            .filter(|_| may_link)
            .map(|separation| ValuesInLog::of(separation.threshold_bytes, design.buffer_bytes))
    }

    /// Returns the kept events whose number is greater than `number`, oldest first; none in a process
    /// that was forked, because the lock may be held for ever.
    pub(crate) fn events_after(&self, number: u64) -> Vec<LoggedEvent> {
        if self.health.is_of_this_process() { self.events.after(number) } else { Vec::new() }
    }

    /// Makes the directory's file names durable.
    pub(crate) fn sync_dir(&self) -> Result<()> {
        self.storage.sync_dir(&self.dir).map_err(|error| Error::io("sync", &self.dir, error))
    }
}
