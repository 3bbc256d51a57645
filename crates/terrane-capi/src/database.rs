//! Opening and closing a database, its maintenance and its reports.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use terrane::{Db, OpenMode, Options};

use crate::argument::{given, path};
use crate::error::{check, produce, terrane_code, terrane_error};
use crate::keyspace::terrane_keyspace;
use crate::options::terrane_options;
use crate::text::{json, produce_text};

/// An open database. Any thread may use it.
///
/// terrane_close closes it and keeps the handle: later calls on the database and on its keyspaces, snapshots and
/// transactions return TERRANE_CLOSED, and so may calls of other threads that run at that moment. Only
/// terrane_free invalidates the handle. Keyspaces, snapshots, iterators, values and transactions have handles of
/// their own, which stay valid until they are freed, before or after that of the database. Iterators that have
/// a position go on forward after the database was closed, and values stay readable.
#[derive(Debug)]
pub struct terrane_db {
    pub(crate) db: Db,
    default: terrane_keyspace,
}

impl terrane_db {
    fn new(db: Db) -> Box<Self> {
        let keyspace = db.default_keyspace().clone();
        Box::new(Self { db: db.clone(), default: terrane_keyspace { keyspace, db } })
    }
}

/// Opens the database in the directory `dir`, or creates one. `options` may be NULL. The database is closed with
/// terrane_close and freed with terrane_free. Only one process at a time may open a database for writing, and
/// only once.
///
/// In a child of fork, the handles of the parent do not work: functions that can fail return TERRANE_CLOSED at
/// once, and freeing a handle does not touch the database. The child can open the database again once the parent has
/// closed it or has ended; a daemon should open it after its last fork.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_open(
    dir: *const c_char,
    options: Option<&terrane_options>,
    db: Option<&mut MaybeUninit<Option<Box<terrane_db>>>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce(db, None, error, || {
        // SAFETY: the caller passes a path; see "Pointers" in the documentation of the crate.
        let dir = unsafe { path(dir, "dir") }?;
        let db = match options {
            Some(options) => options.options.open(dir),
            None => Db::open(dir),
        };
        Ok(Some(terrane_db::new(db?)))
    })
}

/// Opens the database in the directory `dir` for reading only, even while another process writes it. Reads see
/// the state at one moment of this call. `options` may be NULL. The database must exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_open_read_only(
    dir: *const c_char,
    options: Option<&terrane_options>,
    db: Option<&mut MaybeUninit<Option<Box<terrane_db>>>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce(db, None, error, || {
        // SAFETY: the caller passes a path; see "Pointers" in the documentation of the crate.
        let dir = unsafe { path(dir, "dir") }?;
        let options = options.map_or_else(Options::new, |options| options.options.clone());
        let db = options.open_mode(OpenMode::MustExist).open_read_only(dir)?;
        Ok(Some(terrane_db::new(db)))
    })
}

/// Flushes all memtables and closes the database for all handles; `db` stays valid and has to be freed. The
/// directory may be opened again at once. Even if the call fails the database is closed, and each write has the
/// durability that it was written with, unless a sync failed. Any thread may call this while others use the
/// database. Closing a closed database succeeds.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_close(
    db: Option<&terrane_db>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || Ok(given(db, "db")?.db.clone().close()?))
}

/// Frees the handle of a database; NULL is ignored. No other thread may use the handle or its default keyspace
/// at that time or later. Without terrane_close before, the database is closed without a flush once its last
/// handle is freed, keyspaces, snapshots, iterators and transactions included; the next opening then replays
/// the log, and writes with the durability "none" that were not flushed are lost.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_free(db: Option<Box<terrane_db>>) {
    drop(db);
}

/// Returns the default keyspace, which belongs to the database and is not freed: it is valid until terrane_free.
/// NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_default_keyspace(db: Option<&terrane_db>) -> Option<&terrane_keyspace> {
    db.map(|db| &db.default)
}

/// Flushes the memtables of all keyspaces, and returns when that is done.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_flush(
    db: Option<&terrane_db>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || Ok(given(db, "db")?.db.flush()?))
}

/// Makes all writes so far survive a power failure, except those with the durability "none".
#[unsafe(no_mangle)]
pub extern "C" fn terrane_sync(
    db: Option<&terrane_db>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || Ok(given(db, "db")?.db.sync()?))
}

/// Returns once no flush is pending and no tree needs a compaction.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_wait_for_compactions(
    db: Option<&terrane_db>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || Ok(given(db, "db")?.db.wait_for_compactions()?))
}

/// Creates a copy of the database in the directory `dir`, which must be empty or not exist. Reads and writes
/// continue meanwhile. The copy shares tables by hard links if the file system has them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_checkpoint(
    db: Option<&terrane_db>,
    dir: *const c_char,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes a path; see "Pointers" in the documentation of the crate.
        let dir = unsafe { path(dir, "dir") }?;
        Ok(given(db, "db")?.db.checkpoint(dir)?)
    })
}

/// Stores counters since the database was opened, and current sizes, as a JSON object with a number for each
/// metric. The string is freed with terrane_string_free.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_stats(
    db: Option<&terrane_db>,
    stats: Option<&mut MaybeUninit<*mut c_char>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce_text(stats, error, || json(serde_json::to_string(&given(db, "db")?.db.stats())))
}
