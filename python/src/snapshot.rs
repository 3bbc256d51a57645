//! Consistent reads.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;

use crate::convert::{Bounds, Bytes, bounds};
use crate::errors;
use crate::forks::OfProcess;
use crate::keyspace::Keyspace;
use crate::reading::{Readable, Reads, count};
use crate::scan::Source;

/// The database as it was when the snapshot was taken.
#[pyclass(frozen, subclass, extends = Readable, module = "terrane._terrane", name = "Snapshot")]
pub(crate) struct Snapshot {
    handles: Arc<SharedHandles>,
}

type Handles = (terrane::Snapshot, terrane::Keyspace);

/// `None` once the snapshot is closed. The lock is held only to clone the handles.
type SharedHandles = OfProcess<Mutex<Option<Handles>>>;

impl Snapshot {
    /// Returns a new object for a snapshot.
    pub(crate) fn over(
        snapshot: terrane::Snapshot,
        keyspace: terrane::Keyspace,
    ) -> PyClassInitializer<Self> {
        let handles = Arc::new(OfProcess::new(Mutex::new(Some((snapshot, keyspace)))));
        Readable::base(Arc::clone(&handles)).add_subclass(Self { handles })
    }

    fn handles(&self) -> PyResult<Handles> {
        open_handles(&self.handles)
    }
}

/// Returns the handles of a snapshot that is not closed.
fn open_handles(handles: &SharedHandles) -> PyResult<Handles> {
    let handles = handles.get()?.lock().unwrap_or_else(PoisonError::into_inner);
    handles.clone().ok_or_else(|| errors::closed("the snapshot is closed; take another one"))
}

impl Reads for SharedHandles {
    fn value(&self, py: Python<'_>, key: &Bytes<'_>) -> PyResult<Option<terrane::Value>> {
        let (snapshot, keyspace) = open_handles(self)?;
        py.detach(|| snapshot.get_in(&keyspace, key)).map_err(errors::from_engine)
    }

    fn contains(&self, py: Python<'_>, key: &Bytes<'_>) -> PyResult<bool> {
        let (snapshot, keyspace) = open_handles(self)?;
        py.detach(|| snapshot.contains_in(&keyspace, key)).map_err(errors::from_engine)
    }

    fn values(&self, py: Python<'_>, keys: &[Bytes<'_>]) -> PyResult<Vec<Option<terrane::Value>>> {
        let (snapshot, keyspace) = open_handles(self)?;
        py.detach(|| snapshot.multi_get_in(&keyspace, keys)).map_err(errors::from_engine)
    }

    fn range(&self, py: Python<'_>, range: Bounds) -> PyResult<Source> {
        let (snapshot, keyspace) = open_handles(self)?;
        let iter =
            py.detach(|| snapshot.range_in(&keyspace, range)).map_err(errors::from_engine)?;
        Ok(Source::Iter(Box::new(iter)))
    }
}

#[pymethods]
impl Snapshot {
    /// Takes another handle of a snapshot, for the subclass in Python.
    #[new]
    fn of(other: &Bound<'_, Self>) -> PyResult<PyClassInitializer<Self>> {
        let (snapshot, keyspace) = other.get().handles()?;
        Ok(Self::over(snapshot, keyspace))
    }

    /// Returns the same snapshot for another keyspace of the database.
    fn _of_keyspace(&self, py: Python<'_>, keyspace: &Bound<'_, Keyspace>) -> PyResult<Py<Self>> {
        let (snapshot, _) = self.handles()?;
        Py::new(py, Self::over(snapshot, keyspace.get().handle()?.clone()))
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
        count(py, || snapshot.range_in(&keyspace, range))
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
