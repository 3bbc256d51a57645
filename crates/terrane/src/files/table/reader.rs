//! A table of a version of the tree: its identity, its lifecycle, and its read counts.
//!
//! A table is opened when it is first read (`open_table`), read block by block (`blocks`), and
//! searched (`lookup`). Its file is removed when the last user drops an obsolete table.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use terrane_memtable::Fragment;
use terrane_policy::TableInfo;

use super::open_files::OpenFiles;
use super::open_table::OpenTable;
use super::properties::Properties;
use super::scan_lengths::ScanLengths;
use super::slots::WarmSlots;
use super::stored::TableFileId;
use crate::base::clock::{Clock, SystemClock};
use crate::base::error::{Error, Result};
use crate::base::fork::Owner;
use crate::base::memory_ledger::MemoryLedger;
use crate::base::stats::{Counter, Counters};
use crate::files::buffer::{BlockMut, BufferPool};
use crate::files::hot_records::HotRecords;
use crate::files::io_rings::IoRings;
use crate::files::io_threads::IoThreads;
use crate::files::storage::{Access, OpeningReaders, Storage};

/// The state that all tables of a database share.
#[derive(Debug)]
pub(crate) struct TableEnvironment {
    /// The process that opened the database.
    pub(crate) owner: Owner,
    pub(crate) storage: Arc<dyn Storage>,
    /// How files are read: through the page cache, or bypassing it.
    pub(crate) access: Access,
    /// The blocks in memory.
    pub(crate) buffer: BufferPool,
    /// Entries in memory without their blocks. They take a part of the buffer pool.
    pub(crate) hot_records: HotRecords,
    /// Blocks of new tables that are not open yet.
    pub(crate) warm: WarmSlots,
    /// Threads that read on behalf of readers of tables.
    pub(crate) io_threads: IoThreads,
    /// Begins reads of several blocks together.
    pub(crate) io_rings: IoRings,
    /// The files that are open.
    pub(crate) open_files: Arc<OpenFiles>,
    pub(crate) ledger: Arc<MemoryLedger>,
    /// Scans read ahead only while blocks outside of the buffer pool take less than this.
    pub(crate) standalone_bytes_max: usize,
    pub(crate) counters: Arc<Counters>,
    /// The clock for the times of lookups.
    pub(crate) clock: Arc<dyn Clock>,
    /// True if tables count lookups, which only some designs need.
    pub(crate) counts_accesses: AtomicBool,
    /// Removes the files of obsolete tables.
    pub(crate) discard: fn(&TableEnvironment, &Path),
    /// Obsolete files whose removal failed or was postponed.
    pub(crate) not_removed: Mutex<Vec<PathBuf>>,
    /// Readers in other processes that may need obsolete files.
    pub(crate) opening_readers: OpeningReaders,
    /// The last damage that was found in a file.
    pub(crate) damage: Mutex<Option<Error>>,
}

impl TableEnvironment {
    /// Allocates a block of `len` bytes with arbitrary contents.
    pub(crate) fn allocate(&self, len: usize) -> BlockMut {
        self.with_page_ahead(self.buffer.allocate(len))
    }

    /// Allocates a block that need not be cached; see [`BufferPool::allocate_at_once`].
    pub(crate) fn allocate_at_once(&self, len: usize) -> BlockMut {
        let block = match self.io_threads.may_start() {
            true => self.buffer.allocate_at_once(len),
            false => self.buffer.allocate(len),
        };
        self.with_page_ahead(block)
    }

    #[inline]
    fn with_page_ahead(&self, block: BlockMut) -> BlockMut {
        if let Some(work) = self.buffer.work_ahead() {
            self.io_threads.run(work);
        }
        block
    }

    /// Counts the damage that a read found, and keeps it for reports.
    pub(crate) fn noting_damage<T>(&self, read: Result<T>) -> Result<T> {
        read.inspect_err(|error| {
            if matches!(error, Error::Corruption(_)) {
                self.counters.add(Counter::DamagedReads, 1);
                *self.damage.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
            }
        })
    }

