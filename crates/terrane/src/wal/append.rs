//! Encodes records into the segment that is being written.

use super::format::{HEADER_BYTES, RecordKind, TERMINATOR_BYTES, record_bytes, record_header};
use super::next_segment::Ending;
use super::segment::Current;
use super::writer::LogWriter;
use crate::batch::Op;
use crate::error::{Error, Result};
use crate::stats::Counter;
use crate::types::{KeyspaceId, Lsn, SeqNo};

/// Payloads up to this size are put together in memory, and written at once.
const COPIED_BYTES: usize = 16 << 10;

impl LogWriter {
    /// Adds the operations of a write, of which the first has sequence number `seq`; `is_synced`
    /// if the writer will have it synced at once. Returns the position after it. Nothing is written
    /// if it fails.
    ///
    /// # Errors
    /// There is no room for another segment.
    pub(crate) fn append(
        &mut self,
        seq: SeqNo,
        operations: &[&[u8]],
        is_synced: bool,
    ) -> Result<Lsn> {
        let synced = self.sync.synced();
        // Once something new is durable the log says so, for the next recovery to know.
        if synced > self.said_synced {
            let note = synced.0.to_le_bytes();
            let needed = record_bytes(note.len())
                + record_bytes(operations.iter().map(|part| part.len()).sum());
            if is_synced && self.has_room(needed) {
                self.put_before(RecordKind::Synced, seq, &note);
            } else {
                self.write_record(RecordKind::Synced, seq, &[&note], is_synced)?;
            }
        }
        let end = self.write_record(RecordKind::Batch, seq, operations, is_synced)?;
        self.said_synced = self.said_synced.max(synced);
        Ok(end)
    }

    /// Whether the segment has room for so many bytes of records, and for its end.
    fn has_room(&self, bytes: usize) -> bool {
        self.current.offset + (bytes + record_bytes(0)) as u64 <= self.current.len
    }

    /// Encodes a record that is written together with the next one, for which the segment has room.
    fn put_before(&mut self, kind: RecordKind, seq: SeqNo, payload: &[u8]) {
        let Current { header, offset, .. } = &self.current;
        let head = record_header(header.nonce, *offset, kind, seq, &[payload]);
        self.before.extend_from_slice(&head);
        self.before.extend_from_slice(payload);
        self.before.resize(record_bytes(payload.len()), 0);
    }

    /// Adds a write of one operation, encoded on the way.
    pub(crate) fn append_one(
        &mut self,
        seq: SeqNo,
        keyspace: KeyspaceId,
        op: &Op<'_>,
        is_synced: bool,
    ) -> Result<Lsn> {
        let mut encoded = std::mem::take(&mut self.encoded);
        encoded.clear();
        let appended = match *op {
            // A large value is not copied into the operation.
            Op::Put { key, value } if value.len() > COPIED_BYTES => {
                Op::encode_put_head(keyspace, key, value.len(), &mut encoded);
                self.append(seq, &[&encoded, value], is_synced)
            }
            _ => {
                op.encode(keyspace, &mut encoded);
                self.append(seq, &[&encoded], is_synced)
            }
        };
        self.encoded = encoded;
        appended
    }

    pub(super) fn write_record(
        &mut self,
        kind: RecordKind,
        seq: SeqNo,
        payload: &[&[u8]],
        is_synced: bool,
    ) -> Result<Lsn> {
        let payload_bytes: usize = payload.iter().map(|part| part.len()).sum();
        let total = record_bytes(payload_bytes);
        // Room for the record that says that another segment follows is always left.
        let reserved = if kind == RecordKind::Continued { 0 } else { record_bytes(0) };
        if self.current.offset + (total + reserved) as u64 > self.current.len {
            self.next_segment((total + reserved) as u64, Ending::Full)?;
        }
        let Current { header, segment, offset, len, path, .. } = &mut self.current;
        self.scratch.clear();
        self.scratch.append(&mut self.before);
        let before = self.scratch.len();
        let own = *offset + before as u64;
        let head = record_header(header.nonce, own, kind, seq, payload);
        self.scratch.extend_from_slice(&head);
        let mut write = |offset, bytes: &[u8]| {
            let written = match is_synced {
                true => segment.write_through(offset, bytes),
                false => segment.write(offset, bytes),
            };
            written.map_err(|error| Error::io("write", path, error))
        };
        // A large payload is not copied twice; it is written first, so that the record does not
        // hold before all of it is there.
        if payload_bytes <= COPIED_BYTES {
            payload.iter().for_each(|part| self.scratch.extend_from_slice(part));
        } else {
            let mut at = own + head.len() as u64;
            for part in payload {
                write(at, part)?;
                at += part.len() as u64;
            }
        }
        let copied = self.scratch.len();
        let room = (*len - own - total as u64).min(TERMINATOR_BYTES as u64) as usize;
        if payload_bytes <= COPIED_BYTES {
            self.scratch.resize(before + total + room, 0);
        } else {
            let tail = vec![0; total - head.len() - payload_bytes + room];
            write(own + (total + room - tail.len()) as u64, &tail)?;
            self.scratch.truncate(copied);
        }
        write(*offset, &self.scratch)?;
        *offset = own + total as u64;
        self.sync.set_written(Lsn(header.base.0 + (*offset - HEADER_BYTES)));
        self.environment.counters.add(Counter::LogBytesWritten, (before + total) as u64);
        Ok(self.end())
    }
}
