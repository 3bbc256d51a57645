//! Optimistic transactions.
//!
//! Every call holds the lock of the transaction only while it is detached from the interpreter, so a thread that
//! waits for the lock keeps no other thread from running.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::convert::{Bytes, bounds, seconds};
use crate::errors;
use crate::forks::OfProcess;
use crate::keyspace::{Keyspace, bytes_or, elements_of, keys_of, list_of, missing, part_of};
use crate::scan::{Entries, SharedTransaction, Source};

/// Reads and writes that happen as one, or not at all.
#[pyclass(frozen, subclass, module = "terrane._terrane", name = "Transaction")]
pub(crate) struct Transaction {
    handles: OfProcess<(SharedTransaction, terrane::Keyspace)>,
}

impl Transaction {
    pub(crate) fn new(transaction: terrane::Transaction, keyspace: terrane::Keyspace) -> Self {
        Self { handles: OfProcess::new((Arc::new(Mutex::new(Some(transaction))), keyspace)) }
    }

    /// Runs a function with the transaction.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        function: impl FnOnce(&mut terrane::Transaction, &terrane::Keyspace) -> terrane::Result<T>
        + Send,
    ) -> PyResult<T> {
        let (shared, keyspace) = self.handles.get()?;
        let run = || {
            let mut transaction = shared.lock().unwrap_or_else(PoisonError::into_inner);
            transaction.as_mut().map(|transaction| function(transaction, keyspace))
        };
        let result = py.detach(run);
        let result =
            result.ok_or_else(|| errors::closed("the transaction has ended; begin another one"))?;
        result.map_err(errors::from_engine)
    }

    /// Takes the transaction out of all of its handles.
    fn take(&self) -> PyResult<Option<terrane::Transaction>> {
        let (shared, _) = self.handles.get()?;
        Ok(shared.lock().unwrap_or_else(PoisonError::into_inner).take())
    }
}

#[pymethods]
impl Transaction {
    /// Takes another handle of a transaction, for the subclass in Python.
    #[new]
    fn of(other: &Bound<'_, Self>) -> PyResult<Self> {
        let (shared, keyspace) = other.get().handles.get()?;
        Ok(Self { handles: OfProcess::new((Arc::clone(shared), keyspace.clone())) })
    }

    /// Returns the same transaction for another keyspace of the database.
    fn _of_keyspace(&self, keyspace: &Bound<'_, Keyspace>) -> PyResult<Self> {
        let (shared, _) = self.handles.get()?;
        let keyspace = keyspace.get().handle()?.clone();
        Ok(Self { handles: OfProcess::new((Arc::clone(shared), keyspace)) })
    }

    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'_>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let value = self.with(py, |transaction, keyspace| transaction.get_in(keyspace, key))?;
        Ok(bytes_or(py, value, default))
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Bytes<'_>) -> PyResult<Bound<'py, PyBytes>> {
        let value = self.with(py, |transaction, keyspace| transaction.get_in(keyspace, &key))?;
        value.map(|value| PyBytes::new(py, &value)).ok_or_else(|| missing(py, &key))
    }

    fn __contains__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<bool> {
        self.with(py, |transaction, keyspace| transaction.contains_in(keyspace, key))
    }

    #[pyo3(signature = (keys, default = None))]
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let elements = elements_of(keys)?;
        let keys = keys_of(&elements)?;
        let values =
            self.with(py, |transaction, keyspace| transaction.multi_get_in(keyspace, &keys))?;
        list_of(py, values, default)
    }

    #[pyo3(signature = (key, value, *, ttl = None))]
    fn put(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        value: Bytes<'_>,
        ttl: Option<f64>,
    ) -> PyResult<()> {
        let ttl = ttl.map(|ttl| seconds("ttl", ttl)).transpose()?;
        self.with(py, |transaction, keyspace| match ttl {
            None => transaction.put_in(keyspace, key, value),
            Some(ttl) => transaction.put_with_ttl_in(keyspace, key, value, ttl),
        })
    }

    fn __setitem__(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        self.put(py, key, value, None)
    }

    fn delete(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        self.with(py, |transaction, keyspace| transaction.delete_in(keyspace, key))
    }

    fn __delitem__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        let was_found = self.with(py, |transaction, keyspace| {
            let was_found = transaction.contains_in(keyspace, &key)?;
            transaction.delete_in(keyspace, &key)?;
            Ok(was_found)
        })?;
        if was_found { Ok(()) } else { Err(missing(py, &key)) }
    }

    #[pyo3(signature = (start = None, stop = None, *, prefix = None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
    ) -> PyResult<()> {
        let range = bounds(start, stop, prefix);
        self.with(py, |transaction, keyspace| transaction.delete_range_in(keyspace, range))
    }

    fn merge(&self, py: Python<'_>, key: Bytes<'_>, operand: Bytes<'_>) -> PyResult<()> {
        self.with(py, |transaction, keyspace| transaction.merge_in(keyspace, key, operand))
    }

    #[pyo3(signature = (part, start, stop, prefix, reverse, limit))]
    fn _scan(
        &self,
        part: &str,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
        reverse: bool,
        limit: Option<usize>,
    ) -> PyResult<Entries> {
        let (shared, keyspace) = self.handles.get()?;
        let range = bounds(start, stop, prefix);
        let source = Source::Transaction(Arc::clone(shared), keyspace.clone(), range);
        Ok(Entries::new(source, part_of(part), reverse, limit))
    }

    /// Marks the present writes, for `roll_back_to_savepoint`. Savepoints nest.
    fn savepoint(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |transaction, _| {
            transaction.savepoint();
            Ok(())
        })
    }

    /// Undoes the writes since the last savepoint; returns false if there is none.
    fn roll_back_to_savepoint(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |transaction, _| Ok(transaction.roll_back_to_savepoint()))
    }

    /// Removes the last savepoint and keeps the writes since; returns false if there is none.
    fn release_savepoint(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |transaction, _| Ok(transaction.release_savepoint()))
    }

    /// Performs the writes, or raises `ConflictError` and writes nothing.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let transaction = py.detach(|| self.take())?;
        let transaction = transaction
            .ok_or_else(|| errors::closed("the transaction has ended; begin another one"))?;
        py.detach(|| transaction.commit()).map_err(errors::from_engine)
    }

    /// Discards the writes; a transaction that has ended stays as it is.
    fn roll_back(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.take().map(drop))
    }

    /// Whether the transaction was committed or rolled back.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        let (shared, _) = self.handles.get()?;
        Ok(py.detach(|| shared.lock().unwrap_or_else(PoisonError::into_inner).is_none()))
    }
}
