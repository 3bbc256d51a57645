//! An open database: its parts, assembled from the manifest and the options.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use terrane_policy::TableId;

use crate::base::error::Result;
use crate::base::event::{Event, EventLog};
use crate::base::fork::Owner;
use crate::base::memory_ledger::MemoryLedger;
use crate::base::shared_map::SharedMap;
use crate::base::stats::Counters;
use crate::base::types::{KeyspaceId, Lsn};
use crate::engine::catalog::{Catalog, Trees, discard_table};
use crate::engine::context::{
    Context, DiskReserve, Health, JobMemory, MemoryPlan, MemoryPressure, MemtableMemory, Signals,
};
use crate::engine::jobs::Jobs;
use crate::engine::pipeline::Pipeline;
use crate::engine::read::Reader;
use crate::engine::tree::{ActiveMemtable, Tree};
use crate::engine::version::Version;
use crate::engine::write::Writer;
use crate::files::buffer::BufferPool;
use crate::files::hot_records::HotRecords;
use crate::files::io_rings::IoRings;
use crate::files::io_threads::IoThreads;
use crate::files::manifest::{
    KeyspaceState, Manifest, ManifestState, RecoveredState, TableRecord, ValueFileRecord,
};
use crate::files::shared_read::READERS;
use crate::files::storage::{DirectoryLock, OpeningReaders, Storage};
use crate::files::table::{OpenFiles, Table, TableEnvironment, WarmSlots};
use crate::files::value_file::{ValueFile, ValueFiles};
use crate::files::wal::Replayed;
use crate::options::{Background, MemoryLimit, Options, Settings, smallest_limit};

/// The number of databases that this process has opened.
static OPENINGS: AtomicU64 = AtomicU64::new(0);

/// The maximum number of threads that read blocks for readers. Devices serve about this many queued
/// reads concurrently, and more threads would wait for a processor.
const IO_THREADS_MAX: usize = 16;

/// What opening a database found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Opened {
    /// Whether the database was created by this opening.
    pub(crate) is_new: bool,
    /// The number of writes that were replayed from the log.
    pub(crate) replayed_batches: u64,
    /// The number of log records that survived a power failure but were dropped, because earlier
    /// records did not survive it.
    pub(crate) dropped_records: u64,
    /// The number of damaged frames of the manifest whose copies were intact.
    pub(crate) healed: u64,
    /// The earliest position for readers of changes, if the previous opening kept the log for them.
    pub(crate) retained_from: Option<Lsn>,
}

/// What an opening for reading has read.
#[derive(Debug)]
pub(super) struct OpenedFiles {
    pub(super) found: RecoveredState,
    pub(super) replayed: Replayed,
}

/// The directories of a database.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'a> {
    /// A view of the storage in which both are held.
    pub(super) storage: &'a Arc<dyn Storage>,
    pub(super) dir: &'a Path,
    /// The log directory, which may be the same.
    pub(super) log_dir: &'a Path,
}

/// An open database. Callers use its parts; methods exist only for operations that need several
/// parts or must not run in an event listener.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) context: Arc<Context>,
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) reader: Reader,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) writer: Writer,
    /// The lock of the directory, until the database is closed.
    pub(super) lock: Mutex<Option<DirectoryLock>>,
    /// Held by the caller that closes the database.
    pub(super) closing: Mutex<()>,
    /// The files of an opening for reading; `None` if the database is open for writing.
    pub(super) opened_files: Option<OpenedFiles>,
}

impl Engine {
    /// Assembles a database that accepts no writes yet and has no threads other than I/O threads.
    pub(super) fn assemble(
        options: &Options,
        settings: Settings,
        places: Places<'_>,
        state: &ManifestState,
        manifest: Option<Manifest>,
        lock: Option<DirectoryLock>,
    ) -> Result<Self> {
        let readers = match &lock {
            Some(_) => opening_readers(&**places.storage, &settings, places.dir),
            None => OpeningReaders::default(),
        };
        // In a read-only opening, files stay open, because another process may remove them and they
        // could then not be reopened.
        let open_files_max = manifest.is_some().then(|| settings.open_files_max());
        let context = Arc::new(context(options, settings, places, readers, open_files_max));
        report_large_budget(&context);
        let open =
            |(id, keyspace): (&KeyspaceId, &Arc<KeyspaceState>)| open_tree(*id, keyspace, &context);
        let trees = state.keyspaces.iter().map(open).collect::<Result<Trees>>()?;
        let pipeline = Arc::new(Pipeline::new(&context, state.last_seq));
        let catalog = Arc::new(Catalog::new(&context, &pipeline, trees, state, manifest));
        let reader = Reader::new(&context, &pipeline);
        let jobs = Jobs::new(&context, &pipeline, &catalog);
        let writer = Writer::new(&context, &pipeline, &catalog, &jobs);
        let (lock, closing, opened_files) = (Mutex::new(lock), Mutex::default(), None);
        Ok(Self { context, pipeline, catalog, reader, jobs, writer, lock, closing, opened_files })
    }
}

