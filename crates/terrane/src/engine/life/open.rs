//! From a directory to a running database.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use arc_swap::ArcSwap;
use terrane_memtable::{Padded, Pool};
use terrane_policy::TableId;

use crate::cache::BlockCache;
use crate::engine::catalog::files::{LOCK, check_tables, discard_table};
use crate::engine::catalog::history::Remembered;
use crate::engine::jobs::gate::Gate;
use crate::engine::jobs::workers::Work;
use crate::engine::pipeline::commit_queue::{CommitQueue, Entrance};
use crate::engine::pipeline::snapshots::Snapshots;
use crate::engine::read::pool::ReadPool;
use crate::engine::tree::{Buffer, Tree};
use crate::engine::write::queue::WriteQueue;
use crate::engine::{Engine, Health, Trees, Writer};
use crate::error::{Error, IoFailure, Result};
use crate::event::EventLog;
use crate::manifest::{
    self, Change, FileManifest, KeyspaceState, Manifest, ManifestState, RecoveredState,
};
use crate::memory::MemoryLedger;
use crate::options::{OpenMode, Options, ReadMode, Settings};
use crate::stats::Counters;
use crate::storage::{Access, Lock, Storage};
use crate::table::{ReadPath, Table, TableEnvironment};
use crate::types::{DEFAULT_KEYSPACE, KeyspaceId};
use crate::version::Version;
use crate::wal::{LogSync, Recovery};

/// The name of the keyspace that every database has.
pub(crate) const DEFAULT_NAME: &str = "default";

/// How many databases this process has opened.
static OPENINGS: AtomicU64 = AtomicU64::new(0);

/// What was found when a database was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Opened {
    /// Whether the database was made just now.
    pub(crate) is_new: bool,
    /// Writes that were read back from the log.
    pub(crate) replayed_batches: u64,
    /// Records of the log that survived a loss of power and could not be kept, as earlier ones
    /// did not survive.
    pub(crate) dropped_records: u64,
    /// Damaged places of the manifest that were mended from their copies.
    pub(crate) healed: u64,
}

/// How often a reader looks again while a writer changes the files under it.
const READ_ONLY_TRIES: u32 = 10;

impl Engine {
    /// Opens a database for writing, or makes one.
    pub(crate) fn open(options: &Options, dir: &Path) -> Result<(Arc<Self>, Opened)> {
        // Those that are given are refused before anything is made for them.
        options.settings()?;
        let storage = Arc::clone(&options.components.storage);
        if options.open_mode == OpenMode::MustExist {
            check_there(&*storage, dir)?;
        } else {
            storage.create_dir_all(dir).map_err(|error| Error::io("create", dir, error))?;
        }
        let lock = take_lock(&*storage, dir)?;
        let loaded = manifest::load(&*storage, dir)?;
        let is_new = loaded.edits.is_empty();
        check_mode(options.open_mode, is_new, dir)?;
        if let Some(parent) = dir.parent().filter(|parent| is_new && !parent.as_os_str().is_empty())
        {
            // The name of the directory; not all parents can be synced, nor need be.
            let _ = storage.sync_dir(parent);
        }
        let found = manifest::replay(&loaded, dir)?;
        let settings = settings(options, &found.state, is_new)?;
        check_tables(&*storage, dir, &found.state)?;
        let database = if is_new { storage.entropy() | 1 } else { found.state.database };
        let recovery = Recovery::open(&*storage, dir, database)?;
        check_version(&recovery, &found, dir)?;
        let changes = if is_new { first_changes(database, &settings) } else { vec![] };
        let changes = changes.into_iter().chain(option_changes(options)).collect::<Vec<_>>();
        let mut opened = Opened { is_new, healed: found.healed, ..Opened::default() };
        let store = FileManifest::new(Arc::clone(&storage), dir, found.version)?;
        let manifest = Manifest::begin(found, &changes, Box::new(store))?;
        let state = manifest.state().clone();
        let engine = Self::assemble(options, settings, dir, &state, Some(manifest), Some(lock))?;
        engine.note_designs();
        let engine = Arc::new(engine);
        let unused = engine.recover(recovery, &mut opened)?;
        engine.remove_unneeded(&unused)?;
        // Threads that did start would keep the directory for ever.
        engine.start_threads().inspect_err(|_| engine.abandon_database())?;
        engine.work.wake();
        Ok((engine, opened))
    }

