//! From a directory to a running database.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_policy::ValueFileState;

use super::assembly::{Engine, Opened, Places};
use super::foreign_files;
use super::log_home::{self, LogHome};
use crate::base::error::{Error, IoFailure, Result};
use crate::base::event::{Event, EventLog};
use crate::base::types::{DEFAULT_KEYSPACE, KeyspaceId, Lsn};
use crate::engine::catalog::{DEFAULT_NAME, LOCK, LONG_MANIFEST_BYTES, check_design};
use crate::engine::context::DiskReserve;
use crate::engine::jobs::report_inactive_filter;
use crate::engine::pipeline::report_map_refusal;
use crate::files::consistency;
use crate::files::manifest::{
    self, Change, FileManifest, Manifest, ManifestState, RecoveredState, ValueFileRecord,
};
use crate::files::storage::{DirectoryLock, HeldDir, Lock, Storage, hold_dir, sync_ancestors};
use crate::files::table::check_compression;
use crate::files::wal::{LogNotes, Recovery};
use crate::options::{KeepChanges, OpenMode, OptionInfo, Options, RequestedDesign, Settings};

/// A placeholder for the position at which readers of changes begin, until the log is replayed.
const UNKNOWN: Lsn = Lsn(u64::MAX);

/// Opens a database for writing, or creates one.
pub(crate) fn open(options: &Options, dir: &Path) -> Result<(Engine, Opened)> {
    // Validates the given options before anything is created.
    let options_of_new = options.of_new()?;
    options_of_new.settings()?.check_together()?;
    prepare_dir(options, dir)?;
    let HeldDir { path: dir, storage } = hold(&options.components.storage, dir)?;
    let dir = &*dir;
    let lock = take_lock(&*storage, dir)?;
    let loaded = manifest::load(&*storage, dir)?;
    let is_new = loaded.edits.is_empty();
    check_mode(options.open_mode, is_new, dir)?;
    let options = if is_new { &options_of_new } else { options };
    if is_new {
        manifest::remove_interrupted_creation(&*storage, dir);
        // Synced before the manifest exists, because a later opening cannot detect a missing sync.
        sync_ancestors(&*storage, dir)?;
    } else {
        remove_checkpoint_mark(&*storage, dir)?;
    }
    let found = manifest::replay(&loaded, dir)?;
    let (database, log_home) = settle_log(&storage, options, dir, &found.state, is_new)?;
    let storage = log_home.storage;
    let notes = LogNotes::read(&*storage, &log_home.dir)?;
    consistency::check_manifest(&notes, &found, dir)?;
    let settings = settings(options, dir, &found.state, is_new)?;
    consistency::check_files(&*storage, dir, &found.state)?;
    let recovery = Recovery::open(&*storage, &log_home.dir, database)?;
    recovery.check_own()?;
    let lock = DirectoryLock::new([lock].into_iter().chain(log_home.lock).collect());
    let changes = if is_new { first_changes(database, &settings) } else { vec![] };
    let changed_options = if is_new { vec![] } else { changed_options(options, &found.state) };
    let changes = changes.into_iter().chain(option_changes(options));
    let retained_from = retained_from(&found.state);
    let mut opened = Opened { is_new, healed: found.healed, retained_from, ..Opened::default() };
    let begins = settings.keep_changes.is_some() && retained_from.is_none();
    // The position is known once the log is replayed. After a crash before that, the next opening
    // counts as the first one.
    let changes = changes.chain(begins.then_some(Change::ChangesFrom(UNKNOWN)));
    let changes: Vec<Change> = changes.chain(settled_files(&found.state)).collect();
    let (manifest, shortage) = begin_manifest(&storage, dir, &lock, &found, &changes)?;
    let state = manifest.state().clone();
    let places = Places { storage: &storage, dir, log_dir: &log_home.dir };
    let parts = Engine::assemble(options, settings, places, &state, Some(manifest), Some(lock))?;
    parts.catalog.update_access_counting();
    let _ = shortage.map(|error| parts.context.release_reserve(&error));
    let unused = parts.recover(recovery, &mut opened)?;
    parts.catalog.remove_unneeded(&unused)?;
    parts.catalog.fill_reserve(if is_new { LONG_MANIFEST_BYTES } else { 0 });
    // The block cache gets all memory that the replayed entries have left.
    parts.catalog.resize_cache();
    for event in changed_options {
        parts.context.events.emit(event);
    }
    report_unsynced_dirs(&parts.context.events, &*parts.context.storage);
    report_map_refusal(&parts.pipeline);
    for tree in parts.catalog.trees().values() {
        report_inactive_filter(&parts.context, tree);
    }
    if let Some(design) = options.given_design().and_then(RequestedDesign::to_change) {
        let changed = parts.catalog.tree(DEFAULT_KEYSPACE);
        let changed = changed.map_or(Ok(()), |tree| parts.jobs.change_design(&tree, design));
        changed.inspect_err(|_| parts.abandon())?;
    }
    // If only some threads start, they keep the directory locked until they are stopped.
    parts.jobs.start_threads().inspect_err(|_| parts.abandon())?;
    parts.context.signals.wake();
    Ok((parts, opened))
}

