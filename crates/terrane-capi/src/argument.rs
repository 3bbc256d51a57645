//! Pointers and lengths of callers as references and slices.

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::ops::Bound;
use std::path::Path;

use crate::error::{Outcome, invalid};

/// A place for a result; the caller may not want it.
pub(crate) type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// Stores a result.
pub(crate) fn store<T>(out: Out<'_, T>, value: T) {
    if let Some(out) = out {
        out.write(value);
    }
}

/// Returns a required argument.
///
/// # Errors
/// It is missing.
pub fn given<T>(argument: Option<T>, name: &str) -> Outcome<T> {
    argument.ok_or_else(|| null(name))
}

#[cold]
fn null(name: &str) -> Box<crate::error::terrane_error> {
    invalid(format!("'{name}' is NULL; pass a valid pointer"))
}

/// Returns the bytes at `data`; NULL has no bytes.
///
/// # Safety
/// If `len` is not 0 and `data` is not NULL, `len` bytes at `data` are readable and stay unchanged for `'a`.
#[inline]
pub unsafe fn bytes<'a>(data: *const c_void, len: usize, name: &str) -> Outcome<&'a [u8]> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(null(name));
    }
    if isize::try_from(len).is_err() {
        return Err(invalid(format!("'{name}' is {len} bytes long; pass the length of the data")));
    }
    // SAFETY: the caller states that the bytes are readable; they are not NULL, and fit an `isize`.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), len) })
}

/// Returns the bytes at `data`, or nothing for NULL.
///
/// # Safety
/// That of [`bytes`].
pub unsafe fn optional_bytes<'a>(
    data: *const c_void,
    len: usize,
    name: &str,
) -> Outcome<Option<&'a [u8]>> {
    if data.is_null() && len == 0 {
        return Ok(None);
    }
    // SAFETY: the caller states what `bytes` needs.
    let bytes = unsafe { bytes(data, len, name) };
    bytes.map(Some)
}

/// Returns a NUL-terminated string.
///
/// # Safety
/// A pointer that is not NULL points to a NUL-terminated string that stays unchanged for `'a`.
pub unsafe fn text<'a>(text: *const c_char, name: &str) -> Outcome<&'a str> {
    if text.is_null() {
        return Err(null(name));
    }
    // SAFETY: the caller states that the string ends with NUL; it is not NULL.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| invalid(format!("'{name}' is not UTF-8")))
}

/// Returns a path that ends with NUL. On Unix it may be any bytes, elsewhere it is UTF-8.
///
/// # Safety
/// That of [`text`].
pub unsafe fn path<'a>(path: *const c_char, name: &str) -> Outcome<&'a Path> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        if path.is_null() {
            return Err(null(name));
        }
        // SAFETY: the caller states that the path ends with NUL; it is not NULL.
        let path = unsafe { CStr::from_ptr(path) };
        Ok(Path::new(std::ffi::OsStr::from_bytes(path.to_bytes())))
    }
    #[cfg(not(unix))]
    {
        // SAFETY: the caller states what `text` needs.
        let path = unsafe { text(path, name) };
        path.map(Path::new)
    }
}

/// Returns `count` keys.
///
/// # Safety
/// `keys` and `lens` have `count` elements, each of which is what [`bytes`] needs.
pub unsafe fn keys<'a>(
    keys: *const *const c_void,
    lens: *const usize,
    count: usize,
) -> Outcome<Vec<&'a [u8]>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if keys.is_null() || lens.is_null() {
        return Err(null("keys"));
    }
    // SAFETY: the caller states that there are `count` pointers; they are not NULL.
    let keys = unsafe { std::slice::from_raw_parts(keys, count) };
    // SAFETY: the caller states that there are `count` lengths; they are not NULL.
    let lens = unsafe { std::slice::from_raw_parts(lens, count) };
    let pairs = keys.iter().zip(lens);
    // SAFETY: the caller states that each pair is what `bytes` needs.
    pairs.map(|(key, len)| unsafe { bytes(*key, *len, "key") }).collect()
}

/// Returns a key, and the value or operand `name` that is written with it.
///
/// # Safety
/// Both are what [`bytes`] needs.
#[inline]
pub unsafe fn pair<'a>(
    key: *const c_void,
    key_len: usize,
    data: *const c_void,
    len: usize,
    name: &str,
) -> Outcome<(&'a [u8], &'a [u8])> {
    // SAFETY: the caller states what `bytes` needs.
    let key = unsafe { bytes(key, key_len, "key") }?;
    // SAFETY: as above.
    let data = unsafe { bytes(data, len, name) }?;
    Ok((key, data))
}

/// Returns the first key of a range, and its exclusive end if `end` is not NULL.
///
/// # Safety
/// Both are what [`bytes`] needs.
pub unsafe fn start_and_end<'a>(
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
) -> Outcome<(&'a [u8], Option<&'a [u8]>)> {
    // SAFETY: the caller states what `bytes` needs.
    let start = unsafe { bytes(start, start_len, "start") }?;
    // SAFETY: as above.
    let end = unsafe { optional_bytes(end, end_len, "end") }?;
    Ok((start, end))
}

/// The range from a key to an exclusive end.
pub type KeyRange<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// Returns the range from `start` to the exclusive `end`, if there is one.
pub fn range<'a>(start: &'a [u8], end: Option<&'a [u8]>) -> KeyRange<'a> {
    (Bound::Included(start), end.map_or(Bound::Unbounded, Bound::Excluded))
}
