//! Newtypes for numbers.

use std::fmt;

pub(crate) use terrane_memtable::{EntryKind, MAX_SEQ, SeqNo};
pub use terrane_memtable::{MAX_KEY_LEN, MAX_VALUE_LEN};

/// A position in the log: the total length in bytes of the records before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lsn(pub(crate) u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The number of a keyspace, never reused within a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct KeyspaceId(pub(crate) u32);

/// The number of the default keyspace, which every database has.
pub(crate) const DEFAULT_KEYSPACE: KeyspaceId = KeyspaceId(0);

impl fmt::Display for KeyspaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
