//! Headers and records of value files.
//!
//! ```text
//! header: | magic u64 | version u32 | keyspace u32 | number u64 | writer u64 | created u64 |
//!         | checksum u64 | zeros, up to 64 bytes |
//! record: | checksum u64 | value checksum u64 | sequence number u64 | key length u32 |
//!         | value length u32 | key | value |
//! ```
//!
//! The checksum of a header covers the bytes before it. The checksum of a record covers the bytes
//! after it up to the end of the key, and is seeded with the file and the offset of the record. A
//! value's checksum is the same as in its pointer.

use std::path::Path;

use crate::base::checksum::{checksum, checksum_of};
use crate::base::codec::{Decoded, Reader};
use crate::base::error::{Error, Result};
use crate::base::types::{MAX_KEY_LEN, MAX_SEQ, MAX_VALUE_LEN, SeqNo};
use crate::files::value_pointer::{RECORD_HEADER_BYTES, ValueFileName};

/// The newest version of the format, and the only one so far.
const VERSION: u32 = 1;

const MAGIC: u64 = u64::from_le_bytes(*b"TERRVALS");
const SUMMED_BYTES: usize = 40;

/// The length of a header.
pub(crate) const VALUE_FILE_HEADER_BYTES: usize = 64;

/// The header of a value file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValueFileHeader {
    pub(crate) keyspace: u32,
    pub(crate) name: ValueFileName,
    pub(crate) created_micros: u64,
}

impl ValueFileHeader {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(VALUE_FILE_HEADER_BYTES);
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.keyspace.to_le_bytes());
        out.extend_from_slice(&self.name.number.to_le_bytes());
        out.extend_from_slice(&self.name.writer.to_le_bytes());
        out.extend_from_slice(&self.created_micros.to_le_bytes());
        let sum = checksum(&out, MAGIC);
        out.extend_from_slice(&sum.to_le_bytes());
        out.resize(VALUE_FILE_HEADER_BYTES, 0);
        out
    }

    /// Decodes the first bytes of the file `path`.
    pub(super) fn decode(bytes: &[u8], path: &Path) -> Result<Self> {
        let corrupt = |detail: &str| Error::corruption(path, Some(0), "value file", detail);
        let read = Self::read(&mut Reader::new(bytes));
        let (magic, version, header, sum) = read.map_err(|error| corrupt(&error.to_string()))?;
        if magic != MAGIC {
            return Err(corrupt("it is not a value file"));
        }
        if sum != checksum(bytes.get(..SUMMED_BYTES).unwrap_or_default(), MAGIC) {
            return Err(corrupt("the checksum of its header does not match"));
        }
        if version != VERSION {
            let path = path.into();
            return Err(Error::Unsupported { path, found: version, supported: VERSION });
        }
        Ok(header)
    }

    fn read(reader: &mut Reader<'_>) -> Decoded<(u64, u32, Self, u64)> {
        let (magic, version) = (reader.u64("magic")?, reader.u32("version")?);
        let keyspace = reader.u32("keyspace")?;
        let name = ValueFileName { number: reader.u64("number")?, writer: reader.u64("writer")? };
        let created_micros = reader.u64("creation time")?;
        let header = Self { keyspace, name, created_micros };
        Ok((magic, version, header, reader.u64("checksum")?))
    }
}

/// The part of a record before its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordHeader {
    checksum: u64,
    pub(super) value_checksum: u64,
    pub(super) seq: SeqNo,
    pub(super) key_len: usize,
    pub(super) value_len: usize,
}

impl RecordHeader {
    /// Returns the encoded header of a record at `offset` of a file.
    pub(super) fn encode(
        name: ValueFileName,
        offset: u64,
        (key, seq): (&[u8], SeqNo),
        (value_len, value_checksum): (usize, u64),
    ) -> [u8; RECORD_HEADER_BYTES] {
        let mut out = [0; RECORD_HEADER_BYTES];
        out[8..16].copy_from_slice(&value_checksum.to_le_bytes());
        out[16..24].copy_from_slice(&seq.to_le_bytes());
        out[24..28].copy_from_slice(&(key.len() as u32).to_le_bytes());
        out[28..].copy_from_slice(&(value_len as u32).to_le_bytes());
        let sum = checksum_of(&[&out[8..], key], name.seed(offset));
        out[..8].copy_from_slice(&sum.to_le_bytes());
        out
    }

    /// Decodes a header and checks its limits, but not its checksum, because the key is not known yet.
    pub(super) fn decode(bytes: &[u8]) -> Decoded<Self> {
        let mut reader = Reader::new(bytes);
        let header = Self {
            checksum: reader.u64("record checksum")?,
            value_checksum: reader.u64("value checksum")?,
            seq: reader.u64("sequence number")?,
            key_len: reader.u32("key length")? as usize,
            value_len: reader.u32("value length")? as usize,
        };
        let is_valid = header.key_len <= MAX_KEY_LEN
            && header.value_len <= MAX_VALUE_LEN
            && header.seq <= MAX_SEQ;
        if is_valid { Ok(header) } else { Err(reader.error("record header")) }
    }

    /// Returns true if the encoded header `bytes` and `key` match the checksum of a record at
    /// `offset`.
    pub(super) fn is_valid(
        &self,
        name: ValueFileName,
        offset: u64,
        bytes: &[u8],
        key: &[u8],
    ) -> bool {
        let summed = bytes.get(8..RECORD_HEADER_BYTES).unwrap_or_default();
        self.checksum == checksum_of(&[summed, key], name.seed(offset))
    }
}
