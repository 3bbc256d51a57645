//! Options: each defined once, in the declaration below.
//!
//! | module | one line |
//! |---|---|
//! | `components` | storage, clock and threads, which are injected |
//! | `declare` | the macro behind the declaration |
//! | `keep_changes` | how long the log keeps changes |
//! | `memory_limit` | the memory that the operating system allows the process |
//! | `if_new` | values for the creation of a database only, and changes of its design |
//! | `requested_design` | a design, and how an opening treats another stored one |
//! | `settings` | the values of all options as the engine reads them |
//! | `values` | the types of options and their text forms |
//!
//! Options are stored with the database. Options passed to a later opening override the stored
//! ones, except the design of the default keyspace: opening with another design is an error that
//! explains how to change the design. [`Options::if_new`] gives values for the creation only.

mod components;
mod declare;
mod functions;
mod if_new;
mod keep_changes;
mod memory_limit;
mod requested_design;
mod settings;
#[cfg(test)]
mod tests;
mod values;

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use terrane_policy::{Design, catalogue};

use crate::base::clock::Clock;
use crate::base::durability::Durability;
use crate::base::error::{Error, Result};
use crate::base::event::{Listener, LoggedEvent};
use crate::base::io_budget::IoBudget;
use crate::files::storage::Storage;
use crate::files::table::CacheWarming;

pub(crate) use components::Components;
pub use declare::OptionInfo;
use declare::options;
pub use keep_changes::KeepChanges;
pub use memory_limit::memory_limit;
pub(crate) use memory_limit::{FreeMemory, MemoryGauge, MemoryLimit, smallest_limit};
pub(crate) use requested_design::{IfOther, RequestedDesign};
pub(crate) use values::LogDir;
pub use values::{Background, LogMode, OpenMode, ReadMode, WriteMode, WritePath};
use values::{Bytes, Persistence};

