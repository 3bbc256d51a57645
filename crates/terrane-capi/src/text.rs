//! Strings that the library allocates, and lists of names.

use std::ffi::{CString, c_char};

use crate::argument::Out;
use crate::error::{Outcome, invalid, produce, terrane_code, terrane_error};

/// Stores a string that the caller has to free.
pub(crate) fn produce_text(
    out: Out<'_, *mut c_char>,
    error: Out<'_, Option<Box<terrane_error>>>,
    function: impl FnOnce() -> Outcome<String>,
) -> terrane_code {
    produce(out, std::ptr::null_mut(), error, || Ok(owned(function()?)?.into_raw()))
}

/// Returns a string for C.
fn owned(text: String) -> Outcome<CString> {
    CString::new(text).map_err(|error| {
        let text = String::from_utf8_lossy(error.into_vec().as_slice()).escape_debug().to_string();
        invalid(format!("'{text}' contains NUL; give it a name without NUL"))
    })
}

/// Returns the JSON of a value of the engine.
pub(crate) fn json(written: serde_json::Result<String>) -> Outcome<String> {
    written.map_err(|error| invalid(format!("cannot write JSON: {error}")))
}

/// Frees a string that a function of this library returned as `char *`; NULL is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn terrane_string_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: the caller passes a string of this library, which `CString::into_raw` returned, once.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// A list of names.
#[derive(Debug)]
pub struct terrane_names {
    names: Vec<CString>,
}

impl terrane_names {
    /// Returns the list of these names.
    pub(crate) fn new(names: Vec<String>) -> Outcome<Box<Self>> {
        let names: Outcome<_> = names.into_iter().map(owned).collect();
        Ok(Box::new(Self { names: names? }))
    }
}

/// Returns the number of names; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_names_len(names: Option<&terrane_names>) -> usize {
    names.map_or(0, |names| names.names.len())
}

/// Returns a name, counted from 0, which belongs to the list; NULL if there are no more.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_names_get(names: Option<&terrane_names>, index: usize) -> *const c_char {
    let name = names.and_then(|names| names.names.get(index));
    name.map_or(std::ptr::null(), |name| name.as_ptr())
}

/// Frees a list of names; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_names_free(names: Option<Box<terrane_names>>) {
    drop(names);
}
