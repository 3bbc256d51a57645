//! Atomic writes.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use terrane::WriteBatch;

use crate::argument::{bytes, given, pair, range, start_and_end};
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

/// Adds an operation to a batch: by the first method for NULL, which is the default keyspace, and by the second one
/// for a keyspace.
macro_rules! add {
    ($batch:ident, $keyspace:ident, $method:ident, $method_in:ident, $($argument:expr),+) => {{
        let batch = &mut given($batch, "batch")?.batch;
        match $keyspace {
            Some(keyspace) => batch.$method_in(&keyspace.keyspace, $($argument),+),
            None => batch.$method($($argument),+),
        };
        Ok(())
    }};
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
        let (key, value) = unsafe { pair(key, key_len, value, value_len, "value") }?;
        add!(batch, keyspace, put, put_in, key, value)
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
        let (key, value) = unsafe { pair(key, key_len, value, value_len, "value") }?;
        add!(batch, keyspace, put_with_ttl, put_with_ttl_in, key, value, ttl(ttl_micros))
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
        add!(batch, keyspace, delete, delete_in, key)
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
        let (start, end) = unsafe { start_and_end(start, start_len, end, end_len) }?;
        add!(batch, keyspace, delete_range, delete_range_in, range(start, end))
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
        let (key, operand) = unsafe { pair(key, key_len, operand, operand_len, "operand") }?;
        add!(batch, keyspace, merge, merge_in, key, operand)
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