options! {
    /// The design of the default keyspace: write buffer, compaction strategy, filters. See
    /// [`Design`] for its text form. Opening a database that has another design is an error, which says
    /// how to change the design.
    design: Design as RequestedDesign = RequestedDesign::from(default_design()),
    accepts "a design such as `balanced` or `tiering T=4; filter=5`" where |design| design.value.validate().is_ok(),
    trade_off "Fewer runs make reads cheaper and writes more expensive.",
    takes_effect "when the database is created; later with `Db::set_design`";

    /// The failures that a write survives once the call returns, unless the write chooses others.
    durability: Durability as Durability = Durability::Process,
    accepts "`none`, `process`, `interval(TIME)` or `sync`" where |_| true,
    trade_off "Each step survives more failures and costs more; see [`Durability`].",
    takes_effect "when the database is opened";

    /// The limit in bytes for memtables, cached and pinned blocks, what open tables keep in memory, and
    /// the buffers of background work together. The default depends on the smallest limit on the memory of
    /// the process: of its control groups (cgroups) and all groups above them, of what `RLIMIT_AS` and
    /// `RLIMIT_DATA` leave, and of the machine (macOS: of those two only; Windows: none). It is half of the
    /// limit up to 1 GiB, then 512 MiB, and from 2 GiB on a quarter of the limit. A budget that does not fit
    /// into this limit is reported by
    /// [`Event::MemoryBudgetTooLarge`](crate::Event::MemoryBudgetTooLarge). While less memory is free, the
    /// cache takes less, down to a sixteenth of the budget, and
    /// [`Event::MemoryShort`](crate::Event::MemoryShort) says so. A cache below 64 MiB, a read-only opening and
    /// a database without threads do not observe the memory that is free.
    memory_budget: u64 as Bytes = Bytes(memory_limit::default_budget()),
    accepts "1 MiB to 1 TiB" where |bytes| (1 << 20..=1 << 40).contains(&bytes.0),
    trade_off "More memory means larger flushes, less rewriting, and a larger cache.",
    takes_effect "when the database is opened";

    /// The limit in bytes for cached and pinned blocks of tables, indexes and filters included, within
    /// `memory_budget`; with `0B` they may take all of the budget that nothing else needs. They always get
    /// a sixteenth of the budget, but no more than this limit.
    cache_bytes: u64 as Bytes = Bytes(0),
    accepts "0 or 64 KiB to 1 TiB" where |bytes| bytes.0 == 0 || (64 << 10..=1 << 40).contains(&bytes.0),
    trade_off "A fixed cache does not shrink and grow with the memtables, but may leave memory unused.",
    takes_effect "when the database is opened";

    /// How tables are read. Blocks in memory are used in place in either mode; the mode decides how other
    /// blocks are read. `cached` reads them through the page cache, `direct` past it. Databases that were
    /// created with the former default `mapped` are read with `cached`.
    read_mode: ReadMode as ReadMode = ReadMode::Cached,
    accepts "`cached` or `direct`" where |_| true,
    trade_off "The page cache speeds up reads of blocks that do not fit into `memory_budget`, but takes memory that the budget does not bound.",
    takes_effect "when the database is opened";

    /// The maximum number of table files that stay open; a file that was closed is opened again when it is
    /// next read. Each reading thread, including the engine's own 16, may briefly have one more file open.
    /// The log, the manifest and running jobs need about twenty more, and jobs open tables for themselves: up
    /// to an eighth of this number, at most 64. Table files take at most half of the limit of the process
    /// (`ulimit -n`), regardless of this option. A read-only opening opens all tables and keeps them
    /// open, because another process may remove the files; the option does not apply to it.
    open_files: usize as usize = default_open_files(),
    accepts "1 to 1000000" where |count| (1..=1_000_000).contains(count),
    trade_off "More open files save reopening when many tables are read, but take descriptors from the rest of the program.",
    takes_effect "when the database is opened";

    /// How flushes and compactions write tables. With `direct` here and in `read_mode`, all I/O on
    /// tables bypasses the page cache, as in the experiments of the compaction paper (§5); the log
    /// and the manifest still use it. If the file system does not support direct I/O, tables go
    /// through the page cache, and `Stats::direct_refused` counts them.
    write_mode: WriteMode as WriteMode = WriteMode::Buffered,
    accepts "`buffered` or `direct`" where |_| true,
    trade_off "Direct writes leave the page cache to other data, but wait for the device.",
    takes_effect "when the database is opened";

    /// How concurrent writers proceed. With `queue`, as in LevelDB, one leader at a time writes for all
    /// waiting writers (FloDB paper, §2.2); kept as a baseline.
    write_path: WritePath as WritePath = WritePath::Concurrent,
    accepts "`concurrent` or `queue`" where |_| true,
    trade_off "A queue copies each write and serializes threads; `concurrent` is faster if threads have processors.",
    takes_effect "when the database is opened";

    /// Which blocks of new tables are inserted into the block cache: `meta` for indexes and filters,
    /// `all` for data blocks as well. Flushes insert all such blocks, compactions those whose input
    /// blocks were cached. `read` is `all`, but data blocks are inserted only while the cache is not full,
    /// and by flushes only if the database was read since the previous flush of the keyspace, at least once
    /// per four blocks.
    cache_warming: CacheWarming as CacheWarming = CacheWarming::Read,
    accepts "`none`, `meta`, `all` or `read`" where |_| true,
    trade_off "Saves readers the first read after a flush or a compaction, but takes cache space; `all` pays if recently written data is read later.",
    takes_effect "when the database is opened";

    /// The number of memtables that may be flushed concurrently, each of another keyspace.
    flush_threads: usize as usize = 2,
    accepts "1 to 16" where |count| (1..=16).contains(count),
    trade_off "With more threads, a small memtable does not wait behind a large one of another keyspace, but flushes compete more with the application.",
    takes_effect "when the database is opened";

    /// The number of compactions that may run concurrently. Flushes have their own threads.
    compaction_threads: usize as usize = default_compaction_threads(),
    accepts "1 to 64" where |count| (1..=64).contains(count),
    trade_off "More threads keep up with more writes, but compete more with the application.",
    takes_effect "when the database is opened";

    /// The maximum number of threads of one compaction (Dent §2.3.4). Each merges one key range of all
    /// inputs, at least as large as a table. All compactions together may use `compaction_threads`
    /// times as many.
    merge_threads: usize as usize = 1,
    accepts "1 to 64" where |count| (1..=64).contains(count),
    trade_off "A large compaction finishes sooner, but uses more processors and memory meanwhile.",
    takes_effect "when the database is opened";

    /// The number of runs that one get reads concurrently, if their blocks are not in memory and reads
    /// wait for a device (Dent §2.4.2); with 0 or 1 it reads run after run. Helps trees of many runs with
    /// weak filters: a get that passes the filters of several runs would wait for each of them in turn.
    /// Measured with `cargo bench -p terrane --bench parallel_reads`. Runs in memory are always searched
    /// one after the other. Scans and `multi_get` overlap their reads without this option.
    read_threads: usize as usize = 0,
    accepts "0 to 64" where |count| *count <= 64,
    trade_off "A get that has to read several runs waits less, but may read older runs in vain.",
    takes_effect "when the database is opened";

    /// The bytes per second that flushes, compactions and ingests together may write.
    io_budget: IoBudget as IoBudget = IoBudget::Unlimited,
    accepts "`none`, 64 KiB or more such as `100MB/s`, or `leftover(100MB/s)`" where |budget| budget.is_valid(),
    trade_off "A smaller budget leaves more bandwidth to the application, but limits the sustained write rate.",
    takes_effect "when the database is opened; later with `Db::set_io_budget`";

    /// The bytes written to a table between two syncs, so that the final sync does not stall all other
    /// I/O (performance-stability §3.1); with `0B` there is only the final sync.
    sync_bytes: u64 as Bytes = Bytes(16 << 20),
    accepts "0 or 64 KiB to 1 TiB" where |bytes| bytes.0 == 0 || (64 << 10..=1 << 40).contains(&bytes.0),
    trade_off "Smaller steps stall other I/O less, but make merges wait more often.",
    takes_effect "when the database is opened";

    /// The time within which deleted values, by key or by range, are gone from all files, under any
    /// design. Compactions of overdue tombstones go first, with a share of the time for each level
    /// (Lethe §4.1), and log files are removed by age. Snapshots and iterators keep what they see.
    /// Deletes that fall due while the database is closed are handled when it is opened.
    delete_persistence: Duration as Persistence = Persistence(None),
    accepts "`never`, or a time of at least 1s such as `10m`, `1h` or `7d`" where |time| time.0.is_none_or(|micros| micros >= 1_000_000),
    trade_off "A shorter time removes deleted values sooner, but rewrites more (compaction paper O18), flushes smaller memtables and creates more log files.",
    takes_effect "when the database is opened";

    /// The directory of the log, for example on a device of its own (performance-stability §3.1). A
    /// relative path counts from the directory of the database; `database` puts the log next to the
    /// tables. The database records the directory, so a later opening finds the log without this option.
    /// An opening for writing with another directory moves the log there. If the directory was moved, set
    /// the option to its new location.
    log_dir: PathBuf as LogDir = LogDir(None),
    accepts "`database`, or a directory that no other database uses" where LogDir::is_valid,
    trade_off "A device of its own keeps flushes and compactions from delaying the log, but the database then needs both directories, and flushes copy values that `values=separate` would leave in the log.",
    takes_effect "when the database is opened";

    /// How records are written to the log on ext2, ext3, ext4 and tmpfs: `mapped` copies them into a memory
    /// map, `calls` makes a system call for each. Elsewhere, and if the system refuses the map, every
    /// record is written with a system call. The first mapped log of a process installs a handler for
    /// SIGBUS, so that a log file that another program shortens is an error. It passes every other SIGBUS
    /// to the handler that was installed before; a program that installs one later must pass those of
    /// the log on.
    log_mode: LogMode as LogMode = LogMode::Mapped,
    accepts "`mapped` or `calls`" where |_| true,
    trade_off "With `calls` the process needs no handler, but writes cost several times as much, and one thread at a time appends.",
    takes_effect "when the database is opened";

    /// The length of a log file in bytes.
    log_segment_bytes: u64 as Bytes = Bytes(64 << 20),
    accepts "64 KiB to 4 GiB" where |bytes| (64 << 10..=4 << 30).contains(&bytes.0),
    trade_off "Longer files are switched less often, but freed later.",
    takes_effect "with the next file";

    /// The length of the log in bytes at which memtables are flushed to shorten it, so that an idle
    /// keyspace does not pin the log of a busy one, and recovery time is bounded.
    log_bytes_max: u64 as Bytes = Bytes(512 << 20),
    accepts "1 MiB to 1 TiB" where |bytes| (1 << 20..=1 << 40).contains(&bytes.0),
    trade_off "A longer log means fewer small flushes, but a longer recovery.",
    takes_effect "when the database is opened";

    /// How much of the log is kept for followers of changes after its writes have been flushed. Each flush
    /// then syncs the log. The changes begin with the opening that sets the option. Cannot be combined
    /// with `delete_persistence`, because the log keeps deleted values.
    keep_changes: KeepChanges as KeepChanges = KeepChanges::NONE,
    accepts "`none`, at least 1MiB such as `10GiB`, at least 1s such as `24h`, or both such as `24h,10GiB`" where |keep| keep.is_valid(),
    trade_off "Readers of changes may fall behind further, but the log takes more space.",
    takes_effect "when the database is opened";
}