/// Makes sure that the directory exists, or refuses it.
fn prepare_dir(options: &Options, dir: &Path) -> Result<()> {
    let storage = &*options.components.storage;
    if options.open_mode == OpenMode::MustExist {
        return check_exists(storage, dir);
    }
    if !options.components.is_among_other_files {
        foreign_files::check(storage, dir)?;
    }
    storage.create_dir_all(dir).map_err(|error| Error::io("create", dir, error))
}

/// Holds the directory of a database, in which the database then stays.
pub(super) fn hold(storage: &Arc<dyn Storage>, dir: &Path) -> Result<HeldDir> {
    hold_dir(storage, dir).map_err(|error| match error.kind() {
        ErrorKind::NotFound => missing(dir),
        _ => Error::io("open", dir, error),
    })
}

/// Begins the manifest of this opening. On a full disk, gives it the space of the disk reserve, and also
/// returns the error of the disk: a database that could not be opened could not be freed of data.
fn begin_manifest(
    storage: &Arc<dyn Storage>,
    dir: &Path,
    lock: &DirectoryLock,
    found: &RecoveredState,
    changes: &[Change],
) -> Result<(Manifest, Option<Error>)> {
    let begin = || {
        let store = FileManifest::new(Arc::clone(storage), dir, found.version)?;
        let store = store.with_lock(lock.clone());
        Manifest::begin(found.clone(), changes, Box::new(store))
    };
    let reserve = DiskReserve::in_dir(storage, dir);
    let mut begun = begin();
    let Some(error) = out_of_space(&begun) else { return Ok((begun?, None)) };
    if reserve.remove() {
        begun = begin();
    }
    if out_of_space(&begun).is_some() && reserve.release_for_manifest() {
        begun = begin();
    }
    Ok((begun?, Some(error)))
}

/// Returns the error if the disk had no space for the manifest.
fn out_of_space(begun: &Result<Manifest>) -> Option<Error> {
    begun.as_ref().err().filter(|error| error.is_out_of_space()).cloned()
}

/// Returns the earliest position for readers of changes, if the previous opening kept the log for
/// them.
fn retained_from(state: &ManifestState) -> Option<Lsn> {
    let kept = state.options.get("keep_changes");
    let is_kept = kept.is_some_and(|kept| *kept != KeepChanges::NONE.to_string());
    Some(state.changes_from).filter(|from| is_kept && *from != UNKNOWN)
}

/// Removes the mark that a complete checkpoint may still have after a crash. If the database later
/// lost its `CURRENT`, the mark would declare it an unfinished checkpoint.
fn remove_checkpoint_mark(storage: &dyn Storage, dir: &Path) -> Result<()> {
    let path = dir.join(manifest::CHECKPOINT);
    let has_mark = storage.len(&path).is_ok();
    if has_mark {
        let sync = || storage.sync_dir(dir).map_err(|error| Error::io("sync", dir, error));
        // `CURRENT` must be durable before the mark is removed.
        sync()?;
        storage.remove(&path).map_err(|error| Error::io("remove", &path, error))?;
        sync()?;
    }
    Ok(())
}

/// Reports directories whose file system does not sync directories.
pub(super) fn report_unsynced_dirs(events: &EventLog, storage: &dyn Storage) {
    for (path, error) in storage.take_unsynced_dirs() {
        events.emit(Event::DirectoryNotSynced { path: path.display().to_string(), error });
    }
}

fn take_lock(storage: &dyn Storage, dir: &Path) -> Result<(PathBuf, Box<dyn Lock>)> {
    log_home::take_lock(storage, dir).map_err(|error| match &error {
        Error::Io(failure) if failure.source.kind() == ErrorKind::NotFound => missing(dir),
        _ => error,
    })
}

