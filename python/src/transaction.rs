//! Optimistic transactions.
//!
//! A call holds the lock of the transaction only while it is detached from the interpreter, so a thread that
//! waits for the lock does not keep other threads from running.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;

use crate::convert::{Bounds, Bytes, bounds, seconds};
use crate::errors;
use crate::forks::OfProcess;
use crate::keyspace::Keyspace;
use crate::reading::{Readable, Reads, missing};
use crate::scan::{SharedTransaction, Source};

/// Reads and writes that take effect atomically, or not at all.
#[pyclass(frozen, subclass, extends = Readable, module = "terrane._terrane", name = "Transaction")]
pub(crate) struct Transaction {
    handles: Arc<Handles>,
}

type Handles = OfProcess<(SharedTransaction, terrane::Keyspace)>;

/// Runs a function with a transaction that has not ended.
fn with<T: Send>(
    handles: &Handles,
    py: Python<'_>,
    function: impl FnOnce(&mut terrane::Transaction, &terrane::Keyspace) -> terrane::Result<T> + Send,
) -> PyResult<T> {
    let (shared, keyspace) = handles.get()?;
    let run = || {
        let mut transaction = shared.lock().unwrap_or_else(PoisonError::into_inner);
        transaction.as_mut().map(|transaction| function(transaction, keyspace))
    };
    let result = py.detach(run);
    let result =
        result.ok_or_else(|| errors::closed("the transaction has ended; begin another one"))?;
    result.map_err(errors::from_engine)
}

impl Reads for Handles {
    fn value(&self, py: Python<'_>, key: &Bytes<'_>) -> PyResult<Option<terrane::Value>> {
        with(self, py, |transaction, keyspace| transaction.get_in(keyspace, key))
    }

    fn contains(&self, py: Python<'_>, key: &Bytes<'_>) -> PyResult<bool> {
        with(self, py, |transaction, keyspace| transaction.contains_in(keyspace, key))
    }

    fn values(&self, py: Python<'_>, keys: &[Bytes<'_>]) -> PyResult<Vec<Option<terrane::Value>>> {
        with(self, py, |transaction, keyspace| transaction.multi_get_in(keyspace, keys))
    }

    fn range(&self, _py: Python<'_>, range: Bounds) -> PyResult<Source> {
        let (shared, keyspace) = self.get()?;
        Ok(Source::Transaction(Arc::clone(shared), keyspace.clone(), range))
    }
}

impl Transaction {
    /// Returns a new object for a transaction.
    pub(crate) fn over(
        transaction: terrane::Transaction,
        keyspace: terrane::Keyspace,
    ) -> PyClassInitializer<Self> {
        Self::sharing(Arc::new(Mutex::new(Some(transaction))), keyspace)
    }

    /// Returns another object for a transaction.
    fn sharing(
        transaction: SharedTransaction,
        keyspace: terrane::Keyspace,
    ) -> PyClassInitializer<Self> {
        let handles = Arc::new(OfProcess::new((transaction, keyspace)));
        Readable::base(Arc::clone(&handles)).add_subclass(Self { handles })
    }

    /// Runs a function with the transaction.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        function: impl FnOnce(&mut terrane::Transaction, &terrane::Keyspace) -> terrane::Result<T>
        + Send,
    ) -> PyResult<T> {
        with(&self.handles, py, function)
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
    fn of(other: &Bound<'_, Self>) -> PyResult<PyClassInitializer<Self>> {
        let (shared, keyspace) = other.get().handles.get()?;
        Ok(Self::sharing(Arc::clone(shared), keyspace.clone()))
    }

    /// Returns the same transaction for another keyspace of the database.
    fn _of_keyspace(&self, py: Python<'_>, keyspace: &Bound<'_, Keyspace>) -> PyResult<Py<Self>> {
        let (shared, _) = self.handles.get()?;
        Py::new(py, Self::sharing(Arc::clone(shared), keyspace.get().handle()?.clone()))
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
