//! Atomic writes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyType;
use terrane::{WriteBatch, WriteOptions};

use crate::convert::{Bytes, bounds, seconds};
use crate::engine::Engine;
use crate::errors;
use crate::forks::OfProcess;
use crate::keyspace::Keyspace;

/// Writes that happen together or not at all. `with db.batch() as batch` writes them at the end of the block,
/// and discards them if the block raises an exception.
#[pyclass(frozen, module = "terrane", name = "Batch")]
pub(crate) struct Batch {
    keyspace: OfProcess<terrane::Keyspace>,
    engine: Py<Engine>,
    batch: Arc<Mutex<WriteBatch>>,
    options: WriteOptions,
}

impl Batch {
    pub(crate) fn new(
        engine: Py<Engine>,
        keyspace: terrane::Keyspace,
        options: WriteOptions,
    ) -> Self {
        Self { keyspace: OfProcess::new(keyspace), engine, batch: Arc::default(), options }
    }

    /// Returns the keyspace, unless the database was closed.
    #[inline]
    fn keyspace_of(&self) -> PyResult<&terrane::Keyspace> {
        self.engine.get().db()?;
        self.keyspace.get()
    }

    #[inline]
    fn batch<'a>(&'a self, py: Python<'_>) -> MutexGuard<'a, WriteBatch> {
        match self.batch.try_lock() {
            Ok(batch) => batch,
            Err(_) => self.batch.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner),
        }
    }
}

#[pymethods]
impl Batch {
    #[pyo3(signature = (key, value, *, ttl = None))]
    fn put(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        value: Bytes<'_>,
        ttl: Option<f64>,
    ) -> PyResult<()> {
        let keyspace = self.keyspace_of()?;
        match ttl {
            None => self.batch(py).put_in(keyspace, key, value),
            Some(ttl) => self.batch(py).put_with_ttl_in(keyspace, key, value, seconds("ttl", ttl)?),
        };
        Ok(())
    }

    fn __setitem__(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        self.put(py, key, value, None)
    }

    fn delete(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        let keyspace = self.keyspace_of()?;
        self.batch(py).delete_in(keyspace, key);
        Ok(())
    }

    fn __delitem__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        self.delete(py, key)
    }

    #[pyo3(signature = (start = None, stop = None, *, prefix = None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
    ) -> PyResult<()> {
        let keyspace = self.keyspace_of()?;
        self.batch(py).delete_range_in(keyspace, bounds(start, stop, prefix));
        Ok(())
    }

    fn merge(&self, py: Python<'_>, key: Bytes<'_>, operand: Bytes<'_>) -> PyResult<()> {
        let keyspace = self.keyspace_of()?;
        self.batch(py).merge_in(keyspace, key, operand);
        Ok(())
    }

    /// Returns the same batch for another keyspace of the database.
    fn keyspace(&self, py: Python<'_>, keyspace: &Bound<'_, Keyspace>) -> PyResult<Self> {
        let keyspace = OfProcess::new(keyspace.get().handle()?.clone());
        let engine = self.engine.clone_ref(py);
        Ok(Self { keyspace, engine, batch: Arc::clone(&self.batch), options: self.options })
    }

    /// Discards the writes.
    fn clear(&self, py: Python<'_>) {
        self.batch(py).clear();
    }

    /// Performs the writes, after which the batch is empty.
    fn write(&self, py: Python<'_>) -> PyResult<()> {
        let db = self.engine.get().db()?;
        let (batch, options) = (&self.batch, self.options);
        let write = || {
            let mut batch = batch.lock().unwrap_or_else(PoisonError::into_inner);
            db.write_with(&batch, options)?;
            batch.clear();
            Ok(())
        };
        py.detach(write).map_err(errors::from_engine)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.batch(py).len()
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (kind = None, _value = None, _traceback = None))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyType>>,
        _value: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        if kind.is_some() {
            self.clear(py);
            return Ok(());
        }
        self.write(py)
    }
}