/// Returns the database id and the log directory.
fn settle_log(
    storage: &Arc<dyn Storage>,
    options: &Options,
    dir: &Path,
    state: &ManifestState,
    is_new: bool,
) -> Result<(u64, LogHome)> {
    let given = options.given_log_dir();
    if !is_new {
        return Ok((state.database, log_home::settle(storage, dir, state, given)?));
    }
    let begun = log_home::interrupted_creation(&**storage, dir, given)?;
    let database = begun.unwrap_or_else(|| storage.entropy() | 1);
    Ok((database, log_home::create(storage, dir, database, given)?))
}

pub(super) fn is_missing(failure: &IoFailure, dir: &Path) -> bool {
    failure.path == dir && failure.source.kind() == ErrorKind::NotFound
}

pub(super) fn missing(dir: &Path) -> Error {
    Error::NoDatabase { path: dir.into() }
}

/// Refuses a directory without a database before creating any file in it.
fn check_exists(storage: &dyn Storage, dir: &Path) -> Result<()> {
    let names = storage.list(dir).map_err(|error| match error.kind() {
        ErrorKind::NotFound => missing(dir),
        _ => Error::io("list", dir, error),
    })?;
    // If there is a lock file already, the manifest is checked with the lock held.
    if names.iter().any(|name| name == LOCK) {
        return Ok(());
    }
    check_mode(OpenMode::MustExist, manifest::load(storage, dir)?.edits.is_empty(), dir)
}

pub(super) fn check_mode(mode: OpenMode, is_new: bool, dir: &Path) -> Result<()> {
    match mode {
        OpenMode::MustExist if is_new => Err(missing(dir)),
        OpenMode::MustBeNew if !is_new => Err(Error::DatabaseExists { path: dir.into() }),
        _ => Ok(()),
    }
}

/// Returns the values of all options. Refuses a design that differs from the stored one.
pub(super) fn settings(
    options: &Options,
    dir: &Path,
    state: &ManifestState,
    is_new: bool,
) -> Result<Settings> {
    let mut settings = options.or_stored(&state.options)?.settings()?;
    settings.check_together()?;
    if is_new {
        check_compression(&settings.design.value)?;
    }
    if let (false, Some(keyspace)) = (is_new, state.keyspaces.get(&DEFAULT_KEYSPACE)) {
        if let Some(requested) = options.given_design() {
            check_design(dir, DEFAULT_NAME, &keyspace.design, requested)?;
        }
        settings.design = (*keyspace.design).clone().into();
    }
    Ok(settings)
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

/// Returns the changes that settle the log segments used as value files. No flush of this opening
/// adds values to them.
fn settled_files(state: &ManifestState) -> Vec<Change> {
    let files = state.keyspaces.iter().flat_map(|(id, keyspace)| {
        let files = keyspace.value_files.values();
        let open = files.filter(|file| file.info.state != ValueFileState::Settled);
        open.map(|file| (*id, file.clone()))
    });
    let settle = |(keyspace, mut file): (KeyspaceId, ValueFileRecord)| {
        file.settle();
        Change::ValueFile { keyspace, file }
    };
    files.map(settle).collect()
}

/// Returns the events about stored options that the given options change.
fn changed_options(options: &Options, state: &ManifestState) -> Vec<Event> {
    let given: BTreeMap<&str, String> = options.given().into_iter().collect();
    let changed = Options::table().into_iter().filter(|info| is_stored(info.name));
    let changed = changed.filter_map(|OptionInfo { name: option, default, .. }| {
        let before = state.options.get(option).cloned().unwrap_or(default);
        let after = given.get(option).filter(|after| **after != before)?.clone();
        Some(Event::OptionChanged { option, before, after })
    });
    changed.collect()
}

/// Returns true if the manifest stores an option by its name. Designs are stored with their
/// keyspaces, and the log directory in a separate file.
fn is_stored(name: &str) -> bool {
    name != "design" && name != "log_dir"
}

/// Returns the changes that store the given options.
fn option_changes(options: &Options) -> impl Iterator<Item = Change> {
    let given = options.given().into_iter().filter(|(name, _)| is_stored(name));
    given.map(|(name, value)| Change::Option { name: name.to_owned(), value })
}
