//! Key ranges with entries that could not be read.

use std::path::PathBuf;
use std::sync::Arc;

use terrane_policy::TableInfo;

use crate::files::table::Table;

/// A key range in which a repair could not read all entries. Its keys may be missing from the new
/// database, or have an older value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct LostRange {
    /// The keyspace.
    pub keyspace: String,
    /// The first key of the range.
    pub first: Vec<u8>,
    /// The last key of the range; `None` if it has no end.
    pub last: Option<Vec<u8>>,
    /// The damaged file.
    pub path: PathBuf,
}

/// The damage in a table that a repair reads.
#[derive(Debug)]
pub(super) struct TableLosses {
    table: Arc<Table>,
    /// The last key that could be read.
    last_read: Option<Vec<u8>>,
    ranges: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl TableLosses {
    pub(super) fn of(table: Arc<Table>) -> Self {
        Self { table, last_read: None, ranges: Vec::new() }
    }

    /// Notes a key that was read, after `skipped` damaged blocks; `None` is the end of the table.
    pub(super) fn note(&mut self, skipped: usize, key: Option<&[u8]>) {
        if skipped > 0 {
            let info = self.table.info();
            let first = self.last_read.clone().unwrap_or_else(|| info.range.start.to_vec());
            let last = key.map_or_else(|| last_key(info), |key| Some(key.to_vec()));
            self.ranges.push((first, last));
        }
        self.last_read = key.map(<[u8]>::to_vec);
    }

    /// Notes a key whose value could not be read.
    pub(super) fn note_value(&mut self, key: &[u8]) {
        self.ranges.push((key.to_vec(), Some(key.to_vec())));
    }

    /// Returns the ranges, attributed to a keyspace.
    pub(super) fn ranges(self, keyspace: &str) -> impl Iterator<Item = LostRange> {
        let path = self.table.path().to_owned();
        let keyspace = keyspace.to_owned();
        self.ranges.into_iter().map(move |(first, last)| LostRange {
            keyspace: keyspace.clone(),
            first,
            last,
            path: path.clone(),
        })
    }
}

/// Returns the last key of a table, or the end of its range if the end is exclusive; `None` if the
/// range has no end.
pub(super) fn last_key(table: &TableInfo) -> Option<Vec<u8>> {
    match table.range.end.as_deref()? {
        [last @ .., 0] => Some(last.to_vec()),
        end => Some(end.to_vec()),
    }
}