fn default_design() -> Design {
    // A test of the catalogue checks that the default exists.
    catalogue::find(catalogue::DEFAULT).map_or_else(
        || Design::new(terrane_policy::Eagerness::OneLeveling),
        |entry| (entry.design)(),
    )
}

/// A quarter of the files that the process may open; the rest is for the application. The common limit
/// of 1,024 gives 256 files, which is 8 GiB of tables of 32 MiB.
fn default_open_files() -> usize {
    process_files_max().map_or(1000, |max| (max / 4).clamp(1, 1000))
}

/// Returns the number of files that the process may open, if there is a limit.
#[cfg(all(unix, not(miri)))]
fn process_files_max() -> Option<usize> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current?;
    usize::try_from(limit).ok()
}

#[cfg(not(all(unix, not(miri))))]
fn process_files_max() -> Option<usize> {
    None
}

/// Half of the processors; the other half is for the application.
fn default_compaction_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |count| (count.get() / 2).clamp(1, 8))
}

impl Options {
    /// Returns the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether the database must exist, must not exist, or is created if missing.
    #[must_use]
    pub fn open_mode(mut self, mode: OpenMode) -> Self {
        self.open_mode = mode;
        self
    }

    /// Opens files as a power failure may have left them, although the machine has run without
    /// interruption since they were written: a snapshot of a volume, or a copy by reflinks, taken while
    /// the database was in use and opened on the same machine.
    ///
    /// A damaged record at the end of the log is either the result of a power failure, which loses
    /// unsynced writes, or damage. Unless the machine was restarted in between, opening treats it as
    /// damage if valid records follow. With this option it drops these records, as after a restart, and
    /// the synced writes before them remain. Damage of synced records is still refused. The option is not
    /// stored, and is no longer needed once the files have been opened for writing with it.
    #[must_use]
    pub fn after_power_loss(mut self) -> Self {
        self.components.is_after_power_loss = true;
        self
    }

