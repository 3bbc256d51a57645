//! Consistent reads.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::convert::{Bytes, bounds};
use crate::errors;
use crate::forks::OfProcess;
use crate::keyspace::{self, Keyspace, bytes_or, elements_of, keys_of, list_of, part_of};
use crate::scan::{Entries, Source};

/// The database as it was when the snapshot was taken.
#[pyclass(frozen, subclass, module = "terrane._terrane", name = "Snapshot")]
pub(crate) struct Snapshot {
    /// `None` once it was closed. Held for a moment only, to clone the handles.
    handles: OfProcess<Mutex<Option<Handles>>>,
}

type Handles = (terrane::Snapshot, terrane::Keyspace);

impl Snapshot {
    pub(crate) fn new(snapshot: terrane::Snapshot, keyspace: terrane::Keyspace) -> Self {
        Self { handles: OfProcess::new(Mutex::new(Some((snapshot, keyspace)))) }
    }

    fn handles(&self) -> PyResult<Handles> {
        let handles = self.handles.get()?.lock().unwrap_or_else(PoisonError::into_inner);
        handles.clone().ok_or_else(|| errors::closed("the snapshot is closed; take another one"))
    }
}

#[pymethods]
impl Snapshot {
    /// Takes another handle of a snapshot, for the subclass in Python.
    #[new]
    fn of(other: &Bound<'_, Self>) -> PyResult<Self> {
        let (snapshot, keyspace) = other.get().handles()?;
        Ok(Self::new(snapshot, keyspace))
    }

    /// Returns the same snapshot for another keyspace of the database.
    fn _of_keyspace(&self, keyspace: &Bound<'_, Keyspace>) -> PyResult<Self> {
        let (snapshot, _) = self.handles()?;
        Ok(Self::new(snapshot, keyspace.get().handle()?.clone()))
    }

    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'_>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (snapshot, keyspace) = self.handles()?;
        let value = py.detach(|| snapshot.get_in(&keyspace, key)).map_err(errors::from_engine)?;
        Ok(bytes_or(py, value, default))
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Bytes<'_>) -> PyResult<Bound<'py, PyBytes>> {
        let (snapshot, keyspace) = self.handles()?;
        let value = py.detach(|| snapshot.get_in(&keyspace, &key)).map_err(errors::from_engine)?;
        value.map(|value| PyBytes::new(py, &value)).ok_or_else(|| keyspace::missing(py, &key))
    }

    fn __contains__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<bool> {
        let (snapshot, keyspace) = self.handles()?;
        py.detach(|| snapshot.contains_in(&keyspace, key)).map_err(errors::from_engine)
    }

    #[pyo3(signature = (keys, default = None))]
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (snapshot, keyspace) = self.handles()?;
        let elements = elements_of(keys)?;
        let keys = keys_of(&elements)?;
        let read = || snapshot.multi_get_in(&keyspace, &keys);
        let values = py.detach(read).map_err(errors::from_engine)?;
        list_of(py, values, default)
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
        let (snapshot, keyspace) = self.handles()?;
        let range = bounds(start, stop, prefix);
        let iter =
            py.detach(|| snapshot.range_in(&keyspace, range)).map_err(errors::from_engine)?;
        Ok(Entries::new(Source::Iter(Box::new(iter)), part_of(part), reverse, limit))
    }

    #[pyo3(signature = (start = None, stop = None, *, prefix = None))]
    fn count(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
    ) -> PyResult<u64> {
        let (snapshot, keyspace) = self.handles()?;
        let range = bounds(start, stop, prefix);
        keyspace::count(py, || snapshot.range_in(&keyspace, range))
    }

    #[getter]
    fn sequence_number(&self) -> PyResult<u64> {
        Ok(self.handles()?.0.sequence_number())
    }

    #[getter]
    fn closed(&self) -> PyResult<bool> {
        Ok(self.handles.get()?.lock().unwrap_or_else(PoisonError::into_inner).is_none())
    }

    /// Releases the snapshot; a second call does nothing.
    fn close(&self) -> PyResult<()> {
        let handles = self.handles.get()?.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(handles);
        Ok(())
    }
}
