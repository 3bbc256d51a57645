//! An open database: reads, writes, snapshots, properties.

use std::ffi::{CStr, c_char, c_int};

use terrane::{Db, Snapshot};
use terrane_c::argument::{bytes, given, keys, pair, path, range};
use terrane_c::error::call;

use crate::batch::leveldb_writebatch_t;
use crate::options::{leveldb_options_t, leveldb_readoptions_t, leveldb_writeoptions_t};
use crate::predecessor::check_format;
use crate::status::{allocate, report};

/// An open database, in the default keyspace. Any thread may use it.
#[derive(Debug)]
pub struct leveldb_t {
    pub(crate) db: Db,
}

/// A consistent view of a database.
#[derive(Debug)]
pub struct leveldb_snapshot_t {
    pub(crate) snapshot: Snapshot,
}

/// Opens the database in the directory `name`. Returns NULL and stores an error in `errptr` if that fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_open(
    options: Option<&leveldb_options_t>,
    name: *const c_char,
    errptr: Option<&mut *mut c_char>,
) -> Option<Box<leveldb_t>> {
    report(errptr, None, || {
        // SAFETY: the caller passes a path that ends with NUL.
        let dir = unsafe { path(name, "name") }?;
        check_format(dir)?;
        let db = given(options, "options")?.options(dir)?.open(dir)?;
        Ok(Some(Box::new(leveldb_t { db })))
    })
}

/// Flushes, closes and frees a database. Its iterators and snapshots may be freed later.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_close(db: Option<Box<leveldb_t>>) {
    // The interface has no place for an error. What was written has the durability it was written with.
    let _ = call(|| Ok(db.map_or(Ok(()), |db| db.db.close())?));
}

/// Sets the value of a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_put(
    db: Option<&leveldb_t>,
    options: Option<&leveldb_writeoptions_t>,
    key: *const c_char,
    keylen: usize,
    val: *const c_char,
    vallen: usize,
    errptr: Option<&mut *mut c_char>,
) {
    report(errptr, (), || {
        // SAFETY: the caller passes readable bytes.
        let (key, value) = unsafe { pair(key.cast(), keylen, val.cast(), vallen, "val") }?;
        let options = given(options, "options")?.options();
        Ok(given(db, "db")?.db.put_with(key, value, options)?)
    });
}

/// Removes a key, whether it exists or not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_delete(
    db: Option<&leveldb_t>,
    options: Option<&leveldb_writeoptions_t>,
    key: *const c_char,
    keylen: usize,
    errptr: Option<&mut *mut c_char>,
) {
    report(errptr, (), || {
        // SAFETY: the caller passes readable bytes.
        let key = unsafe { bytes(key.cast(), keylen, "key") }?;
        let options = given(options, "options")?.options();
        Ok(given(db, "db")?.db.delete_with(key, options)?)
    });
}

/// Applies a batch at once.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_write(
    db: Option<&leveldb_t>,
    options: Option<&leveldb_writeoptions_t>,
    batch: Option<&mut leveldb_writebatch_t>,
    errptr: Option<&mut *mut c_char>,
) {
    report(errptr, (), || {
        let options = given(options, "options")?.options();
        let batch = given(batch, "batch")?.to_batch();
        Ok(given(db, "db")?.db.write_with(&batch, options)?)
    });
}

/// Returns the value of a key and stores its length; the memory is freed with leveldb_free. NULL if the key has no
/// value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_get(
    db: Option<&leveldb_t>,
    options: Option<&leveldb_readoptions_t>,
    key: *const c_char,
    keylen: usize,
    vallen: Option<&mut usize>,
    errptr: Option<&mut *mut c_char>,
) -> *mut c_char {
    let value = report(errptr, None, || {
        // SAFETY: the caller passes readable bytes.
        let key = unsafe { bytes(key.cast(), keylen, "key") }?;
        Ok(match &given(options, "options")?.snapshot {
            Some(snapshot) => snapshot.get(key)?,
            None => given(db, "db")?.db.get(key)?,
        })
    });
    if let Some(len) = vallen {
        *len = value.as_ref().map_or(0, |value| value.len());
    }
    value.map_or(std::ptr::null_mut(), |value| allocate(&value))
}

/// Returns a consistent view of a database, to be freed with leveldb_release_snapshot.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_create_snapshot(db: Option<&leveldb_t>) -> *const leveldb_snapshot_t {
    let snapshot = call(|| Ok(given(db, "db")?.db.snapshot()));
    snapshot.map_or(std::ptr::null(), |snapshot| {
        Box::into_raw(Box::new(leveldb_snapshot_t { snapshot }))
    })
}