    /// Opens a database to be read, also while another process writes it. What is read is the
    /// state at the time of opening.
    pub(crate) fn open_read_only(options: &Options, dir: &Path) -> Result<(Arc<Self>, Opened)> {
        let mut tries = 1;
        loop {
            match Self::try_open_read_only(options, dir) {
                // A writer may have replaced what was about to be read.
                Err(Error::Corruption(_) | Error::Io(_)) if tries < READ_ONLY_TRIES => tries += 1,
                other => return other,
            }
            std::thread::sleep(std::time::Duration::from_millis(u64::from(tries)));
        }
    }

    fn try_open_read_only(options: &Options, dir: &Path) -> Result<(Arc<Self>, Opened)> {
        let storage = &*options.components.storage;
        let loaded = manifest::load(storage, dir).map_err(|error| match error {
            Error::Io(failure) if is_missing(&failure, dir) => missing(dir),
            other => other,
        })?;
        check_mode(OpenMode::MustExist, loaded.edits.is_empty(), dir)?;
        let found = manifest::replay(&loaded, dir)?;
        let settings = settings(options, &found.state, false)?;
        let mut opened = Opened { healed: found.healed, ..Opened::default() };
        let engine = Self::assemble(options, settings, dir, &found.state, None, None)?;
        // Tables are opened now, while their files are there.
        for tree in engine.trees().values() {
            for table in tree.state().version.tables().values() {
                table.properties()?;
            }
        }
        engine.recover_read_only(&found, &mut opened)?;
        engine.health.make_read_only();
        Ok((Arc::new(engine), opened))
    }

    fn assemble(
        options: &Options,
        settings: Settings,
        dir: &Path,
        state: &ManifestState,
        manifest: Option<Manifest>,
        lock: Option<Box<dyn Lock>>,
    ) -> Result<Self> {
        let components = options.components.clone();
        let counters = Arc::new(Counters::default());
        let events = EventLog::new(Arc::clone(&components.clock), components.listener);
        let events = Arc::new(events);
        let ledger = Arc::new(MemoryLedger::default());
        let budget = settings.memory_budget_bytes();
        let tables = Arc::new(TableEnvironment {
            storage: Arc::clone(&components.storage),
            read_path: read_path(settings.read_mode),
            cache: BlockCache::new(budget / 2),
            ledger: Arc::clone(&ledger),
            counters: Arc::clone(&counters),
            clock: Arc::clone(&components.clock),
            counts_accesses: std::sync::atomic::AtomicBool::new(false),
            discard: discard_table,
            not_removed: Mutex::default(),
        });
        let pool = Pool::new(usize::try_from(budget / 4).unwrap_or(usize::MAX));
        let open = |(id, keyspace): (&KeyspaceId, &Arc<KeyspaceState>)| {
            (*id, open_tree(*id, keyspace, dir, &tables, &pool))
        };
        let trees: Trees = state.keyspaces.iter().map(open).collect();
        let read_pool = match settings.read_threads {
            0 => None,
            count => {
                let pool = ReadPool::start(count);
                Some(pool.map_err(|error| Error::io("start a thread for", dir, error))?)
            }
        };
        Ok(Self {
            remembered: Remembered::new(&state.operations, components.clock.now_micros()),
            number: OPENINGS.fetch_add(1, Ordering::Relaxed),
            dir: dir.to_owned(),
            writer_id: components.storage.entropy(),
            background: components.background,
            storage: components.storage,
            clock: components.clock,
            gate: Gate::new(settings.compaction_threads, settings.io_budget, Arc::clone(&counters)),
            log_sync: Arc::new(LogSync::new(Arc::clone(&counters))),
            counters,
            ledger,
            tables,
            health: Health::new(Arc::clone(&events)),
            events,
            snapshots: Snapshots::default(),
            pool,
            trees: ArcSwap::from_pointee(trees),
            writer: Padded(Mutex::new(Writer {
                log: None,
                next_seq: state.last_seq + 1,
                entrance: Entrance::default(),
                uncounted_bytes: 0,
            })),
            room: Condvar::new(),
            commits: CommitQueue::new(state.last_seq),
            write_queue: WriteQueue::default(),
            manifest: Mutex::new(manifest),
            work: Work::default(),
            drains: crate::engine::jobs::drain::DrainSignal::default(),
            read_pool,
            doubtful: Mutex::default(),
            lock: Mutex::new(lock),
            settings,
        })
    }
}

fn take_lock(storage: &dyn Storage, dir: &Path) -> Result<Box<dyn Lock>> {
    let path = dir.join(LOCK);
    storage.lock(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            Error::Locked { path: dir.into(), holder: error.to_string().into() }
        }
        std::io::ErrorKind::NotFound => missing(dir),
        _ => Error::io("lock", &path, error),
    })
}

