//! The place of a value that is stored apart from its key.
//!
//! ```text
//! pointer: | file varint | offset varint | length varint | checksum u64 |
//! ```
//!
//! A pointer takes the place of the value in a table, in an entry of kind
//! [`EntryKind::Separated`](crate::base::types::EntryKind::Separated). It names the value file by number; the
//! manifest knows the writer, which completes the name. The checksum covers the value and is seeded with the
//! identity of the file and the offset of the value, so a reader accepts only the bytes to which the table
//! refers.

use crate::base::checksum::{checksum, place_seed};
use crate::base::codec::{DecodeError, Decoded, Reader, put_varint};
use crate::base::types::MAX_VALUE_LEN;
use terrane_policy::{ValueFileId, ValueRef};

/// The identity of a value file, which its name states. Value files and tables share their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ValueFileName {
    pub(crate) number: u64,
    /// Random, one for each opening of a database.
    pub(crate) writer: u64,
}

/// The length of a record of a value file without its key and its value.
pub(crate) const RECORD_HEADER_BYTES: usize = 32;

/// Returns the length of a record of a value file. Values in a log segment are counted the same way.
pub(crate) fn record_bytes(key_len: usize, value_len: usize) -> u64 {
    (RECORD_HEADER_BYTES + key_len) as u64 + value_len as u64
}

/// The place of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValuePointer {
    /// The number of the value file.
    pub(crate) file: u64,
    /// The offset of the value in the file.
    pub(crate) offset: u64,
    /// The length of the value.
    pub(crate) len: u32,
    /// The checksum of the value; see [`ValueFileName::checksum`].
    pub(crate) checksum: u64,
}

impl ValueFileName {
    /// Returns the seed of checksums of bytes at `offset`.
    pub(crate) fn seed(self, offset: u64) -> u64 {
        place_seed(self.number ^ self.writer.rotate_left(32), offset)
    }

    /// Returns the checksum of a value at `offset` of the file.
    pub(crate) fn checksum(self, offset: u64, value: &[u8]) -> u64 {
        checksum(value, self.seed(offset))
    }

    /// Returns the name of the file.
    pub(crate) fn file_name(self) -> String {
        format!("{:08}-{:016x}.val", self.number, self.writer)
    }

    /// Returns the number in the type that the policy uses.
    pub(crate) fn id(self) -> ValueFileId {
        ValueFileId(self.number)
    }

    /// Parses the name of a value file.
    pub(crate) fn of_file_name(name: &str) -> Option<Self> {
        let (number, writer) = name.strip_suffix(".val")?.split_once('-')?;
        let id =
            Self { number: number.parse().ok()?, writer: u64::from_str_radix(writer, 16).ok()? };
        (id.file_name() == name).then_some(id)
    }
}

impl ValuePointer {
    /// Appends the encoded pointer.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.file);
        put_varint(out, self.offset);
        put_varint(out, self.len.into());
        out.extend_from_slice(&self.checksum.to_le_bytes());
    }

    /// Decodes a pointer, which must extend to the end of `bytes`.
    pub(crate) fn decode(bytes: &[u8]) -> Decoded<Self> {
        let mut reader = Reader::new(bytes);
        let file = reader.varint("value file")?;
        let offset = reader.varint("value offset")?;
        let len = reader.varint_u32("value length")?;
        let checksum = reader.u64("value checksum")?;
        let end = offset.checked_add(len.into());
        if !reader.is_empty() || len as usize > MAX_VALUE_LEN || end.is_none() {
            return Err(DecodeError::new("value pointer", reader.position()));
        }
        Ok(Self { file, offset, len, checksum })
    }
}

/// Appends how much of each value file a table refers to.
pub(crate) fn put_value_refs(out: &mut Vec<u8>, refs: &[ValueRef]) {
    put_varint(out, refs.len() as u64);
    for used in refs {
        [used.file.0, used.bytes, used.values].iter().for_each(|&number| put_varint(out, number));
    }
}

/// Decodes what [`put_value_refs`] encodes. The files must be in ascending order.
pub(crate) fn value_refs(reader: &mut Reader<'_>) -> Decoded<Vec<ValueRef>> {
    let count = reader.varint("count of value files")?;
    let mut refs: Vec<ValueRef> = Vec::new();
    for _ in 0..count {
        let mut number = || reader.varint("values in a file");
        let used = ValueRef { file: ValueFileId(number()?), bytes: number()?, values: number()? };
        if refs.last().is_some_and(|last| last.file >= used.file) {
            return Err(reader.error("order of value files"));
        }
        refs.push(used);
    }
    Ok(refs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_round_trip_and_other_bytes_are_refused() {
        for pointer in [
            ValuePointer { file: 1, offset: 64, len: 0, checksum: u64::MAX },
            ValuePointer { file: u64::MAX, offset: 1 << 62, len: 1 << 30, checksum: 7 },
        ] {
            let mut bytes = Vec::new();
            pointer.encode(&mut bytes);
            assert_eq!(ValuePointer::decode(&bytes), Ok(pointer));
            for len in 0..bytes.len() {
                assert!(ValuePointer::decode(&bytes[..len]).is_err());
            }
            bytes.push(0);
            assert!(ValuePointer::decode(&bytes).is_err());
        }
        let large = ValuePointer { file: 1, offset: 1, len: (1 << 30) + 1, checksum: 0 };
        let past_end = ValuePointer { offset: u64::MAX, len: 1, ..large };
        for pointer in [large, past_end] {
            let mut bytes = Vec::new();
            pointer.encode(&mut bytes);
            assert!(ValuePointer::decode(&bytes).is_err());
        }
    }

    #[test]
    fn file_names_round_trip() {
        let id = ValueFileName { number: 3, writer: 0x77 };
        assert_eq!(id.file_name(), "00000003-0000000000000077.val");
        assert_eq!(ValueFileName::of_file_name(&id.file_name()), Some(id));
        for name in ["x.val", "00000003-77.val", "00000003-0000000000000077.sst"] {
            assert_eq!(ValueFileName::of_file_name(name), None, "{name}");
        }
        assert_ne!(id.checksum(64, b"value"), id.checksum(65, b"value"));
        let other = ValueFileName { writer: 0x78, ..id };
        assert_ne!(id.checksum(64, b"value"), other.checksum(64, b"value"));
    }
}
