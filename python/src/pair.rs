//! Pairs of a key and a value as arguments.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Returns the key and the value of a pair. A pair is a tuple or, as for `dict.update`, any iterable of two
/// objects.
///
/// # Errors
/// As for `dict.update`, a `TypeError` if it is not iterable, and a `ValueError` for another length.
#[inline]
pub(crate) fn pair_of<'py>(
    element: &Bound<'py, PyAny>,
    number: usize,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    match element.cast::<PyTuple>() {
        Ok(tuple) if tuple.len() == 2 => Ok((tuple.get_item(0)?, tuple.get_item(1)?)),
        _ => pair_of_iterable(element, number),
    }
}

fn pair_of_iterable<'py>(
    element: &Bound<'py, PyAny>,
    number: usize,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let objects = element.try_iter().map_err(|error| {
        if !error.is_instance_of::<PyTypeError>(element.py()) {
            return error;
        }
        let kind =
            element.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "element {number} is not a pair of a key and a value, but {kind}"
        ))
    })?;
    // Three objects show that there are too many, even if the iterator is endless.
    let mut objects = objects.take(3).collect::<PyResult<Vec<_>>>()?.into_iter();
    match (objects.next(), objects.next(), objects.next()) {
        (Some(key), Some(value), None) => Ok((key, value)),
        (_, second, _) => {
            let length =
                if second.is_some() { "more than two objects" } else { "less than two objects" };
            Err(PyValueError::new_err(format!(
                "element {number} is not a pair of a key and a value, but has {length}"
            )))
        }
    }
}
