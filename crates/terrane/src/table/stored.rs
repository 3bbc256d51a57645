//! Blocks as stored in a file: bytes, compression, and a checksum.
//!
//! ```text
//! +---------+-------------+----------+
//! | bytes   | compression | checksum |
//! |         | u8          | u64      |
//! +---------+-------------+----------+
//! ```
//!
//! The checksum covers bytes and compression, and is seeded with the table and the offset.
//! Compressed bytes begin with their uncompressed length as a u32.

use std::path::Path;

use terrane_policy::Compression;

use crate::checksum::{checksum, checksum_of, place_seed};
use crate::error::{Error, Result};
use crate::types::MAX_VALUE_LEN;

/// The length of the trailer of a block.
pub(crate) const TRAILER_BYTES: usize = 9;

const NONE: u8 = 0;
const LZ4: u8 = 1;

/// The identity of a table file. Table numbers are unique within a database; writer numbers are
/// unique among all openings of all databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TableFileId {
    pub(crate) number: u64,
    pub(crate) writer: u64,
}

impl TableFileId {
    fn seed(self, offset: u64) -> u64 {
        place_seed(self.number ^ self.writer.rotate_left(32), offset)
    }

    /// Returns the name of the file.
    pub(crate) fn file_name(self) -> String {
        format!("{:08}-{:016x}.sst", self.number, self.writer)
    }

    /// Parses the name of a table file.
    pub(crate) fn of_file_name(name: &str) -> Option<Self> {
        let (number, writer) = name.strip_suffix(".sst")?.split_once('-')?;
        let id =
            Self { number: number.parse().ok()?, writer: u64::from_str_radix(writer, 16).ok()? };
        (id.file_name() == name).then_some(id)
    }
}

/// Returns the trailer of a block that consists of `parts`.
pub(super) fn trailer(
    parts: &[&[u8]],
    compressed: bool,
    id: TableFileId,
    offset: u64,
) -> [u8; TRAILER_BYTES] {
    let mut trailer = [0; TRAILER_BYTES];
    trailer[0] = if compressed { LZ4 } else { NONE };
    let mut all = parts.to_vec();
    all.push(&trailer[..1]);
    let sum = checksum_of(&all, id.seed(offset));
    trailer[1..].copy_from_slice(&sum.to_le_bytes());
    trailer
}

/// Appends the compression byte and the checksum to a block in a buffer.
pub(super) fn seal(block: &mut Vec<u8>, compressed: bool, id: TableFileId, offset: u64) {
    block.push(if compressed { LZ4 } else { NONE });
    let sum = checksum(block, id.seed(offset));
    block.extend_from_slice(&sum.to_le_bytes());
}

/// Compresses a block if the design says so and it saves enough.
pub(super) fn compress(block: &[u8], compression: Compression) -> Option<Vec<u8>> {
    match compression {
        Compression::None => None,
        Compression::Lz4 => {
            let packed = lz4_flex::block::compress_prepend_size(block);
            // If compression saves less than an eighth, decompression costs more than the smaller
            // read saves.
            (packed.len() <= block.len() - block.len() / 8).then_some(packed)
        }
    }
}

/// Verifies a block with its trailer, read from `offset`. Returns its bytes and whether they are
/// compressed.
pub(crate) fn verify<'a>(
    stored: &'a [u8],
    id: TableFileId,
    offset: u64,
    path: &Path,
    what: &'static str,
) -> Result<(&'a [u8], bool)> {
    let corrupt = |detail: &str| Error::corruption(path, Some(offset), what, detail);
    let split = stored.len().checked_sub(8).filter(|split| *split > 0);
    let (summed, sum) = stored.split_at(split.ok_or_else(|| corrupt("it is too short"))?);
    if sum != checksum(summed, id.seed(offset)).to_le_bytes() {
        return Err(corrupt("its checksum does not match"));
    }
    match summed.split_last() {
        Some((&NONE, bytes)) => Ok((bytes, false)),
        Some((&LZ4, bytes)) => Ok((bytes, true)),
        _ => Err(corrupt("its compression is unknown")),
    }
}

