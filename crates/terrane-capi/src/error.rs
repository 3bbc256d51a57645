//! Codes and errors; panics become errors.

use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use terrane::{Error, ErrorKind};

use crate::argument::{Out, store};

/// The result of a call: TERRANE_OK, or what the caller should do about the error. Later versions may return
/// other codes; treat a code that you do not know like TERRANE_INTERNAL.
pub type terrane_code = i32;

/// The call succeeded.
pub const TERRANE_OK: terrane_code = 0;
/// Fix the call: an argument, an option or the directory is invalid.
pub const TERRANE_INVALID: terrane_code = 1;
/// Restore from a backup, or repair: the contents of a file are damaged.
pub const TERRANE_CORRUPTION: terrane_code = 2;
/// Use a newer version of this library: this one cannot read the file format.
pub const TERRANE_UNSUPPORTED: terrane_code = 3;
/// Retry, perhaps later: the operating system refused an operation. Includes a full disk.
pub const TERRANE_IO: terrane_code = 4;
/// Close the other user of the database, or open it read-only.
pub const TERRANE_LOCKED: terrane_code = 5;
/// Try again, or read a checkpoint: a writer changed the database during the call.
pub const TERRANE_BUSY: terrane_code = 6;
/// Run the transaction again: another write changed what it depends on.
pub const TERRANE_CONFLICT: terrane_code = 7;
/// Open the database again: it was closed.
pub const TERRANE_CLOSED: terrane_code = 8;
/// Close the database and open it again: a failed sync, or another process that took the directory, may have
/// lost writes.
pub const TERRANE_POISONED: terrane_code = 9;
/// Report a bug in this library.
pub const TERRANE_INTERNAL: terrane_code = 10;
/// The operation was cancelled.
pub const TERRANE_CANCELLED: terrane_code = 11;
/// Report a bug in this library: it panicked. The database may be used further.
pub const TERRANE_PANIC: terrane_code = 12;

/// Why a call failed: a code and a message. An error belongs to who received it, and may be used from any
/// thread.
#[derive(Debug)]
pub struct terrane_error {
    code: terrane_code,
    message: CString,
}

/// What a function of this library returns inside.
pub type Outcome<T> = Result<T, Box<terrane_error>>;

impl terrane_error {
    #[cold]
    fn new(code: terrane_code, message: String) -> Box<Self> {
        let mut message = message.into_bytes();
        // A message may quote what the caller passed.
        message.retain(|byte| *byte != 0);
        Box::new(Self { code, message: CString::new(message).unwrap_or_default() })
    }

    /// Returns the message.
    pub fn message(&self) -> &CStr {
        &self.message
    }
}

impl From<Error> for Box<terrane_error> {
    #[cold]
    fn from(error: Error) -> Self {
        terrane_error::new(code_of(error.kind()), error.to_string())
    }
}

fn code_of(kind: ErrorKind) -> terrane_code {
    match kind {
        ErrorKind::Invalid => TERRANE_INVALID,
        ErrorKind::Corruption => TERRANE_CORRUPTION,
        ErrorKind::Unsupported => TERRANE_UNSUPPORTED,
        ErrorKind::Io => TERRANE_IO,
        ErrorKind::Locked => TERRANE_LOCKED,
        ErrorKind::Busy => TERRANE_BUSY,
        ErrorKind::Conflict => TERRANE_CONFLICT,
        ErrorKind::Closed => TERRANE_CLOSED,
        ErrorKind::Poisoned => TERRANE_POISONED,
        ErrorKind::Cancelled => TERRANE_CANCELLED,
        // Kinds are added in compatible releases of the engine.
        _ => TERRANE_INTERNAL,
    }
}

/// Returns the error of an invalid call.
#[cold]
pub fn invalid(message: String) -> Box<terrane_error> {
    terrane_error::new(TERRANE_INVALID, message)
}

/// Runs a function, and returns its result, or the error of a panic.
///
/// # Errors
/// Those of the function, and [`TERRANE_PANIC`].
#[inline]
pub fn call<T>(function: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    // The engine keeps its invariants when a thread panics: locks that it held are taken over, and a database
    // that cannot go on refuses writes. What this crate adds to it changes in single steps.
    catch_unwind(AssertUnwindSafe(function)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("a panic without a message");
        Err(terrane_error::new(TERRANE_PANIC, format!("panic, please report it: {text}")))
    })
}

/// Runs a function and stores its error, or NULL.
#[inline]
pub(crate) fn check(
    error: Out<'_, Option<Box<terrane_error>>>,
    function: impl FnOnce() -> Outcome<()>,
) -> terrane_code {
    produce(None, (), error, function)
}

/// Runs a function and stores its result and NULL, or `otherwise` and its error.
#[inline]
pub(crate) fn produce<T>(
    out: Out<'_, T>,
    otherwise: T,
    error: Out<'_, Option<Box<terrane_error>>>,
    function: impl FnOnce() -> Outcome<T>,
) -> terrane_code {
    let (value, failure) = match call(function) {
        Ok(value) => (value, None),
        Err(failure) => (otherwise, Some(failure)),
    };
    let code = failure.as_ref().map_or(TERRANE_OK, |failure| failure.code);
    store(out, value);
    store(error, failure);
    code
}

/// Returns the code of an error; TERRANE_OK for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_error_code(error: Option<&terrane_error>) -> terrane_code {
    error.map_or(TERRANE_OK, |error| error.code)
}

/// Returns the message of an error: one sentence in UTF-8 that names the cause and what to do. It belongs to
/// the error. "no error" for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_error_message(error: Option<&terrane_error>) -> *const c_char {
    error.map_or(c"no error".as_ptr(), |error| error.message.as_ptr())
}

/// Frees an error; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_error_free(error: Option<Box<terrane_error>>) {
    drop(error);
}

/// Returns the name of a code, such as "conflict"; "unknown" for any other number. The string is constant.
#[unsafe(no_mangle)]
pub extern "C" fn terrane_code_name(code: terrane_code) -> *const c_char {
    let name = match code {
        TERRANE_OK => c"ok",
        TERRANE_INVALID => c"invalid",
        TERRANE_CORRUPTION => c"corruption",
        TERRANE_UNSUPPORTED => c"unsupported",
        TERRANE_IO => c"io",
        TERRANE_LOCKED => c"locked",
        TERRANE_BUSY => c"busy",
        TERRANE_CONFLICT => c"conflict",
        TERRANE_CLOSED => c"closed",
        TERRANE_POISONED => c"poisoned",
        TERRANE_INTERNAL => c"internal",
        TERRANE_CANCELLED => c"cancelled",
        TERRANE_PANIC => c"panic",
        _ => c"unknown",
    };
    name.as_ptr()
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;

    use super::*;

    #[test]
    fn a_panic_becomes_an_error() {
        let mut out = MaybeUninit::uninit();
        let mut error = MaybeUninit::uninit();
        let code = produce(Some(&mut out), 7, Some(&mut error), || {
            let none: Option<u8> = None;
            Ok(none.map(i32::from).expect("a bug"))
        });
        // SAFETY: `produce` stores a value at each place.
        let out = unsafe { out.assume_init() };
        // SAFETY: as above.
        let error = unsafe { error.assume_init() };
        assert_eq!((code, out), (TERRANE_PANIC, 7));
        assert_eq!(error.unwrap().message(), c"panic, please report it: a bug");
    }

    #[test]
    fn a_message_has_no_nul() {
        assert_eq!(invalid("a\0b".to_owned()).message(), c"ab");
    }
}
