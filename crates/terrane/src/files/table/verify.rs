//! Verifies a table.

use terrane_policy::Expiry;

use super::block::BlockCursor;
use super::reader::Table;
use super::sequential_file::SequentialFile;
use crate::base::error::{Error, Result};
use crate::base::expiry::expires_at_micros;
use crate::base::types::{EntryKind, SeqNo};

impl Table {
    /// Reads the table without the cache and checks it: all checksums, the order and number of
    /// entries, and that all entries are within the range that the manifest states.
    pub(crate) fn verify(&self) -> Result<()> {
        verify(self)
    }
}

fn verify(table: &Table) -> Result<()> {
    table.file.verify_parts(table.opened()?)?;
    let file = SequentialFile::open(&table.file);
    let properties = table.properties()?.clone();
    let wrong = |detail: &str| Error::corruption(table.path(), None, "table", detail);
    let mut entries = BlockCursor::default();
    let mut last: Option<(Vec<u8>, SeqNo)> = None;
    let (mut count, mut tombstones, mut expiry) = (0, 0, None);
    for number in 0..table.block_count()? {
        let offset = table.block_offset(number)?;
        let corrupt =
            |detail: String| Error::corruption(table.path(), Some(offset), "data block", detail);
        entries.set(table.raw_block(&file, number)?).map_err(|error| corrupt(error.to_string()))?;
        entries.seek_first().map_err(|error| corrupt(error.to_string()))?;
        while entries.is_valid() {
            let (key, seq) = (entries.key(), entries.seq());
            let in_order = last.as_ref().is_none_or(|(last, newer)| {
                (&last[..], std::cmp::Reverse(*newer)) < (key, std::cmp::Reverse(seq))
            });
            if !in_order {
                return Err(corrupt("its entries are out of order".into()));
            }
            if !table.info().range.contains(key) {
                return Err(corrupt("it holds a key outside of the table's range".into()));
            }
            if !table.may_contain(super::filter_hash(key))? {
                return Err(corrupt("the filter excludes one of its keys".into()));
            }
            if table.block_of(key)? > number {
                return Err(corrupt("the index does not lead to one of its keys".into()));
            }
            count += 1;
            tombstones += u64::from(entries.kind() == EntryKind::Tombstone);
            if entries.kind() == EntryKind::Expiring {
                expiry =
                    Expiry::combined(expiry, Some(Expiry::of(expires_at_micros(entries.value()))));
            }
            last = Some((key.to_vec(), seq));
            entries.next().map_err(|error| corrupt(error.to_string()))?;
        }
    }
    if count != properties.entries || tombstones != properties.tombstones {
        return Err(wrong("it does not hold as many entries as it says"));
    }
    if expiry != properties.expiry || expiry != table.info().expiry {
        return Err(wrong("its values do not expire when it says, or when the manifest says"));
    }
    if table.info().entries != properties.entries {
        return Err(wrong("it does not hold as many entries as the manifest says"));
    }
    Ok(())
}