/// Refuses a manifest that has lost edits of which the log says that they were durable.
fn check_version(recovery: &Recovery, found: &RecoveredState, dir: &Path) -> Result<()> {
    let noted = recovery.manifest_version();
    if noted <= found.version {
        return Ok(());
    }
    let detail =
        format!("it ends at version {}, and the log knows of version {noted}", found.version);
    Err(Error::corruption(dir, None, "manifest", detail))
}

fn is_missing(failure: &IoFailure, dir: &Path) -> bool {
    failure.path == dir && failure.source.kind() == std::io::ErrorKind::NotFound
}

fn missing(dir: &Path) -> Error {
    Error::NoDatabase { path: dir.into() }
}

/// Refuses a directory without a database before anything is left in it.
fn check_there(storage: &dyn Storage, dir: &Path) -> Result<()> {
    let names = storage.list(dir).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => missing(dir),
        _ => Error::io("list", dir, error),
    })?;
    // Where someone has a lock file already, it is looked at with the lock.
    if names.iter().any(|name| name == LOCK) {
        return Ok(());
    }
    check_mode(OpenMode::MustExist, manifest::load(storage, dir)?.edits.is_empty(), dir)
}

fn check_mode(mode: OpenMode, is_new: bool, dir: &Path) -> Result<()> {
    match mode {
        OpenMode::MustExist if is_new => Err(missing(dir)),
        OpenMode::MustBeNew if !is_new => Err(Error::DatabaseExists { path: dir.into() }),
        _ => Ok(()),
    }
}

/// All options with their values. A design that differs from the stored one is refused.
fn settings(options: &Options, state: &ManifestState, is_new: bool) -> Result<Settings> {
    let mut settings = options.or_stored(&state.options)?.settings()?;
    if let (false, Some(keyspace)) = (is_new, state.keyspaces.get(&DEFAULT_KEYSPACE)) {
        if let Some(asked) = options.given_design() {
            check_design(DEFAULT_NAME, &keyspace.design, asked)?;
        }
        settings.design = keyspace.design.clone();
    }
    Ok(settings)
}

/// Refuses to open a keyspace with another design than it has.
pub(crate) fn check_design(
    name: &str,
    stored: &terrane_policy::Design,
    asked: &terrane_policy::Design,
) -> Result<()> {
    if stored == asked {
        return Ok(());
    }
    let expected = format!(
        "the one that keyspace '{name}' has: '{stored}'; open it without a design and change it \
         with set_design"
    );
    Err(Error::invalid("design", format!("'{asked}'"), expected))
}

fn first_changes(database: u64, settings: &Settings) -> Vec<Change> {
    vec![
        Change::Database(database),
        Change::NextTable(1),
        Change::NextRun(1),
        Change::Keyspace {
            keyspace: DEFAULT_KEYSPACE,
            name: DEFAULT_NAME.to_owned(),
            design: settings.design.to_string(),
        },
    ]
}

/// Options that were given are kept for the next opening; designs are kept with their keyspaces.
fn option_changes(options: &Options) -> impl Iterator<Item = Change> {
    let given = options.given().into_iter().filter(|(name, _)| *name != "design");
    given.map(|(name, value)| Change::Option { name: name.to_owned(), value })
}

fn read_path(mode: ReadMode) -> ReadPath {
    match mode {
        ReadMode::Mapped => ReadPath::Mapped,
        ReadMode::Cached => ReadPath::Cached(Access::Buffered),
        ReadMode::Direct => ReadPath::Cached(Access::Direct),
    }
}

fn open_tree(
    id: KeyspaceId,
    keyspace: &KeyspaceState,
    dir: &Path,
    environment: &Arc<TableEnvironment>,
    pool: &Arc<Pool>,
) -> Arc<Tree> {
    let open = |record: &manifest::TableRecord| {
        Table::new(record.file, Arc::clone(&record.info), dir, environment)
    };
    let tables: BTreeMap<TableId, Arc<Table>> =
        keyspace.tables.iter().map(|(id, record)| (*id, open(record))).collect();
    let version = Version::new(keyspace.shape.clone(), &tables);
    let design = keyspace.design.clone();
    let memtable = Tree::new_memtable(&design, pool, None);
    let buffer = Buffer::new(memtable, keyspace.flushed);
    let tree = Tree::new(id, &keyspace.name, design, version, buffer);
    tree.set_design_before(keyspace.design_before.clone());
    tree
}

/// The state that a reader found; it takes no part in giving out numbers.
pub(crate) fn log_required(found: &RecoveredState) -> u64 {
    found.state.required_segment
}
