//! Writes of one key or one range.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use crate::argument::{bytes, given, optional_bytes, pair, range, start_and_end};
use crate::error::{check, produce, terrane_code, terrane_error};
use crate::keyspace::terrane_keyspace;
use crate::write_options::{options_of, terrane_write_options};

/// Sets the value of a key. `options` may be NULL. Returns once all readers see the value and it has the
/// durability that the options ask for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_put(
    keyspace: Option<&terrane_keyspace>,
    options: Option<&terrane_write_options>,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let (key, value) = unsafe { pair(key, key_len, value, value_len, "value") }?;
        Ok(given(keyspace, "keyspace")?.keyspace.put_with(key, value, options_of(options))?)
    })
}

/// Removes a key, whether it exists or not. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_delete(
    keyspace: Option<&terrane_keyspace>,
    options: Option<&terrane_write_options>,
    key: *const c_void,
    key_len: usize,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let key = unsafe { bytes(key, key_len, "key") }?;
        Ok(given(keyspace, "keyspace")?.keyspace.delete_with(key, options_of(options))?)
    })
}

/// Removes the keys from `start` to the exclusive `end`, at the cost of one write. NULL for `start` is the first
/// key, NULL for `end` is no end. A batch can do so with another durability than that of the database.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_delete_range(
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
        Ok(given(keyspace, "keyspace")?.keyspace.delete_range(range(start, end))?)
    })
}

/// Combines the value of a key with an operand by the merge operator of the keyspace, without reading it; see
/// terrane_keyspace_set_merge_operator. `options` may be NULL. An operand that the operator cannot combine with
/// the value is accepted, and makes reads of the key return TERRANE_INVALID until it is put or deleted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_merge(
    keyspace: Option<&terrane_keyspace>,
    options: Option<&terrane_write_options>,
    key: *const c_void,
    key_len: usize,
    operand: *const c_void,
    operand_len: usize,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    check(error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let (key, operand) = unsafe { pair(key, key_len, operand, operand_len, "operand") }?;
        Ok(given(keyspace, "keyspace")?.keyspace.merge_with(key, operand, options_of(options))?)
    })
}

/// Sets the value of a key to `new_value` if it is `expected`, and stores whether it was. NULL for `expected` is
/// a key without a value, NULL for `new_value` deletes the key; a pointer that is not NULL with the length 0 is an
/// empty value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_compare_and_swap(
    keyspace: Option<&terrane_keyspace>,
    key: *const c_void,
    key_len: usize,
    expected: *const c_void,
    expected_len: usize,
    new_value: *const c_void,
    new_value_len: usize,
    swapped: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<Option<Box<terrane_error>>>>,
) -> terrane_code {
    produce(swapped, false, error, || {
        // SAFETY: the caller passes readable bytes; see "Pointers" in the documentation of the crate.
        let key = unsafe { bytes(key, key_len, "key") }?;
        // SAFETY: as above.
        let expected = unsafe { optional_bytes(expected, expected_len, "expected") }?;
        // SAFETY: as above.
        let new_value = unsafe { optional_bytes(new_value, new_value_len, "new_value") }?;
        let keyspace = &given(keyspace, "keyspace")?.keyspace;
        Ok(keyspace.compare_and_swap(key, expected, new_value)?)
    })
}
