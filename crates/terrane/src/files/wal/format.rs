//! Segment headers and records, byte by byte.
//!
//! ```text
//! segment: | header, 512 bytes | record | record | ... | zeros or earlier contents |
//! header:  | magic u64 | version u32 | 0 u32 | database u64 | segment u64 | nonce u64 | base lsn u64 |
//!          | previous segment u64 | its end lsn u64 | boot u128 | created u64 | checksum u64 | zeros |
//! record:  | checksum u64 | length u32 | kind u32 | seq u64 | payload | zeros to 8 bytes |
//! ```
//!
//! The zeros of the header hold notes; see [`super::notes`].
//!
//! 1. A record's checksum covers the rest of the record and is seeded with the segment's nonce and
//!    the record's offset. Each use of a file as a segment draws a new nonce. Therefore a record of
//!    an earlier use fails its checksum, and so does a record copied into a user value, because the
//!    user cannot know the nonce.
//! 2. At least 16 zeros follow the last record unless the file ends first, because an append under the
//!    lock writes them, and an append without the lock only fills zeros ([`super::slice`]). A reader
//!    stops where the length and the kind of a record are zeros.

use std::path::Path;

use crate::base::checksum::{checksum, checksum_of, place_seed};
use crate::base::codec::{Decoded, Reader};
use crate::base::error::{Error, Result};
use crate::base::types::{Lsn, SeqNo};

/// The newest version of the log format, and the only one so far.
const LOG_VERSION: u32 = 1;

/// The length of the header; records begin after it.
pub(super) const HEADER_BYTES: u64 = 512;

/// The length of a record without its payload.
pub(super) const RECORD_HEADER_BYTES: usize = 24;

/// Zeros after the last record.
pub(super) const TERMINATOR_BYTES: usize = 16;

const ALIGN: usize = 8;
const MAGIC: u64 = u64::from_le_bytes(*b"TERRLOG\0");
const HEADER_SUMMED_BYTES: usize = 8 + 4 + 4 + 8 * 6 + 16 + 8;

/// The first bytes of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// The database that the log belongs to.
    pub(crate) database: u64,
    /// The number of the segment. Numbers rise from segment to segment and are never reused.
    pub(crate) segment: u64,
    /// A random number, unpredictable to users.
    pub(crate) nonce: u64,
    /// The position of the first record in the log.
    pub(crate) base: Lsn,
    /// The number of the previous segment; 0 if there is no previous segment.
    pub(crate) previous: u64,
    /// The end of the previous segment: `base`, or less if a crash lost its tail.
    pub(crate) previous_end: Lsn,
    /// The value of [`Storage::boot_id`](crate::files::storage::Storage::boot_id) when the segment began;
    /// 0 if it was unknown.
    pub(crate) boot: u128,
    /// When the segment began, in microseconds since the Unix epoch.
    pub(crate) created_micros: u64,
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES as usize);
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out.extend_from_slice(&LOG_VERSION.to_le_bytes());
        out.extend_from_slice(&0u32.to_le_bytes());
        let place = [self.base.0, self.previous, self.previous_end.0];
        for number in [self.database, self.segment, self.nonce].into_iter().chain(place) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.boot.to_le_bytes());
        out.extend_from_slice(&self.created_micros.to_le_bytes());
        let sum = checksum(&out, MAGIC);
        out.extend_from_slice(&sum.to_le_bytes());
        out.resize(HEADER_BYTES as usize, 0);
        out
    }

    /// Reads a header; `None` if the bytes are not a header, for example because a crash
    /// interrupted its write.
    ///
    /// # Errors
    /// The header has another format version.
    pub(crate) fn decode(bytes: &[u8], path: &Path) -> Result<Option<Self>> {
        let Ok((header, version)) = Self::read(bytes) else { return Ok(None) };
        if version != LOG_VERSION {
            let path = path.into();
            return Err(Error::Unsupported { path, found: version, supported: LOG_VERSION });
        }
        Ok(Some(header))
    }

    fn read(bytes: &[u8]) -> Decoded<(Self, u32)> {
        let mut reader = Reader::new(bytes);
        let magic = reader.u64("log magic")?;
        let version = reader.u32("log version")?;
        reader.u32("reserved")?;
        let mut number = || reader.u64("log header");
        let (database, segment, nonce) = (number()?, number()?, number()?);
        let (base, previous, previous_end) = (Lsn(number()?), number()?, Lsn(number()?));
        let (boot_low, boot_high) = (number()?, number()?);
        let boot = u128::from(boot_high) << 64 | u128::from(boot_low);
        let created_micros = number()?;
        let sum = number()?;
        let summed = bytes.get(..HEADER_SUMMED_BYTES).unwrap_or_default();
        if magic != MAGIC || sum != checksum(summed, MAGIC) {
            return Err(reader.error("log header"));
        }
        Ok((
            Self { database, segment, nonce, base, previous, previous_end, boot, created_micros },
            version,
        ))
    }
}

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum RecordKind {
    /// Operations of a write; the sequence number is that of the first operation.
    Batch = 1,
    /// States that all records before the position in the payload are durable.
    Synced = 2,
    /// The log was closed cleanly; nothing follows.
    Closed = 3,
    /// The segment ends here, and the next one exists.
    Continued = 4,
}

/// A record with a valid checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) kind: RecordKind,
    pub(crate) seq: SeqNo,
    pub(crate) payload: &'a [u8],
}

/// The result of parsing at an offset where a record may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parsed<'a> {
    /// A record and its length.
    Record(Record<'a>, usize),
    /// Zeros where length and kind belong: nothing was written here, or the write was lost or not
    /// completed.
    Zeros,
    /// The bytes end before the record does. The record needs this many bytes.
    NeedsBytes(usize),
    /// Bytes that are neither a record nor zeros.
    Garbage,
}

