//! A memtable alone, without a database: for measuring what the structure itself does.

use std::sync::Arc;

pub use terrane_memtable::{EntryKind, MAX_SEQ, MemoryUse, Memtable, Pool};
use terrane_policy::MemtableKind;

use crate::engine::memtable_config;

/// An empty memtable of a kind, as a tree of that design with a buffer of this size would have it.
pub fn new(kind: MemtableKind, buffer_bytes: u64, pool: &Arc<Pool>) -> Arc<Memtable> {
    Memtable::new(memtable_config(kind, buffer_bytes, None), pool)
}

/// As [`new`], in the place of `before`: it expects keys and entries such as that one holds.
pub fn new_after(
    before: &Memtable,
    kind: MemtableKind,
    buffer_bytes: u64,
    pool: &Arc<Pool>,
) -> Arc<Memtable> {
    Memtable::new_after(before, memtable_config(kind, buffer_bytes, Some(before)), pool)
}
