//! Reads a table file without a database.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_policy::{Expiry, KeyRange, TableId, TableInfo};

use super::values::DirectoryValues;
use crate::base::error::{Error, Result};
use crate::base::expiry::{EXPIRY_BYTES, expires_at_micros};
use crate::base::types::EntryKind;
use crate::files::buffer::BufferPool;
use crate::files::storage::{Access, DiskStorage, Storage};
use crate::files::table::{
    FOOTER_BYTES, Footer, Table, TableCursor, TableEnvironment, TableFileId,
};
use crate::files::value::Value;

/// A range tombstone: start, end, sequence numbers.
pub type DeletedRange = (Vec<u8>, Option<Vec<u8>>, Vec<u64>);

/// The properties of a table file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TableReport {
    /// The file.
    pub path: PathBuf,
    /// The number of the table.
    pub number: u64,
    /// The random number of the opening of a database that wrote the table.
    pub writer: u64,
    /// The length of the file in bytes.
    pub size_bytes: u64,
    /// Point entries, including tombstones.
    pub entries: u64,
    /// Distinct keys.
    pub keys: u64,
    /// Point tombstones.
    pub tombstones: u64,
    /// Range tombstones.
    pub range_tombstones: Vec<DeletedRange>,
    /// The entries whose values expire.
    pub expiry: Option<Expiry>,
    /// Total length of the keys in bytes, before encoding.
    pub key_bytes: u64,
    /// Total length of the values in bytes, before compression.
    pub value_bytes: u64,
    /// Data blocks.
    pub blocks: u64,
    /// Bytes of the filter; 0 if there is none.
    pub filter_bytes: u64,
    /// Bytes of the index.
    pub index_bytes: u64,
    /// The smallest sequence number.
    pub smallest_sequence_number: u64,
    /// The largest sequence number.
    pub largest_sequence_number: u64,
    /// Creation time, in microseconds since the Unix epoch.
    pub created_micros: u64,
    /// The key range of the table, as text.
    pub range: String,
    table: Arc<Table>,
}

/// An entry of a table.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TableEntry {
    /// The key.
    pub key: Vec<u8>,
    /// The sequence number of the write.
    pub sequence_number: u64,
    /// The value; `None` for a tombstone.
    pub value: Option<Value>,
    /// When the value expires, in microseconds since the Unix epoch; `None` if it does not.
    pub expires_at_micros: Option<u64>,
    /// Whether the value is an operand, to be combined with the value below it.
    pub is_operand: bool,
}

/// Reads the properties of a table file.
///
/// # Errors
/// Fails if the file is not a table, or its footer, properties, filter, index or range tombstones
/// are corrupt.
pub fn table(path: impl AsRef<Path>) -> Result<TableReport> {
    let path = path.as_ref();
    let table = open(path)?;
    let id = table.id();
    let properties = table.properties()?.clone();
    let (filter_bytes, index_bytes) = table.filter_and_index_bytes()?;
    let fragments = table.fragments()?.iter().map(|fragment| {
        let end = fragment.end.as_ref().map(|end| end.to_vec());
        (fragment.start.to_vec(), end, fragment.seqs.clone())
    });
    let range = KeyRange::new(&properties.start, properties.end.as_deref());
    Ok(TableReport {
        path: path.to_owned(),
        number: id.number,
        writer: id.writer,
        size_bytes: table.info().size_bytes,
        entries: properties.entries,
        keys: properties.keys,
        tombstones: properties.tombstones,
        range_tombstones: fragments.collect(),
        expiry: properties.expiry,
        key_bytes: properties.key_bytes,
        value_bytes: properties.value_bytes,
        blocks: properties.blocks,
        filter_bytes,
        index_bytes,
        smallest_sequence_number: properties.smallest_seq,
        largest_sequence_number: properties.largest_seq,
        created_micros: properties.created_micros,
        range: range.to_string(),
        table,
    })
}

impl TableReport {
    /// Iterates over the entries in order; the iterator ends after the first error. Reads separated
    /// values from the table's directory.
    pub fn iter(&self) -> impl Iterator<Item = Result<TableEntry>> + use<> {
        let dir = self.path.parent().map(Path::to_owned).unwrap_or_default();
        let mut values = None;
        let mut cursor = TableCursor::new(Arc::clone(&self.table));
        let mut has_begun = false;
        let mut has_failed = false;
        std::iter::from_fn(move || {
            if has_failed {
                return None;
            }
            let step = if has_begun { cursor.next() } else { cursor.seek_first() };
            has_begun = true;
            if let Err(error) = step {
                has_failed = true;
                return Some(Err(error));
            }
            cursor.is_valid().then(|| {
                let value = match cursor.kind() {
                    EntryKind::Tombstone => Ok(None),
                    EntryKind::Value | EntryKind::Operand => Ok(Some(cursor.pin_value())),
                    EntryKind::Expiring => Ok(Some(cursor.pin_value().skip(EXPIRY_BYTES))),
                    EntryKind::Separated => {
                        read_separated(&dir, &mut values, cursor.value()).map(Some)
                    }
                };
                let value = value.inspect_err(|_| has_failed = true)?;
                let (key, sequence_number) = (cursor.key().to_vec(), cursor.seq());
                let is_expiring = cursor.kind() == EntryKind::Expiring;
                let expires_at_micros = is_expiring.then(|| expires_at_micros(cursor.value()));
                let is_operand = cursor.kind() == EntryKind::Operand;
                Ok(TableEntry { key, sequence_number, value, expires_at_micros, is_operand })
            })
        })
    }
}

/// Reads a separated value. Finds the directory's value files when the first one is needed.
fn read_separated(
    dir: &Path,
    values: &mut Option<DirectoryValues>,
    pointer: &[u8],
) -> Result<Value> {
    let values = match values {
        Some(values) => values,
        none => none.insert(DirectoryValues::find(dir)?),
    };
    values.read(pointer)
}

/// Opens a table from its footer alone.
pub(super) fn open(path: &Path) -> Result<Arc<Table>> {
    let io = |error| Error::io("read", path, error);
    let size_bytes = DiskStorage.len(path).map_err(io)?;
    let at = size_bytes.checked_sub(FOOTER_BYTES as u64);
    let at =
        at.ok_or_else(|| Error::corruption(path, None, "table", "it is shorter than a footer"))?;
    let mut footer = vec![0; FOOTER_BYTES];
    let file = DiskStorage.open(path, Access::Buffered).map_err(io)?;
    file.read_at(at, &mut footer).map_err(io)?;
    let footer = Footer::decode(&footer, path, size_bytes)?;
    let id = TableFileId { number: footer.number, writer: footer.writer };
    let mut info = TableInfo::new(id.number, KeyRange::all(), size_bytes);
    info.id = TableId(id.number);
    Ok(Table::at(id, Arc::new(info), path.to_owned(), &environment()))
}

/// Returns an environment that reads tables with system calls through a small cache.
pub(super) fn environment() -> Arc<TableEnvironment> {
    let buffer = BufferPool::new(8 << 20);
    Arc::new(TableEnvironment::alone(Arc::new(DiskStorage), Access::Buffered, buffer))
}