/// Returns the length of a record whose payload has this length.
#[inline]
pub(super) fn record_bytes(payload: usize) -> usize {
    (RECORD_HEADER_BYTES + payload).next_multiple_of(ALIGN)
}

/// Encodes a record's header. The parts of the payload follow it in the file.
#[inline(always)]
pub(super) fn record_header(
    nonce: u64,
    offset: u64,
    kind: RecordKind,
    seq: SeqNo,
    payload: &[&[u8]],
) -> [u8; RECORD_HEADER_BYTES] {
    let len: usize = payload.iter().map(|part| part.len()).sum();
    let mut header = [0; RECORD_HEADER_BYTES];
    header[8..12].copy_from_slice(&(len as u32).to_le_bytes());
    header[12..16].copy_from_slice(&(kind as u32).to_le_bytes());
    header[16..24].copy_from_slice(&seq.to_le_bytes());
    let seed = checksum(&header[8..], place_seed(nonce, offset));
    let sum = checksum_of(payload, seed);
    header[..8].copy_from_slice(&sum.to_le_bytes());
    header
}

/// Parses the start of `bytes`, which are at `offset` of a segment. No record is longer than
/// `len_max`, which bounds the bytes that a damaged length field can request.
pub(super) fn parse_record(bytes: &[u8], nonce: u64, offset: u64, len_max: u64) -> Parsed<'_> {
    let Some(header) = bytes.first_chunk::<RECORD_HEADER_BYTES>() else {
        let zeros = bytes.iter().all(|&byte| byte == 0);
        return if zeros && len_max < RECORD_HEADER_BYTES as u64 {
            Parsed::Zeros
        } else if len_max < RECORD_HEADER_BYTES as u64 {
            Parsed::Garbage
        } else {
            Parsed::NeedsBytes(RECORD_HEADER_BYTES)
        };
    };
    let mut reader = Reader::new(header);
    let fields = (|| -> Decoded<_> {
        Ok((reader.u64("sum")?, reader.u32("len")?, reader.u32("kind")?, reader.u64("seq")?))
    })();
    let Ok((sum, len, kind, seq)) = fields else { return Parsed::Garbage };
    // Length and kind are written last. If the process died before that, there is no record.
    if len == 0 && kind == 0 {
        return Parsed::Zeros;
    }
    let kind = match kind {
        1 => RecordKind::Batch,
        2 => RecordKind::Synced,
        3 => RecordKind::Closed,
        4 => RecordKind::Continued,
        _ => return Parsed::Garbage,
    };
    let total = record_bytes(len as usize);
    if total as u64 > len_max {
        return Parsed::Garbage;
    }
    let payload = bytes.get(RECORD_HEADER_BYTES..RECORD_HEADER_BYTES + len as usize);
    let Some(payload) = payload else { return Parsed::NeedsBytes(total) };
    let seed = checksum(&header[8..], place_seed(nonce, offset));
    if sum != checksum(payload, seed) {
        return Parsed::Garbage;
    }
    Parsed::Record(Record { kind, seq, payload }, total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> SegmentHeader {
        SegmentHeader {
            database: 1,
            segment: 2,
            nonce: 3,
            base: Lsn(4),
            previous: 5,
            previous_end: Lsn(8),
            boot: u128::MAX - 6,
            created_micros: 7,
        }
    }

    #[test]
    fn headers_round_trip_and_flips_are_seen() {
        let bytes = header().encode();
        assert_eq!(bytes.len() as u64, HEADER_BYTES);
        let path = Path::new("1.log");
        assert_eq!(SegmentHeader::decode(&bytes, path).unwrap(), Some(header()));
        for bit in 0..(HEADER_SUMMED_BYTES + 8) * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::decode(&flipped, path).unwrap(), None);
        }
        assert_eq!(SegmentHeader::decode(&bytes[..50], path).unwrap(), None);
    }

    fn record(nonce: u64, offset: u64) -> Vec<u8> {
        let mut bytes =
            record_header(nonce, offset, RecordKind::Batch, 9, &[b"pay", b"load"]).to_vec();
        bytes.extend_from_slice(b"payload");
        bytes.resize(record_bytes(7), 0);
        bytes
    }

    #[test]
    fn records_hold_only_in_their_segment_and_place() {
        let bytes = record(1, 512);
        let parsed = parse_record(&bytes, 1, 512, 1 << 20);
        let wanted = Record { kind: RecordKind::Batch, seq: 9, payload: b"payload" };
        assert_eq!(parsed, Parsed::Record(wanted, 32));
        assert_eq!(parse_record(&bytes, 2, 512, 1 << 20), Parsed::Garbage);
        assert_eq!(parse_record(&bytes, 1, 520, 1 << 20), Parsed::Garbage);
        assert_eq!(parse_record(&bytes, 1, 512, 31), Parsed::Garbage);
        for bit in 0..31 * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let parsed = parse_record(&flipped, 1, 512, 1 << 20);
            assert!(!matches!(parsed, Parsed::Record(..)), "bit {bit}");
        }
    }

    #[test]
    fn short_and_empty_places_are_told_apart() {
        assert_eq!(parse_record(&[0; 40], 1, 512, 1000), Parsed::Zeros);
        assert_eq!(parse_record(&[0; 8], 1, 512, 8), Parsed::Zeros);
        assert_eq!(parse_record(&[1; 8], 1, 512, 8), Parsed::Garbage);
        assert_eq!(parse_record(&[0; 8], 1, 512, 1000), Parsed::NeedsBytes(24));
        assert_eq!(parse_record(&record(1, 512)[..30], 1, 512, 1000), Parsed::NeedsBytes(32));
    }
}
