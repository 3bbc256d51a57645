//! Reads MANIFEST, the log of version edits of LevelDB and RocksDB.
//!
//! The log consists of blocks of 32 KiB. A record in it has a header of seven bytes: a checksum of
//! four, the length of two, and a type: 1 for a whole edit, 2, 3 and 4 for its first, middle and last
//! part; with 4 added, the header has four more bytes. An edit is a sequence of fields, each a tag and
//! its contents. Numbers are varints, and strings have their length in front. LevelDB's
//! `doc/impl.md` and `doc/log_format.md` describe this; RocksDB has added tags.

use std::path::Path;

use anyhow::{Context, Result, bail};

const BLOCK_BYTES: usize = 32 << 10;
const HEADER_BYTES: usize = 7;
/// Bytes of sequence number and type at the end of a key.
const KEY_SUFFIX_BYTES: usize = 8;
/// Fields with this bit have their length in front, and may be skipped.
const SKIPPABLE: u64 = 1 << 13;

/// Tables that leave the tree and those that enter it.
#[derive(Debug, Clone, Default)]
pub(super) struct Edit {
    /// Level and number.
    pub(super) deleted: Vec<(usize, u64)>,
    /// Level and table.
    pub(super) added: Vec<(usize, NewTable)>,
}

/// A table that enters the tree.
#[derive(Debug, Clone)]
pub(super) struct NewTable {
    pub(super) number: u64,
    pub(super) bytes: u64,
    pub(super) smallest: Vec<u8>,
    pub(super) largest: Vec<u8>,
    /// The smallest and the largest sequence number; zeroes if they are not recorded.
    pub(super) sequence: (u64, u64),
}

/// Reads the edits of the database in `dir`.
pub(super) fn read(dir: &Path) -> Result<Vec<Edit>> {
    let current = std::fs::read_to_string(dir.join("CURRENT")).context("CURRENT")?;
    let bytes = std::fs::read(dir.join(current.trim())).context("MANIFEST")?;
    records(&bytes)?.iter().map(|record| Fields(record).edit()).collect()
}

fn records(bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut records = Vec::new();
    let mut record = Vec::new();
    for block in bytes.chunks(BLOCK_BYTES) {
        let mut rest = block;
        while let Some((header, after)) = rest.split_at_checked(HEADER_BYTES) {
            let length = usize::from(u16::from_le_bytes([header[4], header[5]]));
            let kind = header[6];
            if kind == 0 && length == 0 {
                break;
            }
            let recycled = if kind > 4 { 4 } else { 0 };
            let body = after.get(recycled..recycled + length).context("MANIFEST ends early")?;
            rest = &after[recycled + length..];
            record.extend_from_slice(body);
            match (kind - 1) % 4 {
                0 | 3 => records.push(std::mem::take(&mut record)),
                _ => {}
            }
        }
    }
    Ok(records)
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn number(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().context("an edit ends early")?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        bail!("a number of an edit is too long")
    }

    fn string(&mut self) -> Result<&'a [u8]> {
        let length = usize::try_from(self.number()?)?;
        let (text, rest) = self.0.split_at_checked(length).context("an edit ends early")?;
        self.0 = rest;
        Ok(text)
    }

    fn key(&mut self) -> Result<Vec<u8>> {
        let key = self.string()?;
        let length = key.len().checked_sub(KEY_SUFFIX_BYTES).context("a key is too short")?;
        Ok(key[..length].to_vec())
    }

    fn level(&mut self) -> Result<usize> {
        Ok(usize::try_from(self.number()?)?)
    }

    fn edit(mut self) -> Result<Edit> {
        let mut edit = Edit::default();
        while !self.0.is_empty() {
            match self.number()? {
                // The comparator, and the name of a column family.
                1 | 201 => drop(self.string()?),
                // Numbers of logs, of the next file, of the last write, and of column families.
                2 | 3 | 4 | 9 | 10 | 200 | 203 | 300 => drop(self.number()?),
                202 => {}
                // A position of round-robin movement.
                5 => {
                    self.level()?;
                    self.string()?;
                }
                6 => edit.deleted.push((self.level()?, self.number()?)),
                7 => {
                    let table = self.table()?;
                    edit.added.push(table);
                }
                103 => {
                    let mut table = self.table()?;
                    table.1.sequence = (self.number()?, self.number()?);
                    // Further facts, up to an end mark.
                    while self.number()? != 1 {
                        self.string()?;
                    }
                    edit.added.push(table);
                }
                tag if tag & SKIPPABLE != 0 => drop(self.string()?),
                tag => bail!("MANIFEST has a field with the unknown tag {tag}"),
            }
        }
        Ok(edit)
    }

    fn table(&mut self) -> Result<(usize, NewTable)> {
        let level = self.level()?;
        let (number, bytes) = (self.number()?, self.number()?);
        let (smallest, largest) = (self.key()?, self.key()?);
        Ok((level, NewTable { number, bytes, smallest, largest, sequence: (0, 0) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_joined_across_blocks() {
        let mut log = vec![0, 0, 0, 0, 2, 0, 1, 7, 7];
        let first = BLOCK_BYTES - log.len() - HEADER_BYTES;
        log.extend([0, 0, 0, 0]);
        log.extend(u16::try_from(first).unwrap().to_le_bytes());
        log.push(2);
        log.resize(BLOCK_BYTES, 5);
        log.extend([0, 0, 0, 0, 1, 0, 4, 9]);
        let found = records(&log).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], [7, 7]);
        assert_eq!((found[1].len(), found[1].last()), (first + 1, Some(&9)));
        assert!(records(&log[..20]).is_err());
    }

    #[test]
    fn edits_have_tables_with_their_user_keys() {
        let mut fields = vec![2, 5, 6, 1, 8, 7, 0, 12, 0x80, 0x08];
        for key in [b'a', b'z'] {
            fields.extend([9, key, 0, 0, 0, 0, 0, 0, 0, 1]);
        }
        let edit = Fields(&fields).edit().unwrap();
        assert_eq!(edit.deleted, [(1, 8)]);
        let (level, table) = &edit.added[0];
        assert_eq!((*level, table.number, table.bytes), (0, 12, 1024));
        assert_eq!((&table.smallest[..], &table.largest[..]), (&b"a"[..], &b"z"[..]));
        assert!(Fields(&[99]).edit().is_err());
    }
}