    /// Returns the last damage that was found.
    pub(crate) fn last_damage(&self) -> Option<Error> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns an environment without a database: it has no limit on open files and no other
    /// threads, and keeps obsolete files.
    pub(crate) fn alone(storage: Arc<dyn Storage>, access: Access, buffer: BufferPool) -> Self {
        Self {
            owner: Owner::this_process(),
            storage,
            access,
            buffer,
            hot_records: HotRecords::new(0),
            warm: WarmSlots::default(),
            io_threads: IoThreads::new(0),
            io_rings: IoRings::none(),
            open_files: OpenFiles::new(None),
            ledger: Arc::default(),
            standalone_bytes_max: usize::MAX,
            counters: Arc::default(),
            clock: Arc::new(SystemClock),
            counts_accesses: AtomicBool::new(false),
            discard: |_, _| {},
            not_removed: Mutex::default(),
            opening_readers: OpeningReaders::default(),
            damage: Mutex::default(),
        }
    }

    /// Returns how much more blocks outside of the buffer pool may take.
    pub(super) fn standalone_room(&self) -> u64 {
        self.standalone_bytes_max.saturating_sub(self.buffer.standalone_bytes()) as u64
    }

    /// Takes the memory of open tables from the buffer pool once it reaches a sixty-fourth of the
    /// pool. Writes and jobs redistribute memory as well, but a program that only reads has
    /// neither.
    pub(super) fn make_room_for_tables(&self) {
        let ledger = &*self.ledger;
        // Relaxed: no other memory access depends on the sums. Two threads may both take the memory,
        // until it is redistributed.
        let open = ledger.tables.load(Ordering::Relaxed);
        let more = open.saturating_sub(ledger.tables_counted.load(Ordering::Relaxed));
        let capacity = self.buffer.bytes().capacity;
        if more > capacity / 64 {
            ledger.tables_counted.store(open, Ordering::Relaxed);
            let least = ledger.pool_bytes_min.load(Ordering::Relaxed).min(capacity);
            self.set_cache_bytes(capacity.saturating_sub(more).max(least) as u64);
        }
    }

    /// Sets what blocks and hot records may take together.
    pub(crate) fn set_cache_bytes(&self, bytes: u64) {
        self.hot_records.set_capacity(&self.buffer, bytes);
    }
}

/// The file of a table, and the environment that reads it.
pub(super) struct TableFile {
    pub(super) id: TableFileId,
    pub(super) path: PathBuf,
    pub(super) size_bytes: u64,
    pub(super) environment: Arc<TableEnvironment>,
    /// The level of the table, for counters.
    level: AtomicU8,
    /// The lengths of the scans of the tree, from the first version on that has the table.
    scan_lengths: OnceLock<Arc<ScanLengths>>,
}

impl TableFile {
    #[inline]
    pub(super) fn level(&self) -> u8 {
        self.level.load(Ordering::Relaxed)
    }

    /// The lengths of scans of the tree, or of the table alone if it is in no tree.
    pub(super) fn scan_lengths(&self) -> &Arc<ScanLengths> {
        self.scan_lengths.get_or_init(Arc::default)
    }
}

/// A table of a version.
pub(crate) struct Table {
    pub(super) file: TableFile,
    info: Arc<TableInfo>,
    opened: OnceLock<OpenTable>,
    is_obsolete: AtomicBool,
    /// The number of lookups and the time of the last one, if lookups are counted.
    reads: AtomicU64,
    last_read_micros: AtomicU64,
}

impl Table {
    /// Creates a table in the directory `dir`. Its file is opened on first use.
    pub(crate) fn new(
        id: TableFileId,
        info: Arc<TableInfo>,
        dir: &Path,
        environment: &Arc<TableEnvironment>,
    ) -> Arc<Self> {
        Self::at(id, info, dir.join(id.file_name()), environment)
    }

