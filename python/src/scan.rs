//! Iterators that read in chunks.
//!
//! A chunk is read without the interpreter's lock, so that other threads can run, and its entries become Python
//! objects one by one. The first chunk is small, because many loops end early; each following chunk is twice as
//! long, up to a bound in entries and in bytes.

use std::ops::Bound as KeyBound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyTuple, PyType};
use terrane::{Iter, Keyspace, Transaction};

use crate::convert::{Bounds, Bytes};
use crate::errors;
use crate::forks::OfProcess;

/// The number of entries in the first chunk.
const FIRST_CHUNK: usize = 8;

/// The maximum number of entries in a chunk.
const CHUNK_MAX: usize = 1024;

/// The bytes of keys and values after which a chunk ends.
const CHUNK_BYTES: usize = 256 << 10;

/// What an iterator yields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Keys,
    Values,
    Items,
    /// Keys, values and expiry times.
    Rows,
}

/// A transaction as its handles share it; `None` once it has ended.
pub(crate) type SharedTransaction = Arc<Mutex<Option<Transaction>>>;

/// Where entries come from.
pub(crate) enum Source {
    Iter(Box<Iter>),
    /// A transaction cannot lend an iterator, so each chunk starts a scan after the end of the previous one.
    Transaction(SharedTransaction, Keyspace, Bounds),
    Closed,
}

/// Entries that were read and not yet returned.
#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// The ends of the key and of the value of each entry in `bytes`.
    ends: Vec<(usize, usize)>,
    /// The expiry times of the entries, if they are wanted.
    expiry: Vec<Option<u64>>,
    wants_expiry: bool,
    next: usize,
}

impl Chunk {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    fn is_full(&self, entries: usize) -> bool {
        self.ends.len() >= entries || self.bytes.len() >= CHUNK_BYTES
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.expiry.clear();
        self.next = 0;
    }

    /// Returns the next key and value.
    fn take(&mut self) -> Option<(&[u8], &[u8])> {
        let (key_end, value_end) = *self.ends.get(self.next)?;
        let start =
            self.next.checked_sub(1).and_then(|last| self.ends.get(last)).map_or(0, |last| last.1);
        self.next += 1;
        Some((self.bytes.get(start..key_end)?, self.bytes.get(key_end..value_end)?))
    }

    fn last_key(&self) -> Option<&[u8]> {
        let last = self.ends.len().checked_sub(1)?;
        let start =
            last.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |entry| entry.1);
        self.bytes.get(start..self.ends.get(last)?.0)
    }
}

struct State {
    source: Source,
    chunk: Chunk,
    /// The number of entries in the next chunk.
    size: usize,
    /// The number of entries that may still be read, if there is a limit.
    left: Option<usize>,
    is_reverse: bool,
    is_done: bool,
}

impl State {
    /// Reads the next chunk.
    fn fill(&mut self) -> PyResult<()> {
        self.chunk.clear();
        if self.is_done {
            return Ok(());
        }
        let size = self.left.map_or(self.size, |left| left.min(self.size));
        self.size = (self.size * 2).min(CHUNK_MAX);
        // After an error the iterator has ended, so that a failed scan is not mistaken for a complete one.
        self.is_done = true;
        let is_whole = match &mut self.source {
            Source::Iter(iter) => read(iter, &mut self.chunk, size, self.is_reverse)?,
            Source::Transaction(transaction, keyspace, bounds) => {
                let is_whole = read_transaction(
                    transaction,
                    keyspace,
                    bounds,
                    &mut self.chunk,
                    (size, self.is_reverse),
                )?;
                if let Some(last) = self.chunk.last_key() {
                    let bound = KeyBound::Excluded(last.to_vec());
                    *(if self.is_reverse { &mut bounds.1 } else { &mut bounds.0 }) = bound;
                }
                is_whole
            }
            Source::Closed => {
                return Err(errors::closed("the iterator is closed; make another one"));
            }
        };
        if let Some(left) = &mut self.left {
            *left -= self.chunk.ends.len();
        }
        self.is_done = is_whole || self.left == Some(0);
        Ok(())
    }
}