/// The length of the longest block before compression: a block has at most one large value.
const UNPACKED_LEN_MAX: usize = 2 * MAX_VALUE_LEN;

/// Returns the length of a block before it was compressed. Checks the claimed length, because LZ4
/// compresses by a factor of at most 255.
pub(crate) fn unpacked_len(
    packed: &[u8],
    path: &Path,
    offset: u64,
    what: &'static str,
) -> Result<usize> {
    let corrupt = |detail: &str| Error::corruption(path, Some(offset), what, detail);
    let head = packed.first_chunk::<4>().ok_or_else(|| corrupt("it is too short"))?;
    let len = u32::from_le_bytes(*head) as usize;
    if len > packed.len().saturating_mul(255) || len > UNPACKED_LEN_MAX {
        return Err(corrupt("its uncompressed length is not possible"));
    }
    Ok(len)
}

/// Undoes [`compress`]; `block` has the length that [`unpacked_len`] returns.
pub(crate) fn decompress(
    packed: &[u8],
    block: &mut [u8],
    path: &Path,
    offset: u64,
    what: &'static str,
) -> Result<()> {
    let corrupt = |detail: &str| Error::corruption(path, Some(offset), what, detail);
    let body = packed.get(4..).ok_or_else(|| corrupt("it is too short"))?;
    let len = lz4_flex::block::decompress_into(body, block)
        .map_err(|error| corrupt(&format!("it cannot be decompressed: {error}")))?;
    if len == block.len() { Ok(()) } else { Err(corrupt("its uncompressed length is wrong")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: TableFileId = TableFileId { number: 3, writer: 77 };

    #[test]
    fn blocks_hold_only_at_their_place() {
        let path = Path::new("t");
        let mut stored = b"some bytes".to_vec();
        seal(&mut stored, false, ID, 4096);
        let parts = trailer(&[b"some ", b"bytes"], false, ID, 4096);
        assert_eq!(stored[10..], parts);
        assert_eq!(verify(&stored, ID, 4096, path, "x").unwrap(), (&b"some bytes"[..], false));
        let other = TableFileId { number: 4, ..ID };
        for (id, offset) in [(ID, 0), (other, 4096)] {
            assert!(verify(&stored, id, offset, path, "x").is_err());
        }
        for len in 0..stored.len() {
            assert!(verify(&stored[..len], ID, 4096, path, "x").is_err());
        }
    }

    #[test]
    fn compression_round_trips_and_lies_about_length_are_refused() {
        let bytes = b"abcabcabc".repeat(100);
        let packed = compress(&bytes, Compression::Lz4).unwrap();
        assert!(packed.len() < bytes.len() / 4);
        let unpack = |packed: &[u8]| {
            let mut block = vec![0; unpacked_len(packed, Path::new("t"), 0, "x")?];
            decompress(packed, &mut block, Path::new("t"), 0, "x").map(|()| block)
        };
        assert_eq!(unpack(&packed).unwrap(), bytes);
        assert!(compress(b"\x01\x02\x03", Compression::Lz4).is_none());
        for lie in [u32::MAX, 901, 899] {
            let mut packed = packed.clone();
            packed[..4].copy_from_slice(&lie.to_le_bytes());
            assert!(unpack(&packed).is_err());
        }
        assert!(unpack(&[1]).is_err());
        // Frames cannot be this long.
        let long = [&[0xff; 4][..], &vec![0; 17 << 20]].concat();
        assert!(unpacked_len(&long, Path::new("t"), 0, "x").is_err());
    }

    #[test]
    fn file_names_round_trip() {
        assert_eq!(TableFileId::of_file_name(&ID.file_name()), Some(ID));
        for name in
            ["x.sst", "00000003-77.sst", "3-0000000000000077.sst", "00000003-000000000000004d.log"]
        {
            assert_eq!(TableFileId::of_file_name(name), None, "{name}");
        }
    }
}
