//! The feed of changes.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use terrane::{Change, ChangeBatch};

use crate::convert;
use crate::errors;
use crate::forks::OfProcess;

/// An iterator over the batches of writes after a position. It stops at the end, and continues when it is
/// asked again after more writes.
#[pyclass(frozen, module = "terrane._terrane", name = "Changes")]
pub(crate) struct Changes {
    changes: OfProcess<Mutex<terrane::Changes>>,
}

impl Changes {
    pub(crate) fn new(changes: terrane::Changes) -> Self {
        Self { changes: OfProcess::new(Mutex::new(changes)) }
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        function: impl FnOnce(&mut terrane::Changes) -> T + Send,
    ) -> PyResult<T> {
        let changes = self.changes.get()?;
        Ok(py.detach(|| function(&mut changes.lock().unwrap_or_else(PoisonError::into_inner))))
    }
}

#[pymethods]
impl Changes {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Returns the first and the last number of the next batch, and its changes.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<(u64, u64, Bound<'py, PyList>)>> {
        let batch = self.with(py, |changes| changes.next().transpose())?;
        let Some(batch) = batch.map_err(errors::from_engine)? else { return Ok(None) };
        Ok(Some((batch.first(), batch.position(), changes_of(py, &batch)?)))
    }

    /// Waits for more writes, and looks for Ctrl-C meanwhile; returns false if none came within `seconds`.
    fn wait(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        const BETWEEN_SIGNALS: Duration = Duration::from_millis(100);
        let timeout = convert::seconds("timeout", seconds)?;
        let begun = Instant::now();
        loop {
            let left = timeout.saturating_sub(begun.elapsed());
            let wait = left.min(BETWEEN_SIGNALS);
            let found = self.with(py, move |changes| changes.wait(wait))?;
            let found = found.map_err(errors::from_engine)?;
            if found || left.is_zero() {
                return Ok(found);
            }
            py.check_signals()?;
        }
    }

    #[getter]
    fn position(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |changes| terrane::Changes::position(changes))
    }
}

fn changes_of<'py>(py: Python<'py>, batch: &ChangeBatch) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for change in batch.iter() {
        let row = PyDict::new(py);
        let bytes = |bytes: &[u8]| PyBytes::new(py, bytes);
        row.set_item("keyspace", change.keyspace().and_then(|keyspace| keyspace.name()))?;
        match change {
            Change::Put { key, value, expires_at_micros, .. } => {
                row.set_item("kind", "put")?;
                row.set_item("key", bytes(key))?;
                row.set_item("value", bytes(value))?;
                row.set_item("expires_at", expires_at_micros.map(|micros| micros as f64 / 1e6))?;
            }
            Change::Delete { key, .. } => {
                row.set_item("kind", "delete")?;
                row.set_item("key", bytes(key))?;
            }
            Change::DeleteRange { start, end, .. } => {
                row.set_item("kind", "delete_range")?;
                row.set_item("key", bytes(start))?;
                row.set_item("stop", end.map(bytes))?;
            }
            Change::Merge { key, operand, .. } => {
                row.set_item("kind", "merge")?;
                row.set_item("key", bytes(key))?;
                row.set_item("value", bytes(operand))?;
            }
            _ => row.set_item("kind", "not_logged")?,
        }
        list.append(row)?;
    }
    Ok(list)
}
