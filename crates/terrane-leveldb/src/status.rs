//! Errors as strings that `malloc` allocates, and versions.

use std::ffi::{c_char, c_int, c_void};

use terrane_c::error::{self, Outcome, call, terrane_error};

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn free(pointer: *mut c_void);
}

/// Copies bytes and a final NUL to memory from `malloc`. Returns NULL if there is no memory.
pub(crate) fn allocate(bytes: &[u8]) -> *mut c_char {
    // SAFETY: `malloc` takes any size. A value is shorter than `isize::MAX`.
    let memory = unsafe { malloc(bytes.len() + 1) }.cast::<u8>();
    if memory.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: the memory has room for the bytes, and is new.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory, bytes.len()) };
    // SAFETY: it has room for one byte more.
    let end = unsafe { memory.add(bytes.len()) };
    // SAFETY: as above.
    unsafe { end.write(0) };
    memory.cast()
}

/// Runs a function, and returns its result. An error replaces the previous one.
pub(crate) fn report<T>(
    errptr: Option<&mut *mut c_char>,
    otherwise: T,
    function: impl FnOnce() -> Outcome<T>,
) -> T {
    match call(function) {
        Ok(result) => result,
        Err(failure) => {
            if let Some(place) = errptr {
                // SAFETY: the caller passes NULL or a string from `malloc`, and gives up its ownership.
                unsafe { leveldb_free((*place).cast()) };
                *place = allocate(message(&failure).as_bytes());
            }
            otherwise
        }
    }
}

/// Returns the message of an error, which begins with the same words as LevelDB's.
pub(crate) fn message(failure: &terrane_error) -> String {
    let kind = match error::terrane_error_code(Some(failure)) {
        error::TERRANE_CORRUPTION => "Corruption",
        error::TERRANE_UNSUPPORTED => "Not implemented",
        error::TERRANE_INVALID | error::TERRANE_CONFLICT => "Invalid argument",
        _ => "IO error",
    };
    format!("{kind}: {}", failure.message().to_string_lossy())
}

/// Frees memory that a function of this library returned, as free() does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_free(ptr: *mut c_void) {
    // SAFETY: the caller passes NULL, or memory of `malloc`, once.
    unsafe { free(ptr) };
}

/// Returns the major version of the interface of LevelDB that this library has: 1.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_major_version() -> c_int {
    1
}

/// Returns the minor version of the interface of LevelDB that this library has: 23.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_minor_version() -> c_int {
    23
}
