//! Values that share the memory of the database.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use terrane::Value;

use crate::argument::store;

/// A value that was read. It shares its bytes with the memtable or the block that has them, and keeps their
/// memory, so it is freed soon, or copied. Any thread may use it, also after the database was closed or freed.
#[derive(Debug)]
pub struct terrane_value {
    pub(crate) value: Value,
}

impl terrane_value {
    /// Returns the handle of a value that may be missing.
    pub(crate) fn handle(value: Option<Value>) -> Option<Box<Self>> {
        value.map(|value| Box::new(Self { value }))
    }
}

/// Returns the bytes of a value and stores their number. They belong to the value, and do not end with NUL. An
/// empty value has a pointer that is not NULL; NULL has NULL and the length 0.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_value_data(
    value: Option<&terrane_value>,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const c_char {
    let bytes = value.map(|value| &*value.value);
    store(len, bytes.map_or(0, <[u8]>::len));
    bytes.map_or(std::ptr::null(), |bytes| bytes.as_ptr().cast())
}

/// Frees a value; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_value_free(value: Option<Box<terrane_value>>) {
    drop(value);
}
