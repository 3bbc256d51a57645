//! Adds sorted pairs as tables.

use pyo3::prelude::*;
use terrane::{Ingest, Result};

use super::Keyspace;
use super::rows::{RowObjects, row_of};
use crate::convert::Bytes;
use crate::errors;
use crate::interrupt;
use crate::pair::pair_of;

/// The limits of a chunk. Writing a chunk releases the interpreter's lock once.
const CHUNK_PAIRS: usize = 1024;
const CHUNK_BYTES: usize = 256 << 10;

/// Pairs that were taken from an iterable and are not written yet. They are copied, because the iterable may use
/// the memory of a pair for the next one.
#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// The lengths of the keys and the values, and the expiry times.
    lengths: Vec<(usize, usize, Option<u64>)>,
}

impl Chunk {
    fn push(&mut self, key: &[u8], value: &[u8], expires_at: Option<u64>) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.lengths.push((key.len(), value.len(), expires_at));
    }

    fn is_full(&self) -> bool {
        self.lengths.len() >= CHUNK_PAIRS || self.bytes.len() >= CHUNK_BYTES
    }

    /// Writes the pairs, and removes them.
    fn write(&mut self, ingest: &mut Ingest) -> Result<()> {
        let mut rest = &self.bytes[..];
        for (key_len, value_len, expires_at) in self.lengths.drain(..) {
            let (key, after) = rest.split_at(key_len);
            let (value, after) = after.split_at(value_len);
            match expires_at {
                None => ingest.put(key, value)?,
                Some(expires_at) => ingest.put_with_expiry(key, value, expires_at)?,
            }
            rest = after;
        }
        self.bytes.clear();
        Ok(())
    }
}

/// Returns the key, the value and the expiry time of an element with a number.
type Take<'py> = fn(&Bound<'py, PyAny>, usize) -> PyResult<RowObjects<'py>>;

impl Keyspace {
    /// Adds elements in ascending order as tables, and looks for Ctrl-C meanwhile.
    fn ingest_all<'py>(
        &self,
        py: Python<'py>,
        elements: &Bound<'py, PyAny>,
        take: Take<'py>,
    ) -> PyResult<u64> {
        let keyspace = self.handle()?;
        let mut ingest = keyspace.begin_ingest().map_err(errors::from_engine)?;
        let mut chunk = Chunk::default();
        for (number, element) in elements.try_iter()?.enumerate() {
            let (key, value, expires_at) = take(&element?, number)?;
            let (key, value) = (key.extract::<Bytes<'_>>()?, value.extract::<Bytes<'_>>()?);
            chunk.push(key.as_ref(), value.as_ref(), expires_at);
            if chunk.is_full() {
                py.detach(|| chunk.write(&mut ingest)).map_err(errors::from_engine)?;
                py.check_signals()?;
            }
        }
        py.detach(|| chunk.write(&mut ingest)).map_err(errors::from_engine)?;
        let count = ingest.len();
        let db = self.engine.get().db()?;
        interrupt::run(py, db, |maintenance| {
            // The commit would flush too, but cannot be cancelled.
            maintenance.flush(keyspace)?;
            ingest.commit()
        })?;
        Ok(count)
    }
}

#[pymethods]
impl Keyspace {
    /// Adds pairs in ascending order as tables.
    fn _ingest<'py>(&self, py: Python<'py>, pairs: &Bound<'py, PyAny>) -> PyResult<u64> {
        self.ingest_all(py, pairs, |pair, number| {
            let (key, value) = pair_of(pair, number)?;
            Ok((key, value, None))
        })
    }

    /// Adds rows of a key, a value and an expiry time in ascending order as tables.
    fn _ingest_rows<'py>(&self, py: Python<'py>, rows: &Bound<'py, PyAny>) -> PyResult<u64> {
        self.ingest_all(py, rows, |row, _| row_of(row))
    }
}