    /// Sets the storage, instead of the file system of the operating system.
    #[must_use]
    pub fn storage(mut self, storage: Arc<dyn Storage>) -> Self {
        self.components.storage = storage;
        self
    }

    /// Sets the clock, instead of the operating system's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.components.clock = clock;
        self
    }

    /// Sets who runs flushes and compactions.
    #[must_use]
    pub fn background(mut self, background: Background) -> Self {
        self.components.background = background;
        self
    }

    /// Sets a listener for all events: flushes and compactions with their reasons, design changes,
    /// stalls, background errors; see [`Event`](crate::Event).
    ///
    /// The listener runs in the thread that emits the event, which waits for it, so it must not
    /// block. It may use the database: it may read, write, take snapshots, change designs and drop
    /// handles. Its writes are neither delayed nor stopped, whatever the design says. Calls that wait
    /// for background work, such as [`Db::flush`](crate::Db::flush) and
    /// [`Db::close`](crate::Db::close), fail with [`Invalid`](crate::ErrorKind::Invalid). A listener
    /// that keeps a [`Db`](crate::Db) keeps the database open. Closing a database, or dropping its last
    /// handle, waits for running listeners: do neither while holding a lock that the listener takes.
    ///
    /// Several threads may call the listener concurrently, and events may arrive out of order. If it
    /// panics, it is not called again.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let (send, events) = std::sync::mpsc::channel();
    /// let options = terrane::Options::new().on_event(move |event| {
    ///     let _ = send.send(event.clone());
    /// });
    /// let db = options.open(dir.path())?;
    /// db.put("key", "value")?;
    /// db.flush()?;
    /// println!("{}", events.recv().unwrap().event);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn on_event(mut self, listener: impl Fn(&LoggedEvent) + Send + Sync + 'static) -> Self {
        self.components.listener = Some(Listener::new(listener));
        self
    }

    /// Returns the directory of the log that was set, if any.
    pub(crate) fn given_log_dir(&self) -> Option<&LogDir> {
        self.log_dir.as_ref()
    }

    /// Returns these options, with the stored values of options that were not set.
    pub(crate) fn or_stored<'a>(
        &self,
        stored: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Result<Self> {
        let mut merged = Self { components: self.components.clone(), ..Self::default() };
        merged.open_mode = self.open_mode;
        for (name, value) in stored {
            // Options that this version no longer knows are ignored.
            let _ = merged.set(name, value);
        }
        for (name, value) in self.given() {
            merged.set(name, &value)?;
        }
        Ok(merged)
    }
}

fn parse<T: FromStr>(name: &'static str, value: &str, accepted: &str) -> Result<T> {
    value.parse().map_err(|_| Error::invalid(name, format!("'{value}'"), accepted))
}
