//! A slice of the current segment, in which writers place records without the lock of the log.
//!
//! The owner of the lock opens a slice after the last record. Writers reserve parts of it, in the
//! order of their sequence numbers, and copy their records there. Once all of them are done, the
//! owner of the lock closes the slice, and the log continues after the last part.
//!
//! 1. A slice lies in zeros ([`super::zero_tail`]) that extend [`TERMINATOR_BYTES`] beyond it, and the
//!    storage writes the second word of a record, its length and kind, last. If the process dies,
//!    recovery therefore reads an incomplete record as the end of the log. No later record was
//!    acknowledged, because writes are acknowledged in order.
//! 2. A slice is closed before another segment begins, so only the newest segment can have incomplete
//!    records.
//! 3. Only a storage whose writes cannot fail for lack of space has slices
//!    ([`crate::files::storage::RecordWriter`]): a failed write leaves a gap before later records. A write
//!    fails only if a part of the file is lost. The database then fails for good, and acknowledges none
//!    of the later records.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use super::format::{
    HEADER_BYTES, RECORD_HEADER_BYTES, RecordKind, TERMINATOR_BYTES, record_bytes, record_header,
};
use super::writer::LogWriter;
use crate::base::codec::SliceWriter;
use crate::base::error::{Error, Result};
use crate::base::stats::Counter;
use crate::base::types::{KeyspaceId, Lsn, SeqNo};
use crate::files::batch::Op;
use crate::files::storage::RecordWriter;

/// The unit of space, in bytes: all records are a multiple of it.
const SLICE_UNIT: u64 = 8;

/// A shorter slice is not worth opening.
const SLICE_BYTES_MIN: u64 = 4 << 10;

/// The bytes that the owner of the lock zeroes if no thread has zeroed enough in advance.
const ZEROED_AT_ONCE: u64 = 64 << 10;

/// Records up to this length are encoded on the stack.
const STACK_BYTES: usize = 256;

/// From this length on, the tail of an operation or an encoded batch is not copied into the encoded record.
const REST_BYTES_MIN: usize = 2 << 10;

/// Longer buffers are freed after use.
const BUFFER_BYTES_KEPT: usize = 128 << 10;

/// The operations of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordOps<'a> {
    source: Source<'a>,
    /// The length of the encoded operations.
    payload_bytes: usize,
}

#[derive(Debug, Clone, Copy)]
enum Source<'a> {
    One(KeyspaceId, &'a Op<'a>),
    /// The encoded operations of a batch.
    Encoded(&'a [u8]),
}

impl<'a> RecordOps<'a> {
    #[inline]
    pub(crate) fn one(keyspace: KeyspaceId, op: &'a Op<'a>) -> Self {
        let payload_bytes = op.encoded_len(keyspace);
        Self { source: Source::One(keyspace, op), payload_bytes }
    }

    #[inline]
    pub(crate) fn encoded(encoded: &'a [u8]) -> Self {
        Self { source: Source::Encoded(encoded), payload_bytes: encoded.len() }
    }

    /// Returns the length of the record in units.
    #[inline]
    pub(crate) fn units(&self) -> u64 {
        self.bytes() / SLICE_UNIT
    }

    /// Returns the length of the record.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        record_bytes(self.payload_bytes) as u64
    }
}

thread_local! {
    /// The buffer of the last record of this thread that was too long for the stack.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Where a record is encoded.
#[derive(Debug)]
pub(crate) struct RecordBuffer {
    short: [u8; STACK_BYTES],
    /// Empty unless the record is long.
    long: Vec<u8>,
}

impl RecordBuffer {
    #[inline]
    pub(crate) fn new() -> Self {
        Self { short: [0; STACK_BYTES], long: Vec::new() }
    }

    /// Returns `len` bytes, of which the last seven, at most the padding of a record, are zeros.
    #[inline]
    fn take(&mut self, len: usize) -> &mut [u8] {
        match self.short.get_mut(..len) {
            Some(short) => short,
            None => take_long(&mut self.long, len),
        }
    }
}

#[inline(never)]
fn take_long(long: &mut Vec<u8>, len: usize) -> &mut [u8] {
    // The destructor of another thread-local variable may write after this one is gone.
    *long = BUFFER.try_with(Cell::take).unwrap_or_default();
    // The buffer keeps the bytes of earlier records: zeroing all of it would take as long as the copy that follows.
    if long.len() < len {
        long.resize(len, 0);
    }
    let taken = &mut long[..len];
    taken[len.saturating_sub(SLICE_UNIT as usize - 1)..].fill(0);
    taken
}

impl Drop for RecordBuffer {
    #[inline(always)]
    fn drop(&mut self) {
        if (1..=BUFFER_BYTES_KEPT).contains(&self.long.capacity()) {
            let long = std::mem::take(&mut self.long);
            let _ = BUFFER.try_with(|buffer| buffer.set(long));
        }
    }
}

/// A record that is encoded up to its header, which depends on its place. It is encoded before its
/// place is reserved, because all later writes wait for a writer that has reserved a place.
#[derive(Debug)]
pub(crate) struct PreparedRecord<'a> {
    /// The header, and the payload before `rest`; if `rest` is empty, also the padding.
    bytes: &'a mut [u8],
    /// The length of the payload in `bytes`.
    payload_bytes: usize,
    /// The rest of the payload, if it is large. It is written without a copy into `bytes`; the zeros at
    /// its place serve as padding.
    rest: &'a [u8],
    units: u64,
}

