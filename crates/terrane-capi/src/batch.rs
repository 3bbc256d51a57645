//! Atomic writes.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use terrane::WriteBatch;

use crate::argument::{bytes, given, optional_bytes, range};
use crate::database::terrane_db;
use crate::error::{check, terrane_code, terrane_error};
use crate::keyspace::terrane_keyspace;
use crate::write_options::{options_of, terrane_write_options, ttl};

/// Writes to any keyspaces of a database that are applied at once. Later ones take precedence over earlier ones
/// on the same key. One thread at a time may change a batch.
#[derive(Debug)]
pub struct terrane_batch {
    batch: WriteBatch,
}

/// Returns an empty batch, to be freed with terrane_batch_free.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_batch_new() -> Box<terrane_batch> {
    Box::new(terrane_batch { batch: WriteBatch::new() })
}

/// Frees a batch; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_batch_free(batch: Option<Box<terrane_batch>>) {
    drop(batch);
}

/// Removes all operations of a batch and keeps its memory; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_batch_clear(batch: Option<&mut terrane_batch>) {
    if let Some(batch) = batch {
        batch.batch.clear();
    }
}

/// Returns the number of operations of a batch; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_batch_len(batch: Option<&terrane_batch>) -> usize {
    batch.map_or(0, |batch| batch.batch.len())
}

/// Adds a put to a batch. NULL for `keyspace` is the default keyspace, here and below. Keys and values that are
/// too long, and keyspaces of different databases, are refused by terrane_write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_batch_put(
    batch: Option<&mut terrane_batch>,
    keyspace: Option<&terrane_keyspace>,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let key = unsafe { bytes(key, key_len, "key") }?;
        // SAFETY: as above.
        let value = unsafe { bytes(value, value_len, "value") }?;
        let batch = &mut given(batch, "batch")?.batch;
        match keyspace {
            Some(keyspace) => batch.put_in(&keyspace.keyspace, key, value),
            None => batch.put(key, value),
        };
        Ok(())
    })
}

/// Adds a put to a batch whose value expires after a time, counted from the write; UINT64_MAX means no expiry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_batch_put_with_ttl(
    batch: Option<&mut terrane_batch>,
    keyspace: Option<&terrane_keyspace>,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    ttl_micros: u64,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let key = unsafe { bytes(key, key_len, "key") }?;
        // SAFETY: as above.
        let value = unsafe { bytes(value, value_len, "value") }?;
        let batch = &mut given(batch, "batch")?.batch;
        match keyspace {
            Some(keyspace) => {
                batch.put_with_ttl_in(&keyspace.keyspace, key, value, ttl(ttl_micros))
            }
            None => batch.put_with_ttl(key, value, ttl(ttl_micros)),
        };
        Ok(())
    })
}

/// Adds the removal of a key to a batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_batch_delete(
    batch: Option<&mut terrane_batch>,
    keyspace: Option<&terrane_keyspace>,
    key: *const c_void,
    key_len: usize,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let key = unsafe { bytes(key, key_len, "key") }?;
        let batch = &mut given(batch, "batch")?.batch;
        match keyspace {
            Some(keyspace) => batch.delete_in(&keyspace.keyspace, key),
            None => batch.delete(key),
        };
        Ok(())
    })
}

/// Adds the removal of the keys from `start` to the exclusive `end` to a batch. NULL for `start` is the first
/// key, NULL for `end` is no end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_batch_delete_range(
    batch: Option<&mut terrane_batch>,
    keyspace: Option<&terrane_keyspace>,
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let start = unsafe { bytes(start, start_len, "start") }?;
        // SAFETY: as above.
        let end = unsafe { optional_bytes(end, end_len, "end") }?;
        let batch = &mut given(batch, "batch")?.batch;
        match keyspace {
            Some(keyspace) => batch.delete_range_in(&keyspace.keyspace, range(start, end)),
            None => batch.delete_range(range(start, end)),
        };
        Ok(())
    })
}

/// Adds a merge to a batch; see terrane_merge.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_batch_merge(
    batch: Option<&mut terrane_batch>,
    keyspace: Option<&terrane_keyspace>,
    key: *const c_void,
    key_len: usize,
    operand: *const c_void,
    operand_len: usize,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let key = unsafe { bytes(key, key_len, "key") }?;
        // SAFETY: as above.
        let operand = unsafe { bytes(operand, operand_len, "operand") }?;
        let batch = &mut given(batch, "batch")?.batch;
        match keyspace {
            Some(keyspace) => batch.merge_in(&keyspace.keyspace, key, operand),
            None => batch.merge(key, operand),
        };
        Ok(())
    })
}

/// Applies a batch at once. `options` may be NULL and has no time to live. The batch stays as it is, and may be
/// applied again, or changed and applied.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_write(
    db: Option<&terrane_db>,
    options: Option<&terrane_write_options>,
    batch: Option<&terrane_batch>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        let batch = &given(batch, "batch")?.batch;
        Ok(given(db, "db")?.db.write_with(batch, options_of(options))?)
    })
}
