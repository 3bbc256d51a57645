//! Adds sorted pairs as tables.

use pyo3::prelude::*;
use terrane::{Ingest, Result};

use super::Keyspace;
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
    /// The lengths of the keys and the values.
    lengths: Vec<(usize, usize)>,
}

impl Chunk {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.lengths.push((key.len(), value.len()));
    }

    fn is_full(&self) -> bool {
        self.lengths.len() >= CHUNK_PAIRS || self.bytes.len() >= CHUNK_BYTES
    }

    /// Writes the pairs, and removes them.
    fn write(&mut self, ingest: &mut Ingest) -> Result<()> {
        let mut rest = &self.bytes[..];
        for (key_len, value_len) in self.lengths.drain(..) {
            let (key, after) = rest.split_at(key_len);
            let (value, after) = after.split_at(value_len);
            ingest.put(key, value)?;
            rest = after;
        }
        self.bytes.clear();
        Ok(())
    }
}

#[pymethods]
impl Keyspace {
    /// Adds pairs in ascending order as tables, and looks for Ctrl-C meanwhile.
    fn _ingest(&self, py: Python<'_>, pairs: &Bound<'_, PyAny>) -> PyResult<u64> {
        let keyspace = self.handle()?;
        let mut ingest = keyspace.begin_ingest().map_err(errors::from_engine)?;
        let mut chunk = Chunk::default();
        for (number, pair) in pairs.try_iter()?.enumerate() {
            let pair = pair?;
            let (key, value) = pair_of(&pair, number)?;
            chunk
                .push(key.extract::<Bytes<'_>>()?.as_ref(), value.extract::<Bytes<'_>>()?.as_ref());
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
