//! The footer of a table, which locates all other parts.
//!
//! ```text
//! +--------+------------------+-------+------------+--------------+--------+---------+----------+-------+
//! | filter | range tombstones | index | properties | table number | writer | version | checksum | magic |
//! | handle | handle           | handle| handle     | u64          | u64    | u32     | u64      | u64   |
//! +--------+------------------+-------+------------+--------------+--------+---------+----------+-------+
//! handle: | offset u64 | length u32 |, both 0 for a missing part; the length excludes the trailer
//! ```

use std::path::Path;

use crate::base::checksum::checksum;
use crate::base::codec::{Decoded, Reader};
use crate::base::error::{Error, Result};

/// The versions of the table format. Earlier builds cannot read features added later, so a table states
/// the earliest version that has the features it uses.
pub(crate) const PLAIN: u32 = 1;
pub(crate) const WITH_SEPARATED_VALUES: u32 = 2;
/// With padding or blocks of Zstandard, with or without separated values.
pub(crate) const WITH_PADDING_OR_ZSTD: u32 = 3;
/// With values that expire or with operands, and with or without all of the above.
pub(crate) const WITH_MORE_KINDS: u32 = 4;

/// The newest version of the table format.
pub(crate) const TABLE_VERSION: u32 = WITH_MORE_KINDS;

const MAGIC: u64 = u64::from_le_bytes(*b"TERRTABL");
const HANDLE_BYTES: usize = 12;

/// The length of a footer.
pub(crate) const FOOTER_BYTES: usize = 4 * HANDLE_BYTES + 8 + 8 + 4 + 8 + 8;

/// The location of a block: its file offset, and its length without the trailer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Handle {
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

impl Handle {
    pub(crate) fn is_none(&self) -> bool {
        self.len == 0
    }
}

/// The locations of a table's parts, and the table's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) filter: Handle,
    pub(crate) range_tombstones: Handle,
    pub(crate) index: Handle,
    pub(crate) properties: Handle,
    pub(crate) number: u64,
    pub(crate) writer: u64,
    pub(crate) version: u32,
}

impl Default for Footer {
    fn default() -> Self {
        let none = Handle::default();
        Self {
            filter: none,
            range_tombstones: none,
            index: none,
            properties: none,
            number: 0,
            writer: 0,
            version: PLAIN,
        }
    }
}

impl Footer {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        for handle in [self.filter, self.range_tombstones, self.index, self.properties] {
            out.extend_from_slice(&handle.offset.to_le_bytes());
            out.extend_from_slice(&handle.len.to_le_bytes());
        }
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.writer.to_le_bytes());
        out.extend_from_slice(&self.version.to_le_bytes());
        let sum = checksum(&out, MAGIC);
        out.extend_from_slice(&sum.to_le_bytes());
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out
    }

    /// Reads the footer of the file `path`, which is `file_bytes` long.
    pub(crate) fn decode(bytes: &[u8], path: &Path, file_bytes: u64) -> Result<Self> {
        let at = file_bytes.saturating_sub(FOOTER_BYTES as u64);
        let corrupt = |detail: &str| Error::corruption(path, Some(at), "table footer", detail);
        let mut reader = Reader::new(bytes);
        let (footer, sum, magic) =
            Self::read(&mut reader).map_err(|error| corrupt(&error.to_string()))?;
        if magic != MAGIC {
            return Err(corrupt("it is not a table, or it was truncated"));
        }
        let summed = bytes.get(..FOOTER_BYTES - 16).unwrap_or_default();
        if sum != checksum(summed, MAGIC) {
            return Err(corrupt("its checksum does not match"));
        }
        if !(PLAIN..=TABLE_VERSION).contains(&footer.version) {
            let (path, found) = (path.into(), footer.version);
            return Err(Error::Unsupported { path, found, supported: TABLE_VERSION });
        }
        for handle in [footer.filter, footer.range_tombstones, footer.index, footer.properties] {
            let end = handle.offset.checked_add(u64::from(handle.len));
            if end.is_none_or(|end| end > at) {
                return Err(corrupt("it points outside of the file"));
            }
        }
        Ok(footer)
    }

    fn read(reader: &mut Reader<'_>) -> Decoded<(Self, u64, u64)> {
        let mut handle = || -> Decoded<Handle> {
            Ok(Handle { offset: reader.u64("handle")?, len: reader.u32("handle")? })
        };
        let (filter, range_tombstones) = (handle()?, handle()?);
        let (index, properties) = (handle()?, handle()?);
        let number = reader.u64("table number")?;
        let writer = reader.u64("writer")?;
        let version = reader.u32("version")?;
        let footer = Self { filter, range_tombstones, index, properties, number, writer, version };
        Ok((footer, reader.u64("checksum")?, reader.u64("magic")?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn footers_round_trip_and_every_flipped_bit_is_seen() {
        let footer = Footer {
            filter: Handle { offset: 1, len: 2 },
            index: Handle { offset: 3, len: 4 },
            number: 7,
            writer: 9,
            version: WITH_PADDING_OR_ZSTD,
            ..Footer::default()
        };
        let bytes = footer.encode();
        assert_eq!(bytes.len(), FOOTER_BYTES);
        let path = Path::new("t.sst");
        assert_eq!(Footer::decode(&bytes, path, 1000).unwrap(), footer);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Footer::decode(&flipped, path, 1000).is_err(), "bit {bit}");
        }
        assert!(Footer::decode(&bytes[1..], path, 1000).is_err());
        assert!(Footer::decode(&bytes, path, FOOTER_BYTES as u64 + 2).is_err());
    }
}
