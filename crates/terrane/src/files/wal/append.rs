//! Encodes records into the current segment.

use super::format::{HEADER_BYTES, RecordKind, TERMINATOR_BYTES, record_bytes, record_header};
use super::next_segment::Ending;
use super::segment::CurrentSegment;
use super::writer::LogWriter;
use crate::base::codec::SliceWriter;
use crate::base::error::{Error, Result};
use crate::base::stats::Counter;
use crate::base::types::{KeyspaceId, Lsn, SeqNo};
use crate::files::batch::Op;
use crate::files::storage::LARGE_PIECE_BYTES;

/// The number of zeros written after a record that is about to be synced, unless zeros follow it
/// already. The first write to a block of a new file makes the sync commit the file system's journal,
/// which takes longer than the sync itself; with the zeros, one commit suffices for all these blocks.
/// The device then writes twice as much, which pays off only for short records, and never in a file
/// that was a segment before.
const SYNCED_AHEAD_BYTES: u64 = 256 << 10;
const SYNCED_AHEAD_RECORD_MAX: usize = 64 << 10;

/// Payloads up to this size are assembled in a buffer and written in one step.
const COPIED_BYTES: usize = 16 << 10;

impl LogWriter {
    /// Appends the operations of a write, the first of which has sequence number `seq`. `is_synced`
    /// means that the writer syncs the log right after. Returns the position after the record. On
    /// failure the log is unchanged.
    ///
    /// # Errors
    /// The record cannot be written, or there is no space for another segment.
    pub(crate) fn append(
        &mut self,
        seq: SeqNo,
        operations: &[&[u8]],
        is_synced: bool,
    ) -> Result<Lsn> {
        let synced = self.sync.synced();
        // A `Synced` record states for the next recovery which records are durable.
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

    /// Returns true if the segment has room for `bytes` bytes of records and for the `Continued`
    /// record.
    fn has_room(&self, bytes: usize) -> bool {
        self.current.offset + (bytes + record_bytes(0)) as u64 <= self.current.len
    }

    /// Encodes a record to be written together with the next one. The segment must have room for
    /// both.
    fn put_before(&mut self, kind: RecordKind, seq: SeqNo, payload: &[u8]) {
        let CurrentSegment { header, offset, .. } = &self.current;
        let head = record_header(header.nonce, *offset, kind, seq, &[payload]);
        self.before.extend_from_slice(&head);
        self.before.extend_from_slice(payload);
        self.before.resize(record_bytes(payload.len()), 0);
    }

    /// Encodes and appends a write that has only one operation.
    pub(crate) fn append_one(
        &mut self,
        seq: SeqNo,
        keyspace: KeyspaceId,
        op: &Op<'_>,
        is_synced: bool,
    ) -> Result<Lsn> {
        let mut encoded = std::mem::take(&mut self.encoded);
        // A large tail goes to the log directly, without a copy into the encoded operation.
        let is_copied = op.tail_len() <= COPIED_BYTES;
        let len = op.encoded_len(keyspace) - if is_copied { 0 } else { op.tail_len() };
        encoded.resize(len, 0);
        let mut out = SliceWriter::new(&mut encoded);
        let tail = op.encode_head(keyspace, &mut out);
        let appended = if is_copied {
            out.put(tail);
            self.append(seq, &[&encoded], is_synced)
        } else {
            self.append(seq, &[&encoded, tail], is_synced)
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
        let total = record_bytes(payload.iter().map(|part| part.len()).sum());
        // For every other kind of record, space for the `Continued` record that ends the segment is
        // reserved.
        let reserved = if kind == RecordKind::Continued { 0 } else { record_bytes(0) };
        if self.current.offset + (total + reserved) as u64 > self.current.len {
            self.next_segment((total + reserved) as u64, Ending::Full)?;
        }
        let placed = self.place_record(kind, seq, payload, is_synced);
        let CurrentSegment { header, zero_tail, offset, is_large, .. } = &mut self.current;
        *is_large = payload.iter().any(|part| part.len() >= LARGE_PIECE_BYTES);
        let written = match placed {
            Ok(written) => written as u64,
            Err(error) => {
                if let Some(zero_tail) = zero_tail {
                    // Any part of the record may be in the segment.
                    zero_tail.move_back(*offset);
                }
                return Err(error);
            }
        };
        *offset += written;
        self.sync.set_written(Lsn(header.base.0 + (*offset - HEADER_BYTES)));
        self.environment.counters.add(Counter::LogBytesWritten, written);
        Ok(self.end())
    }

    /// Writes a record, preceded by the encoded record that waits for it, at the end of the segment,
    /// which has room for both. Returns their length.
    fn place_record(
        &mut self,
        kind: RecordKind,
        seq: SeqNo,
        payload: &[&[u8]],
        is_synced: bool,
    ) -> Result<usize> {
        let payload_bytes: usize = payload.iter().map(|part| part.len()).sum();
        let total = record_bytes(payload_bytes);
        let CurrentSegment { header, segment, zero_tail, offset, len, path, is_new, .. } =
            &mut self.current;
        self.scratch.clear();
        self.scratch.append(&mut self.before);
        let before = self.scratch.len();
        let own = *offset + before as u64;
        if let Some(zero_tail) = zero_tail {
            let end = (own + (total + TERMINATOR_BYTES) as u64).min(*len);
            let is_in_zeros = end <= zero_tail.end();
            zero_tail.move_behind(end);
            if is_synced && *is_new && !is_in_zeros && total <= SYNCED_AHEAD_RECORD_MAX {
                zero_tail.extend(end + SYNCED_AHEAD_BYTES, || ());
            }
        }
        let head = record_header(header.nonce, own, kind, seq, payload);
        self.scratch.extend_from_slice(&head);
        let mut write = |offset, bytes: &[u8]| {
            let written = match is_synced {
                true => segment.write_through(offset, bytes),
                false => segment.write(offset, bytes),
            };
            written.map_err(|error| Error::io("write", path, error))
        };
        // A large payload is written directly, without a copy into a buffer. Payload and tail are
        // written before the header, because the header carries the checksum: a crash between these
        // writes leaves no valid record.
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
        Ok(before + total)
    }
}