/// Frees a snapshot. Read options that refer to it keep its view.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_release_snapshot(
    _db: Option<&leveldb_t>,
    snapshot: *const leveldb_snapshot_t,
) {
    if !snapshot.is_null() {
        // SAFETY: the caller passes a snapshot of `leveldb_create_snapshot`, which came from a box, once.
        drop(unsafe { Box::from_raw(snapshot.cast_mut()) });
    }
}

/// Returns a property as text, to be freed with leveldb_free: "leveldb.stats", "leveldb.sstables",
/// "leveldb.num-files-at-levelN", "leveldb.approximate-memory-usage"; "terrane.stats" and "terrane.tree" as JSON.
/// NULL for any other name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_property_value(
    db: Option<&leveldb_t>,
    propname: *const c_char,
) -> *mut c_char {
    if propname.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: the caller passes a name that ends with NUL.
    let name = unsafe { CStr::from_ptr(propname) }.to_str().unwrap_or_default();
    let value = call(|| Ok(property(&given(db, "db")?.db, name)));
    value.ok().flatten().map_or(std::ptr::null_mut(), |value| allocate(value.as_bytes()))
}

fn property(db: &Db, name: &str) -> Option<String> {
    if let Some(level) = name.strip_prefix("leveldb.num-files-at-level") {
        let level: usize = level.parse().ok()?;
        let tree = db.tree();
        let runs = tree.shape.levels.get(level).map_or(&[][..], |level| &level.runs);
        return Some(runs.iter().map(|run| run.tables.len()).sum::<usize>().to_string());
    }
    match name {
        "leveldb.stats" => Some(format!("{}\n{}", db.tree(), db.stats())),
        "leveldb.sstables" => Some(db.tree().to_string()),
        "leveldb.approximate-memory-usage" => {
            let stats = serde_json::to_value(db.stats()).ok()?;
            Some(stats.get("memory_bytes")?.to_string())
        }
        "terrane.stats" => serde_json::to_string(&db.stats()).ok(),
        "terrane.tree" => serde_json::to_string(&db.tree()).ok(),
        _ => None,
    }
}

/// Stores estimates of the bytes that ranges of keys take, in memory and in files. 0 for a range that could not be
/// read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_approximate_sizes(
    db: Option<&leveldb_t>,
    num_ranges: c_int,
    range_start_key: *const *const c_char,
    range_start_key_len: *const usize,
    range_limit_key: *const *const c_char,
    range_limit_key_len: *const usize,
    sizes: *mut u64,
) {
    let count = usize::try_from(num_ranges).unwrap_or(0);
    // The interface has no place for an error; the sizes are 0 then.
    let found = call(|| {
        // SAFETY: the caller passes this many keys.
        let starts = unsafe { keys(range_start_key.cast(), range_start_key_len, count) }?;
        // SAFETY: as above.
        let limits = unsafe { keys(range_limit_key.cast(), range_limit_key_len, count) }?;
        let keyspace = given(db, "db")?.db.default_keyspace();
        let size = |(start, limit)| keyspace.approximate_size(range(start, Some(limit)));
        let pairs = starts.into_iter().zip(limits);
        Ok(pairs.map(|pair| size(pair).unwrap_or(0)).collect::<Vec<u64>>())
    });
    let found = found.unwrap_or_else(|_| vec![0; count]);
    if !sizes.is_null() {
        // SAFETY: the caller passes room for a number for each range.
        unsafe { std::ptr::copy_nonoverlapping(found.as_ptr(), sizes, found.len()) };
    }
}

/// Compacts the keys from `start_key` to `limit_key`; NULL means no bound.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_compact_range(
    db: Option<&leveldb_t>,
    start_key: *const c_char,
    start_key_len: usize,
    limit_key: *const c_char,
    limit_key_len: usize,
) {
    // The interface has no place for an error; a compaction that failed changed nothing.
    let _ = call(|| {
        let start_len = if start_key.is_null() { 0 } else { start_key_len };
        // SAFETY: the caller passes readable bytes.
        let start = unsafe { bytes(start_key.cast(), start_len, "start_key") }?;
        let limit_len = if limit_key.is_null() { 0 } else { limit_key_len };
        // SAFETY: as above.
        let limit = unsafe { bytes(limit_key.cast(), limit_len, "limit_key") }?;
        let limit = (!limit_key.is_null()).then_some(limit);
        Ok(given(db, "db")?.db.compact_range(range(start, limit))?)
    });
}
