//! Rows of a key, a value and an expiry time, which is `None` or in microseconds since the Unix epoch.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use terrane::WriteBatch;

use super::Keyspace;
use crate::convert::{Bytes, write_options};
use crate::errors;

/// The objects of a row.
pub(super) type RowObjects<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Option<u64>);

/// Returns the objects of a row, which is a tuple.
pub(super) fn row_of<'py>(row: &Bound<'py, PyAny>) -> PyResult<RowObjects<'py>> {
    let row = row.cast::<PyTuple>()?;
    Ok((row.get_item(0)?, row.get_item(1)?, row.get_item(2)?.extract()?))
}

#[pymethods]
impl Keyspace {
    /// Writes rows as one atomic batch.
    #[pyo3(signature = (rows, *, durability = None))]
    fn _put_rows(
        &self,
        py: Python<'_>,
        rows: &Bound<'_, PyAny>,
        durability: Option<&str>,
    ) -> PyResult<()> {
        let keyspace = self.handle()?;
        let options = write_options(durability, None)?;
        let mut batch = WriteBatch::new();
        for row in rows.try_iter()? {
            let (key, value, expires_at) = row_of(&row?)?;
            let (key, value) = (key.extract::<Bytes<'_>>()?, value.extract::<Bytes<'_>>()?);
            match expires_at {
                None => batch.put_in(keyspace, key, value),
                Some(expires_at) => batch.put_with_expiry_in(keyspace, key, value, expires_at),
            };
        }
        let db = self.engine.get().db()?;
        py.detach(|| db.write_with(&batch, options)).map_err(errors::from_engine)
    }

    /// Returns false if no value expires.
    fn _may_expire(&self) -> PyResult<bool> {
        Ok(self.open_handle()?.may_expire())
    }
}
