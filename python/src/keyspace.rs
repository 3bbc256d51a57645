//! Reads and writes of a keyspace.
//!
//! | module | one line |
//! |---|---|
//! | `administration` | design, tree, merges, values that expire |
//! | `ingest` | sorted pairs as tables |

mod administration;
mod ingest;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use terrane::WriteBatch;

use crate::batch::Batch;
use crate::convert::{Bytes, bounds, write_options};
use crate::design::DesignArgument;
use crate::engine::{Engine, transaction_options};
use crate::errors;
use crate::forks::OfProcess;
use crate::pair::pair_of;
use crate::scan::{Entries, Part, Source};
use crate::snapshot::Snapshot;
use crate::transaction::Transaction;
use crate::value::Value;

/// A keyspace, the default one included.
#[pyclass(frozen, subclass, module = "terrane._terrane", name = "Keyspace")]
pub(crate) struct Keyspace {
    keyspace: OfProcess<terrane::Keyspace>,
    engine: Py<Engine>,
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

/// Returns a `bytes` object, or the default.
#[inline]
pub(crate) fn bytes_or<'py>(
    py: Python<'py>,
    value: Option<terrane::Value>,
    default: Option<Bound<'py, PyAny>>,
) -> Bound<'py, PyAny> {
    match (value, default) {
        (Some(value), _) => PyBytes::new(py, &value).into_any(),
        (None, Some(default)) => default,
        (None, None) => py.None().into_bound(py),
    }
}

/// Returns the elements of an iterable. They are kept alive by the vector, because the caller may change its list
/// while other threads run.
pub(crate) fn elements_of<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    match keys.cast::<PyList>() {
        Ok(list) => Ok(list.iter().collect()),
        Err(_) => keys.try_iter()?.collect(),
    }
}

/// Returns elements as keys.
pub(crate) fn keys_of<'a>(elements: &'a [Bound<'_, PyAny>]) -> PyResult<Vec<Bytes<'a>>> {
    elements.iter().map(PyAnyMethods::extract).collect()
}

/// Returns `values` as a list, with `default` for missing ones.
pub(crate) fn list_of<'py>(
    py: Python<'py>,
    values: Vec<Option<terrane::Value>>,
    default: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    let default = default.unwrap_or_else(|| py.None().into_bound(py));
    let object = |value: Option<terrane::Value>| match value {
        Some(value) => PyBytes::new(py, &value).into_any(),
        None => default.clone(),
    };
    PyList::new(py, values.into_iter().map(object))
}

/// Returns the exception for a missing key.
#[cold]
pub(crate) fn missing(py: Python<'_>, key: &Bytes<'_>) -> PyErr {
    PyKeyError::new_err(PyBytes::new(py, key.as_ref()).unbind())
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
    ) -> PyResult<Self> {
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
        Ok(Self { keyspace: OfProcess::new(keyspace), engine })
    }

    #[getter]
    fn _engine(&self, py: Python<'_>) -> Py<Engine> {
        self.engine.clone_ref(py)
    }

    #[getter]
    fn name(&self) -> PyResult<&str> {
        Ok(self.handle()?.name())
    }

    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'_>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let keyspace = self.handle()?;
        let value = py.detach(|| keyspace.get(key)).map_err(errors::from_engine)?;
        Ok(bytes_or(py, value, default))
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Bytes<'_>) -> PyResult<Bound<'py, PyBytes>> {
        let keyspace = self.handle()?;
        let value = py.detach(|| keyspace.get(&key)).map_err(errors::from_engine)?;
        value.map(|value| PyBytes::new(py, &value)).ok_or_else(|| missing(py, &key))
    }

    /// Returns the value as a buffer that shares the memory of the database, or `None`.
    fn view(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<Option<Value>> {
        let keyspace = self.handle()?;
        let value = py.detach(|| keyspace.get(key)).map_err(errors::from_engine)?;
        Ok(value.map(Value::new))
    }

    fn __contains__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<bool> {
        let keyspace = self.handle()?;
        py.detach(|| keyspace.contains(key)).map_err(errors::from_engine)
    }

    #[pyo3(signature = (keys, default = None))]
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let keyspace = self.handle()?;
        let elements = elements_of(keys)?;
        let keys = keys_of(&elements)?;
        let values = py.detach(|| keyspace.multi_get(&keys)).map_err(errors::from_engine)?;
        list_of(py, values, default)
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
        let keyspace = self.handle()?;
        let range = bounds(start, stop, prefix);
        let iter = py.detach(|| keyspace.range(range)).map_err(errors::from_engine)?;
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
        let keyspace = self.handle()?;
        let range = bounds(start, stop, prefix);
        count(py, || keyspace.range(range))
    }

    fn is_empty(&self, py: Python<'_>) -> PyResult<bool> {
        let keyspace = self.handle()?;
        py.detach(|| keyspace.is_empty()).map_err(errors::from_engine)
    }

    fn snapshot(&self) -> PyResult<Snapshot> {
        let db = self.engine.get().db()?;
        Ok(Snapshot::new(db.snapshot(), self.handle()?.clone()))
    }

    #[pyo3(signature = (*, durability = None))]
    fn batch(&self, py: Python<'_>, durability: Option<&str>) -> PyResult<Batch> {
        let options = write_options(durability, None)?;
        let keyspace = self.open_handle()?.clone();
        Ok(Batch::new(self.engine.clone_ref(py), keyspace, options))
    }

    #[pyo3(signature = (*, isolation = None, durability = None))]
    fn begin(&self, isolation: Option<&str>, durability: Option<&str>) -> PyResult<Transaction> {
        let options = transaction_options(isolation, durability)?;
        let db = self.engine.get().db()?;
        Ok(Transaction::new(db.begin_with(options), self.handle()?.clone()))
    }
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

/// Returns what an iterator yields, by name.
pub(crate) fn part_of(text: &str) -> Part {
    match text {
        "keys" => Part::Keys,
        "values" => Part::Values,
        _ => Part::Items,
    }
}
