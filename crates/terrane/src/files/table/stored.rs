//! Blocks as stored in a file: bytes, how they are packed, and a checksum.
//!
//! ```text
//! +---------+-------------+----------+
//! | bytes   | compression | checksum |
//! |         | u8          | u64      |
//! +---------+-------------+----------+
//! ```
//!
//! The checksum covers bytes and compression, and is seeded with the table and the offset. See
//! [`packing`](super::packing) for compressed bytes.

use std::path::Path;

use super::packing::Packing;
use super::padding::{self, PADDED};
use crate::base::checksum::{checksum, checksum_of, place_seed};
use crate::base::error::{Error, Result};

/// The length of the trailer of a block.
pub(crate) const TRAILER_BYTES: usize = 9;

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
    packing: Packing,
    id: TableFileId,
    offset: u64,
) -> [u8; TRAILER_BYTES] {
    let mut trailer = [0; TRAILER_BYTES];
    trailer[0] = packing as u8;
    let mut all = parts.to_vec();
    all.push(&trailer[..1]);
    let sum = checksum_of(&all, id.seed(offset));
    trailer[1..].copy_from_slice(&sum.to_le_bytes());
    trailer
}

/// Appends the compression byte and the checksum to a block in a buffer.
pub(super) fn seal(block: &mut Vec<u8>, packing: Packing, id: TableFileId, offset: u64) {
    block.push(packing as u8);
    let sum = checksum(block, id.seed(offset));
    block.extend_from_slice(&sum.to_le_bytes());
}

/// Appends the trailer to a block that was padded ([`padding`]).
pub(super) fn seal_padded(block: &mut Vec<u8>, packing: Packing, id: TableFileId, offset: u64) {
    block.push(packing as u8 | PADDED);
    let sum = checksum(block, id.seed(offset));
    block.extend_from_slice(&sum.to_le_bytes());
}

/// Verifies a block with its trailer, read from `offset`. Returns its bytes and how they
/// are packed.
pub(crate) fn verify<'a>(
    stored: &'a [u8],
    id: TableFileId,
    offset: u64,
    path: &Path,
    what: &'static str,
) -> Result<(&'a [u8], Packing)> {
    let corrupt = |detail: &str| Error::corruption(path, Some(offset), what, detail);
    let split = stored.len().checked_sub(8).filter(|split| *split > 0);
    let (summed, sum) = stored.split_at(split.ok_or_else(|| corrupt("it is too short"))?);
    if sum != checksum(summed, id.seed(offset)).to_le_bytes() {
        return Err(corrupt("its checksum does not match"));
    }
    let (tag, mut bytes) = summed.split_last().ok_or_else(|| corrupt("it is too short"))?;
    if tag & PADDED != 0 {
        bytes = padding::strip(bytes).ok_or_else(|| corrupt("its padding is not possible"))?;
    }
    let packing = Packing::of_tag(tag & !PADDED);
    let packing = packing.ok_or_else(|| corrupt("its compression is unknown"))?;
    Ok((bytes, packing))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: TableFileId = TableFileId { number: 3, writer: 77 };

    #[test]
    fn blocks_hold_only_at_their_place() {
        let path = Path::new("t");
        let mut stored = b"some bytes".to_vec();
        seal(&mut stored, Packing::Plain, ID, 4096);
        let parts = trailer(&[b"some ", b"bytes"], Packing::Plain, ID, 4096);
        assert_eq!(stored[10..], parts);
        let expected = (&b"some bytes"[..], Packing::Plain);
        assert_eq!(verify(&stored, ID, 4096, path, "x").unwrap(), expected);
        let other = TableFileId { number: 4, ..ID };
        for (id, offset) in [(ID, 0), (other, 4096)] {
            assert!(verify(&stored, id, offset, path, "x").is_err());
        }
        for len in 0..stored.len() {
            assert!(verify(&stored[..len], ID, 4096, path, "x").is_err());
        }
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