/// Reads a chunk; returns true if there are no more entries.
fn read(iter: &mut Iter, chunk: &mut Chunk, size: usize, is_reverse: bool) -> PyResult<bool> {
    while !chunk.is_full(size) {
        if is_reverse {
            match iter.next_back().transpose().map_err(errors::from_engine)? {
                Some((key, value)) => chunk.push(&key, &value),
                None => return Ok(true),
            }
        } else if iter.advance().map_err(errors::from_engine)? {
            chunk.push(iter.key(), iter.value());
            if chunk.wants_expiry {
                chunk.expiry.push(iter.expires_at_micros());
            }
        } else {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads a chunk of a transaction; returns true if there are no more entries.
fn read_transaction(
    transaction: &Mutex<Option<Transaction>>,
    keyspace: &Keyspace,
    bounds: &Bounds,
    chunk: &mut Chunk,
    (size, is_reverse): (usize, bool),
) -> PyResult<bool> {
    let transaction = transaction.lock().unwrap_or_else(PoisonError::into_inner);
    let transaction =
        transaction.as_ref().ok_or_else(|| errors::closed("the transaction has ended"))?;
    let mut iter = transaction.range_in(keyspace, bounds).map_err(errors::from_engine)?;
    while !chunk.is_full(size) {
        let next = if is_reverse { iter.next_back() } else { iter.next() };
        match next.transpose().map_err(errors::from_engine)? {
            Some((key, value)) => chunk.push(&key, &value),
            None => return Ok(true),
        }
    }
    Ok(false)
}

/// An iterator over the keys, values or items of a range, from a snapshot.
#[pyclass(frozen, module = "terrane", name = "Entries")]
pub(crate) struct Entries {
    state: OfProcess<Mutex<State>>,
    part: Part,
}

impl Entries {
    pub(crate) fn new(source: Source, part: Part, is_reverse: bool, limit: Option<usize>) -> Self {
        let source = match source {
            Source::Iter(iter) if part == Part::Keys => Source::Iter(Box::new(iter.keys_only())),
            other => other,
        };
        let state = State {
            source,
            chunk: Chunk { wants_expiry: part == Part::Rows, ..Chunk::default() },
            size: FIRST_CHUNK,
            left: limit,
            is_reverse,
            is_done: limit == Some(0),
        };
        Self { state: OfProcess::new(Mutex::new(state)), part }
    }

    #[inline]
    fn state<'a>(&'a self, py: Python<'_>) -> PyResult<MutexGuard<'a, State>> {
        let state = self.state.get()?;
        Ok(match state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // The owner may wait for the interpreter, so this thread detaches while it waits.
            Err(TryLockError::WouldBlock) => {
                state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
            }
        })
    }
}

#[pymethods]
impl Entries {
    /// `Entries[bytes]` in annotations.
    #[classmethod]
    fn __class_getitem__(class: &Bound<'_, PyType>, _item: &Bound<'_, PyAny>) -> Py<PyType> {
        class.clone().unbind()
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut state = self.state(py)?;
        let state = &mut *state;
        if state.chunk.next >= state.chunk.ends.len() {
            py.detach(|| state.fill())?;
        }
        let expires_at = state.chunk.expiry.get(state.chunk.next).copied().flatten();
        let Some((key, value)) = state.chunk.take() else { return Ok(None) };
        Ok(Some(match self.part {
            Part::Keys => PyBytes::new(py, key).into_any(),
            Part::Values => PyBytes::new(py, value).into_any(),
            Part::Rows => (PyBytes::new(py, key), PyBytes::new(py, value), expires_at)
                .into_pyobject(py)?
                .into_any(),
            Part::Items => {
                (PyBytes::new(py, key), PyBytes::new(py, value)).into_pyobject(py)?.into_any()
            }
        }))
    }

    /// Moves to the first key at or after `key`; not for iterators in reverse or of transactions.
    fn seek(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        let mut state = self.state(py)?;
        let state = &mut *state;
        py.detach(|| match &mut state.source {
            Source::Iter(iter) if !state.is_reverse => {
                state.chunk.clear();
                state.size = FIRST_CHUNK;
                state.is_done = state.left == Some(0);
                iter.seek(key).map_err(errors::from_engine)
            }
            Source::Closed => Err(errors::closed("the iterator is closed; make another one")),
            _ => Err(errors::invalid(
                "an iterator in reverse or of a transaction cannot seek; make another one with `start`",
            )),
        })
    }

    /// Ends the iterator and releases its snapshot.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state(py)?;
        let state = &mut *state;
        py.detach(|| {
            state.chunk.clear();
            state.is_done = true;
            state.source = Source::Closed;
        });
        Ok(())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}
