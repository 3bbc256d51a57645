//! The reads that keyspaces, snapshots and transactions have in common.
//!
//! `Readable` is the base class of all three, so each read is implemented once. A subclass shares its handles
//! with its base, and implements [`Reads`] for them.

use std::sync::Arc;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::convert::{Bounds, Bytes, bounds};
use crate::errors;
use crate::scan::{Entries, Part, Source};

/// Handles that can be read: of a keyspace, or of a snapshot or a transaction with a keyspace.
///
/// # Errors
/// Those of the engine; `ClosedError` if the snapshot or the transaction has ended; `ForkedError` in a child.
pub(crate) trait Reads: Send + Sync {
    fn value(&self, py: Python<'_>, key: &Bytes<'_>) -> PyResult<Option<terrane::Value>>;

    fn contains(&self, py: Python<'_>, key: &Bytes<'_>) -> PyResult<bool>;

    fn values(&self, py: Python<'_>, keys: &[Bytes<'_>]) -> PyResult<Vec<Option<terrane::Value>>>;

    fn range(&self, py: Python<'_>, range: Bounds) -> PyResult<Source>;
}

/// A keyspace, a snapshot or a transaction.
#[pyclass(frozen, subclass, module = "terrane._terrane", name = "Readable")]
pub(crate) struct Readable {
    handles: Arc<dyn Reads>,
}

impl Readable {
    /// Returns the base of an object with these handles.
    pub(crate) fn base(handles: Arc<impl Reads + 'static>) -> PyClassInitializer<Self> {
        Self { handles }.into()
    }
}

#[pymethods]
impl Readable {
    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'_>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Ok(match (self.handles.value(py, &key)?, default) {
            (Some(value), _) => PyBytes::new(py, &value).into_any(),
            (None, Some(default)) => default,
            (None, None) => py.None().into_bound(py),
        })
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Bytes<'_>) -> PyResult<Bound<'py, PyBytes>> {
        let value = self.handles.value(py, &key)?;
        value.map(|value| PyBytes::new(py, &value)).ok_or_else(|| missing(py, &key))
    }

    fn __contains__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<bool> {
        self.handles.contains(py, &key)
    }

    #[pyo3(signature = (keys, default = None))]
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let elements = elements_of(keys)?;
        let keys =
            elements.iter().map(PyAnyMethods::extract).collect::<PyResult<Vec<Bytes<'_>>>>()?;
        let values = self.handles.values(py, &keys)?;
        let default = default.unwrap_or_else(|| py.None().into_bound(py));
        let object = |value: Option<terrane::Value>| match value {
            Some(value) => PyBytes::new(py, &value).into_any(),
            None => default.clone(),
        };
        PyList::new(py, values.into_iter().map(object))
    }

    #[pyo3(signature = (part, start, stop, prefix, reverse, limit))]
    fn _scan(
        &self,
        py: Python<'_>,
        part: &str,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
        reverse: bool,
        limit: Option<usize>,
    ) -> PyResult<Entries> {
        let part = match part {
            "keys" => Part::Keys,
            "values" => Part::Values,
            "rows" => Part::Rows,
            _ => Part::Items,
        };
        let source = self.handles.range(py, bounds(start, stop, prefix))?;
        Ok(Entries::new(source, part, reverse, limit))
    }
}

/// Returns the elements of an iterable. The vector keeps them alive, because another thread may change the list
/// meanwhile.
fn elements_of<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    match keys.cast::<PyList>() {
        Ok(list) => Ok(list.iter().collect()),
        Err(_) => keys.try_iter()?.collect(),
    }
}

/// Returns the exception for a missing key.
#[cold]
pub(crate) fn missing(py: Python<'_>, key: &Bytes<'_>) -> PyErr {
    PyKeyError::new_err(PyBytes::new(py, key.as_ref()).unbind())
}

/// Counts the entries of an iterator, and looks for Ctrl-C meanwhile.
pub(crate) fn count(
    py: Python<'_>,
    open: impl FnOnce() -> terrane::Result<terrane::Iter> + Send,
) -> PyResult<u64> {
    const BETWEEN_SIGNALS: u64 = 100_000;
    let mut iter = py.detach(open).map_err(errors::from_engine)?.keys_only();
    let mut count = 0;
    loop {
        let before = count;
        let is_whole = py.detach(|| {
            while count - before < BETWEEN_SIGNALS {
                if !iter.advance()? {
                    return Ok(true);
                }
                count += 1;
            }
            Ok(false)
        });
        if is_whole.map_err(errors::from_engine)? {
            return Ok(count);
        }
        py.check_signals()?;
    }
}