    /// Creates a table whose file may have any name.
    pub(crate) fn at(
        id: TableFileId,
        info: Arc<TableInfo>,
        path: PathBuf,
        environment: &Arc<TableEnvironment>,
    ) -> Arc<Self> {
        let environment = Arc::clone(environment);
        let size_bytes = info.size_bytes;
        Arc::new(Self {
            file: TableFile {
                id,
                path,
                size_bytes,
                environment,
                level: AtomicU8::new(0),
                scan_lengths: OnceLock::new(),
            },
            info,
            opened: OnceLock::new(),
            is_obsolete: AtomicBool::new(false),
            reads: AtomicU64::new(0),
            last_read_micros: AtomicU64::new(0),
        })
    }

    pub(crate) fn id(&self) -> TableFileId {
        self.file.id
    }

    pub(crate) fn info(&self) -> &Arc<TableInfo> {
        &self.info
    }

    pub(crate) fn path(&self) -> &Path {
        &self.file.path
    }

    /// Sets the level of the table in its tree, and the lengths of the scans of the tree.
    pub(crate) fn enter(&self, level: usize, scan_lengths: &Arc<ScanLengths>) {
        self.file.scan_lengths.get_or_init(|| Arc::clone(scan_lengths));
        // Relaxed: a concurrent read may be counted for either level.
        self.file.level.store(u8::try_from(level).unwrap_or(u8::MAX), Ordering::Relaxed);
    }

    /// Marks the file for removal when the last user drops the table.
    pub(crate) fn make_obsolete(&self) {
        // `drop` reads the flag through its exclusive access, not with an atomic load. The
        // reference count of the `Arc` orders this store before that read, because the caller holds
        // a reference.
        self.is_obsolete.store(true, Ordering::Release);
    }

    /// Returns the lookups counted so far.
    pub(crate) fn access(&self) -> terrane_policy::TableAccess {
        terrane_policy::TableAccess {
            reads: self.reads.load(Ordering::Relaxed),
            last_micros: self.last_read_micros.load(Ordering::Relaxed),
        }
    }

    /// Counts a lookup if some design needs the count. Otherwise threads avoid contending for the
    /// count's cache line.
    #[inline]
    pub(super) fn note_read(&self) {
        // Relaxed: a stale value affects which compaction is picked, but never a result.
        if self.file.environment.counts_accesses.load(Ordering::Relaxed) {
            self.count_read();
        }
    }

    #[cold]
    fn count_read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let now = self.file.environment.clock.now_micros();
        self.last_read_micros.fetch_max(now, Ordering::Relaxed);
    }

    /// Returns the open table. Opens the file on first use.
    pub(super) fn opened(&self) -> Result<&OpenTable> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let opened = self.file.environment.noting_damage(self.file.open())?;
        Ok(self.opened.get_or_init(|| opened))
    }

    /// Returns the open table; `None` if it has not been opened yet.
    pub(super) fn opened_already(&self) -> Option<&OpenTable> {
        self.opened.get()
    }

    /// Returns true if the table is known to have no filter.
    pub(super) fn has_no_filter(&self) -> bool {
        self.opened_already().is_some_and(|opened| opened.footer.filter.is_none())
    }

    /// Returns the properties of the table.
    pub(crate) fn properties(&self) -> Result<&Properties> {
        Ok(&self.opened()?.properties)
    }

    /// Returns the range tombstones of the table.
    pub(crate) fn fragments(&self) -> Result<&Arc<[Fragment]>> {
        Ok(&self.opened()?.fragments)
    }

    /// Returns the number of data blocks.
    pub(crate) fn block_count(&self) -> Result<usize> {
        Ok(self.opened()?.index.len())
    }

    /// Returns the length of the filter (0 if there is no filter) and the length of the index.
    pub(crate) fn filter_and_index_bytes(&self) -> Result<(u64, u64)> {
        let footer = &self.opened()?.footer;
        Ok((u64::from(footer.filter.len), u64::from(footer.index.len)))
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if *self.is_obsolete.get_mut() {
            let TableFile { path, environment, .. } = &self.file;
            (environment.discard)(environment, path);
        }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({})", self.info)
    }
}
