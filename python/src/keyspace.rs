//! A keyspace: its reads, writes, batches, snapshots and transactions.
//!
//! | module | one line |
//! |---|---|
//! | `administration` | design, tree, merges, values that expire |
//! | `ingest` | sorted pairs as tables |
//! | `rows` | pairs with expiry times |

mod administration;
mod ingest;
mod rows;

use std::sync::Arc;

use pyo3::prelude::*;
use terrane::WriteBatch;

use crate::batch::Batch;
use crate::convert::{Bounds, Bytes, bounds, write_options};
use crate::design::DesignArgument;
use crate::engine::{Engine, transaction_options};
use crate::errors;
use crate::forks::OfProcess;
use crate::pair::pair_of;
use crate::reading::{Readable, Reads, count, missing};
use crate::scan::Source;
use crate::snapshot::Snapshot;
use crate::transaction::Transaction;
use crate::value::Value;

/// A keyspace, the default one included.
#[pyclass(frozen, subclass, extends = Readable, module = "terrane._terrane", name = "Keyspace")]
pub(crate) struct Keyspace {
    keyspace: Arc<OfProcess<terrane::Keyspace>>,
    engine: Py<Engine>,
}

impl Reads for OfProcess<terrane::Keyspace> {
    fn value(&self, py: Python<'_>, key: &Bytes<'_>) -> PyResult<Option<terrane::Value>> {
        let keyspace = self.get()?;
        py.detach(|| keyspace.get(key)).map_err(errors::from_engine)
    }

    fn contains(&self, py: Python<'_>, key: &Bytes<'_>) -> PyResult<bool> {
        let keyspace = self.get()?;
        py.detach(|| keyspace.contains(key)).map_err(errors::from_engine)
    }

    fn values(&self, py: Python<'_>, keys: &[Bytes<'_>]) -> PyResult<Vec<Option<terrane::Value>>> {
        let keyspace = self.get()?;
        py.detach(|| keyspace.multi_get(keys)).map_err(errors::from_engine)
    }

    fn range(&self, py: Python<'_>, range: Bounds) -> PyResult<Source> {
        let keyspace = self.get()?;
        let iter = py.detach(|| keyspace.range(range)).map_err(errors::from_engine)?;
        Ok(Source::Iter(Box::new(iter)))
    }
}

impl Keyspace {
    /// Returns the handle of the engine, which reports a closed database itself.
    #[inline]
    pub(crate) fn handle(&self) -> PyResult<&terrane::Keyspace> {
        self.keyspace.get()
    }

    /// Returns the handle for a call that would not notice a closed database.
    fn open_handle(&self) -> PyResult<&terrane::Keyspace> {
        self.engine.get().db()?;
        self.handle()
    }
}

#[pymethods]
impl Keyspace {
    /// Opens a keyspace; `None` is the default one.
    #[new]
    #[pyo3(signature = (engine, name = None, design = None, change_design = false))]
    fn open(
        py: Python<'_>,
        engine: Py<Engine>,
        name: Option<&str>,
        design: Option<DesignArgument>,
        change_design: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        let db = engine.get().db()?;
        let keyspace = match name {
            None => db.default_keyspace().clone(),
            Some(name) => {
                let mut options = terrane::KeyspaceOptions::new();
                if let Some(DesignArgument(design)) = design {
                    options = if change_design {
                        options.design_or_change(design)
                    } else {
                        options.design(design)
                    };
                }
                py.detach(|| db.keyspace(name, options)).map_err(errors::from_engine)?
            }
        };
        let keyspace = Arc::new(OfProcess::new(keyspace));
        let base = Readable::base(Arc::clone(&keyspace));
        Ok(base.add_subclass(Self { keyspace, engine }))
    }

    #[getter]
    fn _engine(&self, py: Python<'_>) -> Py<Engine> {
        self.engine.clone_ref(py)
    }

    #[getter]
    fn name(&self) -> PyResult<&str> {
        Ok(self.handle()?.name())
    }

