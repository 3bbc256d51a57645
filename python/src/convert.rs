//! Arguments: bytes, ranges of keys, durations and designs.

use std::ops::Bound;
use std::time::Duration;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use terrane::{Durability, WriteOptions};

use crate::errors;

/// A key or a value: the memory of a `bytes` object, or a copy of any other buffer, because such a buffer
/// could change while the engine reads it.
#[derive(Debug)]
pub(crate) enum Bytes<'a> {
    Borrowed(&'a [u8]),
    Copied(Vec<u8>),
}

impl AsRef<[u8]> for Bytes<'_> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Copied(bytes) => bytes,
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Bytes<'a> {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<&'a [u8]>() {
            Ok(bytes) => Ok(Self::Borrowed(bytes)),
            Err(_) => copied(object).map(Self::Copied),
        }
    }
}

/// Returns the bytes of an object that has a buffer.
#[cold]
fn copied(object: Borrowed<'_, '_, PyAny>) -> PyResult<Vec<u8>> {
    if object.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(
            "keys and values are bytes, not str; encode the text, for example text.encode()",
        ));
    }
    let refused = || {
        let kind =
            object.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "keys and values are bytes or objects with a buffer of bytes, not {kind}"
        ))
    };
    let buffer = PyBuffer::<u8>::get(&object).map_err(|_| refused())?;
    buffer.to_vec(object.py())
}

/// The bounds of a scan or of a range that is deleted.
pub(crate) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Returns the keys from `start` to before `stop` that begin with `prefix`.
pub(crate) fn bounds(
    start: Option<Bytes<'_>>,
    stop: Option<Bytes<'_>>,
    prefix: Option<Bytes<'_>>,
) -> Bounds {
    let mut low = start.map_or_else(Vec::new, |start| start.as_ref().to_vec());
    let mut high = stop.map(|stop| stop.as_ref().to_vec());
    if let Some(prefix) = prefix {
        let prefix = prefix.as_ref();
        let after = after_prefix(prefix);
        low = low.max(prefix.to_vec());
        high = match (high, after) {
            (Some(high), Some(after)) => Some(high.min(after)),
            (high, after) => high.or(after),
        };
    }
    // An interval that ends before it begins is empty.
    let high = high.map(|high| high.max(low.clone()));
    (Bound::Included(low), high.map_or(Bound::Unbounded, Bound::Excluded))
}

/// Returns the smallest key above all keys with a prefix, if there is one.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let end = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut after = prefix.get(..=end)?.to_vec();
    if let Some(last) = after.last_mut() {
        *last += 1;
    }
    Some(after)
}

/// Returns a time in seconds.
pub(crate) fn seconds(name: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        PyValueError::new_err(format!("{name} must be a number of seconds, not {seconds}"))
    })
}

/// Returns a durability by its text.
pub(crate) fn durability(text: &str) -> PyResult<Durability> {
    text.parse().map_err(errors::from_engine)
}

/// Returns the options of a write.
pub(crate) fn write_options(durable: Option<&str>, ttl: Option<f64>) -> PyResult<WriteOptions> {
    let mut options = WriteOptions::new();
    if let Some(text) = durable {
        options = options.durability(durability(text)?);
    }
    if let Some(ttl) = ttl {
        options = options.ttl(seconds("ttl", ttl)?);
    }
    Ok(options)
}
