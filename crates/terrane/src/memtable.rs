//! A memtable without a database, to measure the data structure alone.

use std::sync::Arc;

pub use terrane_memtable::{EntryKind, MAX_SEQ, MemoryUse, Memtable, Pool};
use terrane_policy::MemtableKind;

use crate::engine::memtable_config;

/// Returns an empty memtable as a tree of this design with a buffer of this size would create.
pub fn new(kind: MemtableKind, buffer_bytes: u64, pool: &Arc<Pool>) -> Arc<Memtable> {
    Memtable::new(memtable_config(kind, buffer_bytes, None), pool)
}

/// As [`new`], but sized for keys and entries like those of `before`, as at a rotation.
pub fn new_after(
    before: &Memtable,
    kind: MemtableKind,
    buffer_bytes: u64,
    pool: &Arc<Pool>,
) -> Arc<Memtable> {
    Memtable::new_after(before, memtable_config(kind, buffer_bytes, Some(before)), pool)
}