/// Emits an event if the memory budget exceeds what the operating system allows the process.
fn report_large_budget(context: &Context) {
    let budget_bytes = context.settings.memory_budget_bytes();
    if let Some(MemoryLimit { bytes: limit_bytes, source: limit }) = smallest_limit()
        && budget_bytes > limit_bytes
    {
        context.events.emit(Event::MemoryBudgetTooLarge { budget_bytes, limit_bytes, limit });
    }
}

/// Returns the readers for which this opening keeps files.
fn opening_readers(storage: &dyn Storage, settings: &Settings, dir: &Path) -> OpeningReaders {
    // The deadline for removing deleted data does not wait for readers.
    if settings.delete_persistence_micros().is_some() {
        return OpeningReaders::default();
    }
    // Opening continues after a failure: without the file, readers only need more attempts.
    OpeningReaders::new(storage.probe_lock(&dir.join(READERS)).ok())
}

fn context(
    options: &Options,
    settings: Settings,
    places: Places<'_>,
    opening_readers: OpeningReaders,
    open_files_max: Option<usize>,
) -> Context {
    let components = options.components.clone();
    let counters = Arc::new(Counters::default());
    let events = Arc::new(EventLog::new(Arc::clone(&components.clock), components.listener));
    let ledger = Arc::new(MemoryLedger::default());
    let budget = settings.memory_budget_bytes();
    let plan = MemoryPlan::new(budget, settings.compactions_max(), settings.flush_threads);
    let cache_bytes = (budget / 2).min(settings.cache_bytes_max());
    let tables = Arc::new(TableEnvironment {
        owner: Owner::this_process(),
        storage: Arc::clone(places.storage),
        access: settings.read_mode.access(),
        buffer: BufferPool::new(cache_bytes),
        hot_records: HotRecords::new(cache_bytes),
        warm: WarmSlots::default(),
        io_threads: IoThreads::new(match components.background {
            Background::Inline => 0,
            _ => IO_THREADS_MAX,
        }),
        io_rings: IoRings::default(),
        open_files: OpenFiles::new(open_files_max),
        ledger: Arc::clone(&ledger),
        standalone_bytes_max: plan.scan_bytes,
        counters: Arc::clone(&counters),
        clock: Arc::clone(&components.clock),
        counts_accesses: AtomicBool::new(false),
        discard: discard_table,
        not_removed: Mutex::default(),
        opening_readers,
        damage: Mutex::default(),
    });
    Context {
        log_segments: Arc::default(),
        // Relaxed: only the uniqueness of the number matters.
        number: OPENINGS.fetch_add(1, Ordering::Relaxed),
        dir: places.dir.to_owned(),
        log_dir: places.log_dir.to_owned(),
        background: components.background,
        kept_boot: places.storage.boot_id().filter(|_| !components.is_after_power_loss),
        reserve: DiskReserve::in_dir(places.storage, places.dir)
            .with_background(components.background),
        storage: Arc::clone(places.storage),
        clock: components.clock,
        merge_operators: components.merge_operators,
        compaction_filters: components.compaction_filters,
        counters,
        memtables: MemtableMemory::new(plan),
        compaction_memory: JobMemory::new(plan.compactions, &ledger),
        flush_memory: JobMemory::new(plan.flushes, &ledger),
        ledger,
        tables,
        health: Health::new(Arc::clone(&events)),
        events,
        memory_plan: plan,
        memory_pressure: MemoryPressure::default(),
        signals: Signals::default(),
        attention: Arc::default(),
        settings,
    }
}

/// # Errors
/// The operator of the keyspace is not registered.
fn open_tree(id: KeyspaceId, keyspace: &KeyspaceState, context: &Context) -> Result<Arc<Tree>> {
    let open = |record: &TableRecord| {
        Table::new(record.file, Arc::clone(&record.info), &context.dir, &context.tables)
    };
    let tables: SharedMap<TableId, Arc<Table>> =
        keyspace.tables.iter().map(|(id, record)| (*id, open(record))).collect();
    let version = Version::new(keyspace.shape.clone(), tables, open_values(keyspace, context));
    let design = keyspace.design.clone();
    let active = ActiveMemtable::first(&design, &context.memtables, keyspace.flushed, None);
    let attention = Arc::clone(&context.attention);
    let tree = Tree::new(id, &keyspace.name, design, version, active, attention);
    tree.default_ttl().set(keyspace.ttl_micros);
    if let Some(operator) = &keyspace.merge_operator {
        let operator = context.merge_operators.find(operator, &keyspace.name)?;
        tree.functions.merge_operator().get_or_init(|| operator);
    }
    let filter = keyspace.compaction_filter.as_deref();
    tree.functions.set_compaction_filter(filter.map(|name| context.compaction_filters.find(name)));
    tree.set_design_before(keyspace.design_before.clone());
    Ok(tree)
}

fn open_values(keyspace: &KeyspaceState, context: &Context) -> ValueFiles {
    let Context { dir, tables: environment, .. } = context;
    let open = |file: &ValueFileRecord| {
        (file.name.number, ValueFile::new(file.name, file.size_bytes, dir, environment))
    };
    ValueFiles::new(dir, keyspace.value_files.values().map(open).collect())
}
