//! The design of a keyspace, its tree, its merge operator, and how long its values live.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Keyspace;
use crate::convert::{Bytes, bounds, seconds, write_options};
use crate::design::{Design, DesignArgument};
use crate::errors;
use crate::interrupt;
use crate::view;

#[pymethods]
impl Keyspace {
    #[pyo3(signature = (start = None, stop = None, *, prefix = None))]
    fn approximate_len(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
    ) -> PyResult<u64> {
        let keyspace = self.handle()?;
        let range = bounds(start, stop, prefix);
        py.detach(|| keyspace.approximate_len(range)).map_err(errors::from_engine)
    }

    #[pyo3(signature = (start = None, stop = None, *, prefix = None))]
    fn approximate_size(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
    ) -> PyResult<u64> {
        let keyspace = self.handle()?;
        let range = bounds(start, stop, prefix);
        py.detach(|| keyspace.approximate_size(range)).map_err(errors::from_engine)
    }

    #[pyo3(signature = (start = None, stop = None, *, prefix = None))]
    fn compact(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
    ) -> PyResult<()> {
        let keyspace = self.handle()?;
        let range = bounds(start, stop, prefix);
        let db = self.engine.get().db()?;
        interrupt::run(py, db, |maintenance| maintenance.compact_range(keyspace, range))
    }

    fn _flush(&self, py: Python<'_>) -> PyResult<()> {
        let keyspace = self.handle()?;
        let db = self.engine.get().db()?;
        interrupt::run(py, db, |maintenance| maintenance.flush(keyspace))
    }

    fn _tree<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let keyspace = self.open_handle()?;
        let tree = py.detach(|| keyspace.tree());
        view::tree(py, &tree)
    }

    #[getter]
    fn design(&self) -> PyResult<Design> {
        Ok(Design::new(self.open_handle()?.design()))
    }

    #[setter]
    fn set_design(&self, py: Python<'_>, design: DesignArgument) -> PyResult<()> {
        let keyspace = self.open_handle()?;
        py.detach(|| keyspace.set_design(design.0)).map_err(errors::from_engine)
    }

    fn _forecast<'py>(
        &self,
        py: Python<'py>,
        design: DesignArgument,
    ) -> PyResult<Bound<'py, PyDict>> {
        let keyspace = self.open_handle()?;
        let forecast = py.detach(|| keyspace.forecast(&design.0)).map_err(errors::from_engine)?;
        view::forecast(py, &forecast)
    }

    #[getter]
    fn merge_operator(&self) -> PyResult<Option<String>> {
        Ok(self.open_handle()?.merge_operator().map(str::to_owned))
    }

    fn set_merge_operator(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let keyspace = self.open_handle()?;
        py.detach(|| keyspace.set_merge_operator(name)).map_err(errors::from_engine)
    }

    #[pyo3(signature = (key, operand, *, durability = None))]
    fn merge(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        operand: Bytes<'_>,
        durability: Option<&str>,
    ) -> PyResult<()> {
        let keyspace = self.handle()?;
        let options = write_options(durability, None)?;
        py.detach(|| keyspace.merge_with(key, operand, options)).map_err(errors::from_engine)
    }

    #[getter]
    fn ttl(&self) -> PyResult<Option<f64>> {
        Ok(self.open_handle()?.ttl().map(|ttl| ttl.as_secs_f64()))
    }

    #[setter]
    fn set_ttl(&self, py: Python<'_>, ttl: Option<f64>) -> PyResult<()> {
        let keyspace = self.open_handle()?;
        let ttl = ttl.map(|ttl| seconds("ttl", ttl)).transpose()?;
        py.detach(|| keyspace.set_ttl(ttl)).map_err(errors::from_engine)
    }

    /// Sets the value to `new` if it equals `expected`; `None` stands for a missing key.
    fn compare_and_swap(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        expected: Option<Bytes<'_>>,
        new: Option<Bytes<'_>>,
    ) -> PyResult<bool> {
        let keyspace = self.handle()?;
        py.detach(|| keyspace.compare_and_swap(key, expected, new)).map_err(errors::from_engine)
    }

    fn put_if_absent(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<bool> {
        let keyspace = self.handle()?;
        py.detach(|| keyspace.put_if_absent(key, value)).map_err(errors::from_engine)
    }
}