impl<'a> PreparedRecord<'a> {
    #[inline(always)]
    pub(crate) fn of(ops: &RecordOps<'a>, buffer: &'a mut RecordBuffer) -> Self {
        let total = record_bytes(ops.payload_bytes);
        let units = total as u64 / SLICE_UNIT;
        let tail_len = match ops.source {
            Source::One(_, op) => op.tail_len(),
            Source::Encoded(encoded) => encoded.len(),
        };
        let rest_len = if tail_len >= REST_BYTES_MIN { tail_len } else { 0 };
        let payload_bytes = ops.payload_bytes - rest_len;
        let is_whole = rest_len == 0;
        let bytes = buffer.take(if is_whole { total } else { RECORD_HEADER_BYTES + payload_bytes });
        let mut out = SliceWriter::new(bytes.get_mut(RECORD_HEADER_BYTES..).unwrap_or_default());
        let mut rest = match ops.source {
            Source::One(keyspace, op) => op.encode_head(keyspace, &mut out),
            Source::Encoded(encoded) => encoded,
        };
        if is_whole {
            out.put(rest);
            rest = &[];
        }
        Self { bytes, payload_bytes, rest, units }
    }

    /// Returns the length of the record in units.
    #[inline]
    pub(crate) fn units(&self) -> u64 {
        self.units
    }
}

/// A slice of the current segment.
#[derive(Debug)]
pub(crate) struct LogSlice {
    path: Arc<Path>,
    writer: Arc<dyn RecordWriter>,
    nonce: u64,
    /// The offset in the segment, and the position in the log.
    offset: u64,
    start: Lsn,
    units: u64,
}

impl LogSlice {
    /// Returns the length in units.
    pub(crate) fn units(&self) -> u64 {
        self.units
    }

    /// Returns the log position after `units` units.
    #[inline]
    pub(crate) fn position(&self, units: u64) -> Lsn {
        Lsn(self.start.0 + units * SLICE_UNIT)
    }

    /// Places a record at the part that begins after `before` units.
    ///
    /// # Errors
    /// [`Error::LogLost`] if a part of the file is lost. The database must then fail (3).
    #[inline(always)]
    pub(crate) fn put(
        &self,
        before: u64,
        seq: SeqNo,
        record: &mut PreparedRecord<'_>,
    ) -> Result<()> {
        let offset = self.offset + before * SLICE_UNIT;
        let (bytes, rest) = (&mut *record.bytes, record.rest);
        let (head, payload) = bytes.split_at_mut(RECORD_HEADER_BYTES);
        let payload = &payload[..record.payload_bytes];
        let header =
            |payload: &[&[u8]]| record_header(self.nonce, offset, RecordKind::Batch, seq, payload);
        let written = if rest.is_empty() {
            head.copy_from_slice(&header(&[payload]));
            self.writer.write_record(offset, &[bytes])
        } else {
            head.copy_from_slice(&header(&[payload, rest]));
            self.writer.write_record(offset, &[bytes, rest])
        };
        written.map_err(|error| Error::io("write", &self.path, error))
    }
}

impl LogWriter {
    /// Opens a slice from the last record to the offset at which work on the segment is due. Returns
    /// `None` if the storage does not support slices, if the rest of the segment is too short, or after a
    /// large record, which another one probably follows. Nothing is appended until the slice is closed.
    pub(crate) fn open_slice(&mut self) -> Option<LogSlice> {
        let current = &self.current;
        let zero_tail = current.zero_tail.as_ref().filter(|_| !current.is_large)?;
        let offset = current.offset;
        // The end of the segment must have room for the `Continued` record.
        let room_end = current.len.saturating_sub((record_bytes(0) + TERMINATOR_BYTES) as u64);
        let half = current.len / 2 + SLICE_UNIT;
        let mut end = room_end.min(current.ready_at.max(offset + SLICE_BYTES_MIN));
        if offset < half {
            // A free segment becomes due here.
            end = end.min(half);
        }
        if end < offset + SLICE_BYTES_MIN {
            return None;
        }
        if zero_tail.end() < offset + SLICE_BYTES_MIN + TERMINATOR_BYTES as u64 {
            zero_tail.extend(offset + ZEROED_AT_ONCE, || ());
        }
        let end = end.min(match zero_tail.end() {
            end if end < current.len => end.saturating_sub(TERMINATOR_BYTES as u64),
            end => end,
        });
        let units = end.saturating_sub(offset) / SLICE_UNIT;
        (units * SLICE_UNIT >= SLICE_BYTES_MIN).then(|| LogSlice {
            path: Arc::clone(zero_tail.path()),
            writer: Arc::clone(zero_tail.writer()),
            nonce: current.header.nonce,
            offset,
            start: self.end(),
            units,
        })
    }

    /// Closes the open slice, of which the first `units` units are reserved.
    pub(crate) fn close_slice(&mut self, units: u64) {
        let bytes = units * SLICE_UNIT;
        self.current.offset += bytes;
        self.environment.counters.add(Counter::LogBytesWritten, bytes);
        debug_assert!(
            self.current.offset >= HEADER_BYTES && self.current.offset <= self.current.len
        );
    }

    /// Records that all records of the slice closed last are complete.
    pub(crate) fn set_complete(&mut self) {
        self.sync.set_written(self.end());
    }
}
