//! A store that writes the operations of a run to a trace.
//!
//! A trace has a line for each operation, in the order in which the store executed them, in the format
//! of KVBench with Tectonic's `SC` for scans of a number of entries:
//!
//! ```text
//! # terrane trace, encoding=hex
//! I KEY VALUE      put
//! D KEY            delete
//! R START END      delete the keys from START on and before END
//! Q KEY            get
//! SC START COUNT   read COUNT entries from START on
//! ```
//!
//! Keys and values may have any bytes, so they are written in hexadecimal digits; an empty value is
//! `-`. Settling is not recorded.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use crate::error::StoreError;
use crate::store::{Direction, Glance, Store, StoreCounters};

/// The first line of a trace.
pub const TRACE_HEADER: &str = "# terrane trace, encoding=hex";

/// A [`Store`] that passes operations on to another one and records them.
pub struct RecordingStore<'a, W> {
    inner: &'a dyn Store,
    trace: Mutex<W>,
}

impl<'a, W: Write + Send> RecordingStore<'a, W> {
    /// Writes the header of a trace to `out`, and returns a store that records to it the operations
    /// on `inner`.
    ///
    /// # Errors
    /// The header cannot be written.
    pub fn new(inner: &'a dyn Store, mut out: W) -> io::Result<Self> {
        writeln!(out, "{TRACE_HEADER}")?;
        Ok(Self { inner, trace: Mutex::new(out) })
    }

    /// Ends the trace and returns its output.
    ///
    /// # Errors
    /// The last lines cannot be written.
    pub fn finish(self) -> io::Result<W> {
        let mut out = self.trace.into_inner().unwrap_or_else(PoisonError::into_inner);
        out.flush()?;
        Ok(out)
    }

    /// Executes an operation and records it. The lock keeps the lines in the order of the
    /// operations.
    fn record<T>(
        &self,
        operation: &str,
        words: &[Word<'_>],
        run: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut trace = self.trace.lock().unwrap_or_else(PoisonError::into_inner);
        let result = run()?;
        write_line(&mut *trace, operation, words).map_err(StoreError::during("write the trace"))?;
        Ok(result)
    }
}

enum Word<'a> {
    Bytes(&'a [u8]),
    Count(usize),
}

fn write_line(out: &mut impl Write, operation: &str, words: &[Word<'_>]) -> io::Result<()> {
    let mut line = Vec::with_capacity(256);
    line.extend_from_slice(operation.as_bytes());
    for word in words {
        line.push(b' ');
        match word {
            Word::Bytes([]) => line.push(b'-'),
            Word::Bytes(bytes) => {
                for byte in *bytes {
                    let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
                    line.extend([digit(byte >> 4), digit(byte & 15)]);
                }
            }
            Word::Count(count) => write!(line, "{count}")?,
        }
    }
    line.push(b'\n');
    out.write_all(&line)
}

impl<W: Write + Send> Store for RecordingStore<'_, W> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.record("I", &[Word::Bytes(key), Word::Bytes(value)], || self.inner.put(key, value))
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let words = [Word::Bytes(key), Word::Bytes(value)];
        self.record("I", &words, || self.inner.put_synced(key, value))
    }

    fn write_batch(&self, puts: &[(Vec<u8>, Vec<u8>)]) -> Result<(), StoreError> {
        puts.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    fn delete(&self, key: &[u8]) -> Result<(), StoreError> {
        self.record("D", &[Word::Bytes(key)], || self.inner.delete(key))
    }

    fn delete_range(&self, start: &[u8], end: &[u8]) -> Result<(), StoreError> {
        let words = [Word::Bytes(start), Word::Bytes(end)];
        self.record("R", &words, || self.inner.delete_range(start, end))
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
        self.record("Q", &[Word::Bytes(key)], || self.inner.get(key, visit))
    }

    fn scan(
        &self,
        start: Option<&[u8]>,
        direction: Direction,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        if direction == Direction::Backward {
            return Err(StoreError::new("record a scan", "traces have no backward scans"));
        }
        let words = [Word::Bytes(start.unwrap_or_default()), Word::Count(limit)];
        self.record("SC", &words, || self.inner.scan(start, direction, limit, visit))
    }

    fn settle(&self) -> Result<(), StoreError> {
        self.inner.settle()
    }

    fn counters(&self) -> StoreCounters {
        self.inner.counters()
    }

    fn glance(&self) -> Glance {
        self.inner.glance()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemStore, RunOptions, Silent, Workload, run};

    #[test]
    fn a_trace_has_every_operation_of_a_run_once() {
        let store = MemStore::new();
        let mix = "insert=20,update=10,get=20,missing=10,scan:3=10,delete=10; \
                   delete-missing=10,delete-range:2=10";
        let options = RunOptions { num: 100, mix: mix.parse().unwrap(), ..RunOptions::default() };
        let recording = RecordingStore::new(&store, Vec::new()).unwrap();
        run(&recording, Workload::FillRandom, &options, &Silent).unwrap();
        run(&recording, Workload::Mix, &options, &Silent).unwrap();
        let text = String::from_utf8(recording.finish().unwrap()).unwrap();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(TRACE_HEADER));
        let of = |kind: &str| {
            text.lines().filter(|line| line.split(' ').next() == Some(kind)).count() as u64
        };
        let counts = options.mix.counts(100);
        assert_eq!(of("I"), 100 + counts[0] + counts[1]);
        assert_eq!(of("Q"), counts[2] + counts[3]);
        assert_eq!(of("SC"), counts[4]);
        assert_eq!(of("D"), counts[5] + counts[6]);
        assert_eq!(of("R"), counts[7]);
        assert_eq!(text.lines().count() as u64, 1 + 200);
    }
}
