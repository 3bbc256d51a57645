//! Lookups.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use terrane::Value;

use crate::argument::{bytes, given, keys, store};
use crate::error::{Outcome, check, invalid, produce, terrane_code, terrane_error};
use crate::keyspace::terrane_keyspace;
use crate::value::terrane_value;

/// Stores the value of a key, to be freed with terrane_value_free; NULL if the key has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_get(
    keyspace: Option<&terrane_keyspace>,
    key: *const c_void,
    key_len: usize,
    value: Option<&mut MaybeUninit<Option<Box<terrane_value>>>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce(value, None, error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let key = unsafe { bytes(key, key_len, "key") }?;
        Ok(terrane_value::handle(given(keyspace, "keyspace")?.keyspace.get(key)?))
    })
}

/// Copies the value of a key to `buffer`, and stores whether there is one and its length. A value longer than
/// `capacity` is cut: call again with a larger buffer, or use terrane_get. Faster than terrane_get for short
/// values, because nothing is allocated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_get_into(
    keyspace: Option<&terrane_keyspace>,
    key: *const c_void,
    key_len: usize,
    buffer: *mut c_void,
    capacity: usize,
    len: Option<&mut MaybeUninit<usize>>,
    found: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    let mut result = (0, false);
    let code = check(error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let key = unsafe { bytes(key, key_len, "key") }?;
        if let Some(value) = given(keyspace, "keyspace")?.keyspace.get(key)? {
            // SAFETY: the caller passes a buffer of `capacity` bytes.
            unsafe { copy(&value, buffer, capacity) }?;
            result = (value.len(), true);
        }
        Ok(())
    });
    store(len, result.0);
    store(found, result.1);
    code
}

/// Copies as much of a value as fits.
///
/// # Safety
/// `capacity` bytes at `buffer` are writable, unless it is NULL.
unsafe fn copy(value: &Value, buffer: *mut c_void, capacity: usize) -> Outcome<()> {
    let count = value.len().min(capacity);
    if count == 0 {
        return Ok(());
    }
    if buffer.is_null() {
        return Err(invalid("'buffer' is NULL; pass a buffer or the capacity 0".to_owned()));
    }
    // SAFETY: `count` bytes of the value are readable, and as many of the buffer are writable. They do not
    // overlap, because the memory of a value belongs to the engine.
    unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), buffer.cast(), count) };
    Ok(())
}

/// Stores whether a key has a value, without reading a value that is stored apart from its key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_contains(
    keyspace: Option<&terrane_keyspace>,
    key: *const c_void,
    key_len: usize,
    found: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce(found, false, error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let key = unsafe { bytes(key, key_len, "key") }?;
        Ok(given(keyspace, "keyspace")?.keyspace.contains(key)?)
    })
}

/// Stores the values of `count` keys, from one moment, in the array `found` of `count` elements: each a value to
/// be freed with terrane_value_free, or NULL. Cheaper than as many calls of terrane_get. If the call fails, all
/// elements are NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_multi_get(
    keyspace: Option<&terrane_keyspace>,
    count: usize,
    key_data: *const *const c_void,
    key_lens: *const usize,
    found: *mut Option<Box<terrane_value>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    // SAFETY: the caller passes `count` keys and as many places for values.
    unsafe {
        multi_get(count, key_data, key_lens, found, error, |keys| {
            Ok(given(keyspace, "keyspace")?.keyspace.multi_get(keys)?)
        })
    }
}

/// Looks up keys by a function, and stores what it finds.
///
/// # Safety
/// There are `count` keys and lengths as [`keys`] needs them, and `count` places for values at `found`.
pub(crate) unsafe fn multi_get(
    count: usize,
    key_data: *const *const c_void,
    key_lens: *const usize,
    found: *mut Option<Box<terrane_value>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
    look_up: impl FnOnce(Vec<&[u8]>) -> Outcome<Vec<Option<Value>>>,
) -> terrane_code {
    if !found.is_null() {
        for index in 0..count {
            // SAFETY: the caller passes `count` places, which have no values yet.
            let place = unsafe { found.add(index) };
            // SAFETY: as above.
            unsafe { place.write(None) };
        }
    }
    check(error, || {
        if found.is_null() && count > 0 {
            return Err(invalid("'found' is NULL; pass a place for each value".to_owned()));
        }
        // SAFETY: the caller passes `count` keys.
        let keys = unsafe { keys(key_data, key_lens, count) }?;
        for (index, value) in look_up(keys)?.into_iter().enumerate().take(count) {
            // SAFETY: the caller passes `count` places.
            let place = unsafe { found.add(index) };
            // SAFETY: as above; the place has no value yet.
            unsafe { place.write(terrane_value::handle(value)) };
        }
        Ok(())
    })
}