    /// Returns the value as a buffer that shares the memory of the database, or `None`.
    fn view(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<Option<Value>> {
        let keyspace = self.handle()?;
        let value = py.detach(|| keyspace.get(key)).map_err(errors::from_engine)?;
        Ok(value.map(Value::new))
    }

    #[pyo3(signature = (key, value, *, durability = None, ttl = None))]
    fn put(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        value: Bytes<'_>,
        durability: Option<&str>,
        ttl: Option<f64>,
    ) -> PyResult<()> {
        let keyspace = self.handle()?;
        let options = write_options(durability, ttl)?;
        py.detach(|| keyspace.put_with(key, value, options)).map_err(errors::from_engine)
    }

    fn __setitem__(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        let keyspace = self.handle()?;
        py.detach(|| keyspace.put(key, value)).map_err(errors::from_engine)
    }

    #[pyo3(signature = (key, *, durability = None))]
    fn delete(&self, py: Python<'_>, key: Bytes<'_>, durability: Option<&str>) -> PyResult<()> {
        let keyspace = self.handle()?;
        let options = write_options(durability, None)?;
        py.detach(|| keyspace.delete_with(key, options)).map_err(errors::from_engine)
    }

    fn __delitem__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        let keyspace = self.handle()?;
        let delete = || Ok(keyspace.contains(&key)? && keyspace.delete(&key).map(|()| true)?);
        let was_found = py.detach(delete).map_err(errors::from_engine)?;
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
        let keyspace = self.handle()?;
        let range = bounds(start, stop, prefix);
        py.detach(|| keyspace.delete_range(range)).map_err(errors::from_engine)
    }

    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let keyspace = self.handle()?;
        py.detach(|| keyspace.clear()).map_err(errors::from_engine)
    }

    /// Writes pairs of keys and values as one atomic batch.
    #[pyo3(signature = (pairs, *, durability = None))]
    fn _put_pairs(
        &self,
        py: Python<'_>,
        pairs: &Bound<'_, PyAny>,
        durability: Option<&str>,
    ) -> PyResult<()> {
        let keyspace = self.handle()?;
        let options = write_options(durability, None)?;
        let mut batch = WriteBatch::new();
        for (number, pair) in pairs.try_iter()?.enumerate() {
            let pair = pair?;
            let (key, value) = pair_of(&pair, number)?;
            batch.put_in(keyspace, key.extract::<Bytes<'_>>()?, value.extract::<Bytes<'_>>()?);
        }
        let db = self.engine.get().db()?;
        py.detach(|| db.write_with(&batch, options)).map_err(errors::from_engine)
    }

    #[pyo3(signature = (start = None, stop = None, *, prefix = None))]
    fn count(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
    ) -> PyResult<u64> {
        let keyspace = self.handle()?;
        let range = bounds(start, stop, prefix);
        count(py, || keyspace.range(range))
    }

    fn is_empty(&self, py: Python<'_>) -> PyResult<bool> {
        let keyspace = self.handle()?;
        py.detach(|| keyspace.is_empty()).map_err(errors::from_engine)
    }

    fn snapshot(&self, py: Python<'_>) -> PyResult<Py<Snapshot>> {
        let db = self.engine.get().db()?;
        Py::new(py, Snapshot::over(db.snapshot(), self.handle()?.clone()))
    }

    #[pyo3(signature = (*, durability = None))]
    fn batch(&self, py: Python<'_>, durability: Option<&str>) -> PyResult<Batch> {
        let options = write_options(durability, None)?;
        let keyspace = self.open_handle()?.clone();
        Ok(Batch::new(self.engine.clone_ref(py), keyspace, options))
    }

    #[pyo3(signature = (*, isolation = None, durability = None))]
    fn begin(
        &self,
        py: Python<'_>,
        isolation: Option<&str>,
        durability: Option<&str>,
    ) -> PyResult<Py<Transaction>> {
        let options = transaction_options(isolation, durability)?;
        let db = self.engine.get().db()?;
        Py::new(py, Transaction::over(db.begin_with(options), self.handle()?.clone()))
    }
}
