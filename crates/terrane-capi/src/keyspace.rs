//! Keyspaces: independent trees in one database, and their settings.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::time::Duration;

use terrane::{Db, Keyspace, KeyspaceOptions};

use crate::argument::{given, range, start_and_end, store, text};
use crate::database::terrane_db;
use crate::error::{check, produce, terrane_code, terrane_error};
use crate::text::{json, produce_text, terrane_names};

/// A keyspace of a database: an ordered map from keys to values. Any thread may use it. Keys are up to 64 KiB
/// long, values up to 1 GiB; both may be empty and have any bytes. Keys are ordered as by memcmp.
#[derive(Debug)]
pub struct terrane_keyspace {
    pub(crate) keyspace: Keyspace,
    /// The database, of which iterators take snapshots.
    pub(crate) db: Db,
}

/// Opens the keyspace `name`, and creates it if it does not exist. `design` is the design of a keyspace that is
/// created; an existing one keeps its own. NULL is the design of the default keyspace. The handle is freed with
/// terrane_keyspace_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_keyspace_open(
    db: Option<&terrane_db>,
    name: *const c_char,
    design: *const c_char,
    keyspace: Option<&mut MaybeUninit<Option<Box<terrane_keyspace>>>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce(keyspace, None, error, || {
        // SAFETY: the caller passes a string; see "Pointers" in the documentation of the crate.
        let name = unsafe { text(name, "name") }?;
        let mut options = KeyspaceOptions::new();
        if !design.is_null() {
            // SAFETY: as above.
            let design = unsafe { text(design, "design") }?;
            options = options.design_if_new(design.parse().map_err(terrane::Error::from)?);
        }
        let db = given(db, "db")?.db.clone();
        let keyspace = db.keyspace(name, options)?;
        Ok(Some(Box::new(terrane_keyspace { keyspace, db })))
    })
}

/// Frees the handle of a keyspace, which stays in the database; NULL is ignored. Not for the result of
/// terrane_default_keyspace.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_keyspace_free(keyspace: Option<Box<terrane_keyspace>>) {
    drop(keyspace);
}

/// Stores the name of a keyspace, to be freed with terrane_string_free.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_keyspace_name(
    keyspace: Option<&terrane_keyspace>,
    name: Option<&mut MaybeUninit<*mut c_char>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce_text(name, error, || Ok(given(keyspace, "keyspace")?.keyspace.name().to_owned()))
}

/// Stores the names of all keyspaces, to be freed with terrane_names_free.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_keyspace_names(
    db: Option<&terrane_db>,
    names: Option<&mut MaybeUninit<Option<Box<terrane_names>>>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce(names, None, error, || terrane_names::new(given(db, "db")?.db.keyspaces()).map(Some))
}

/// Removes the keyspace `name` and its contents, and stores whether it existed. Its handles stay valid and find
/// no keys.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_keyspace_drop(
    db: Option<&terrane_db>,
    name: *const c_char,
    existed: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce(existed, false, error, || {
        // SAFETY: the caller passes a string; see "Pointers" in the documentation of the crate.
        let name = unsafe { text(name, "name") }?;
        Ok(given(db, "db")?.db.drop_keyspace(name)?)
    })
}

/// Renames the keyspace `name`, and stores whether it existed. Its handles stay valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_keyspace_rename(
    db: Option<&terrane_db>,
    name: *const c_char,
    new_name: *const c_char,
    existed: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce(existed, false, error, || {
        // SAFETY: the caller passes a string; see "Pointers" in the documentation of the crate.
        let name = unsafe { text(name, "name") }?;
        // SAFETY: as above.
        let new_name = unsafe { text(new_name, "new_name") }?;
        let db: &Db = &given(db, "db")?.db;
        Ok(db.rename_keyspace(name, new_name)?)
    })
}

/// Lets the values of later puts expire after this time, unless they have a time of their own; 0 means no expiry.
/// The setting is stored with the keyspace.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_keyspace_set_ttl(
    keyspace: Option<&terrane_keyspace>,
    ttl_micros: u64,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        let ttl = (ttl_micros > 0).then(|| Duration::from_micros(ttl_micros));
        Ok(given(keyspace, "keyspace")?.keyspace.set_ttl(ttl)?)
    })
}

/// Gives the keyspace a merge operator, which never changes: "counter_add" (int64_t in little-endian order),
/// "append", "max", "min" (in the order of bytes) or "set_union".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_keyspace_set_merge_operator(
    keyspace: Option<&terrane_keyspace>,
    name: *const c_char,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes a string; see "Pointers" in the documentation of the crate.
        let name = unsafe { text(name, "name") }?;
        Ok(given(keyspace, "keyspace")?.keyspace.set_merge_operator(name)?)
    })
}

/// Stores the design of a keyspace as text, to be freed with terrane_string_free.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_keyspace_design(
    keyspace: Option<&terrane_keyspace>,
    design: Option<&mut MaybeUninit<*mut c_char>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce_text(design, error, || Ok(given(keyspace, "keyspace")?.keyspace.design().to_string()))
}

/// Changes the design of a keyspace, for example to "tiering T=4; filter=5". The next compactions follow it;
/// reads and writes continue meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_keyspace_set_design(
    keyspace: Option<&terrane_keyspace>,
    design: *const c_char,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes a string; see "Pointers" in the documentation of the crate.
        let design = unsafe { text(design, "design") }?;
        let design = design.parse().map_err(terrane::Error::from)?;
        Ok(given(keyspace, "keyspace")?.keyspace.set_design(design)?)
    })
}

/// Stores the current tree of a keyspace as a JSON object: its design, levels, runs and tables. The string is freed
/// with terrane_string_free.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_keyspace_tree(
    keyspace: Option<&terrane_keyspace>,
    tree: Option<&mut MaybeUninit<*mut c_char>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce_text(tree, error, || {
        json(serde_json::to_string(&given(keyspace, "keyspace")?.keyspace.tree()))
    })
}

/// Flushes the memtables of a keyspace, and returns when that is done.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_keyspace_flush(
    keyspace: Option<&terrane_keyspace>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || Ok(given(keyspace, "keyspace")?.keyspace.flush()?))
}

/// Compacts the keys from `start` to the exclusive `end`, and returns when that is done. NULL for `start` is the
/// first key, NULL for `end` is no end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_compact_range(
    keyspace: Option<&terrane_keyspace>,
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let (start, end) = unsafe { start_and_end(start, start_len, end, end_len) }?;
        Ok(given(keyspace, "keyspace")?.keyspace.compact_range(range(start, end))?)
    })
}

/// Estimates the bytes that the keys from `start` to the exclusive `end` take in memory and in files, and their
/// number; either result may be NULL. NULL for `start` is the first key, NULL for `end` is no end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_approximate_size(
    keyspace: Option<&terrane_keyspace>,
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
    bytes_taken: Option<&mut MaybeUninit<u64>>,
    keys: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    let mut count = 0;
    let code = produce(bytes_taken, 0, error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let (start, end) = unsafe { start_and_end(start, start_len, end, end_len) }?;
        let keyspace = &given(keyspace, "keyspace")?.keyspace;
        let range = range(start, end);
        let size = keyspace.approximate_size(range)?;
        count = keyspace.approximate_len(range)?;
        Ok(size)
    });
    store(keys, count);
    code
}
