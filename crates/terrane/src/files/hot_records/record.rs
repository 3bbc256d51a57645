//! A record, and what it is found by.

use crate::base::types::{EntryKind, SeqNo};
use crate::files::value::Value;

/// The place of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordKey<'a> {
    /// The number of the table.
    pub(crate) table: u64,
    pub(crate) key: &'a [u8],
    /// The hash of the key.
    pub(crate) hash: u64,
}

/// The newest version of a key in a table.
#[derive(Debug, Clone)]
pub(crate) struct HotRecord {
    pub(crate) seq: SeqNo,
    pub(crate) kind: EntryKind,
    pub(crate) value: Value,
}
