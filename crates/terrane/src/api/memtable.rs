//! A memtable without a database, to measure the data structure alone.

use std::sync::Arc;

use terrane_memtable::ExpectedKeys;
pub use terrane_memtable::{EntryKind, FrontLevel, MAX_SEQ, MemoryUse, Memtable, Pool};
use terrane_policy::MemtableKind;

use crate::engine::memtable_config;

/// Returns an empty memtable like those of a tree whose design has this kind and buffer size.
pub fn new(kind: MemtableKind, buffer_bytes: u64, pool: &Arc<Pool>) -> Arc<Memtable> {
    Memtable::new(memtable_config(kind, buffer_bytes, None), pool)
}

/// Does the same as [`new`], but sizes the memtable for keys and entries like those in `before`, as
/// a rotation does.
pub fn new_after(
    before: &Memtable,
    kind: MemtableKind,
    buffer_bytes: u64,
    pool: &Arc<Pool>,
) -> Arc<Memtable> {
    let config = memtable_config(kind, buffer_bytes, Some(before));
    Memtable::with_keys(config, pool, ExpectedKeys::Like(before))
}

#[cfg(test)]
mod tests {
    use terrane_memtable::Config;

    use super::*;

    /// A new kind must have an example here; otherwise no test of the engine would use it.
    #[test]
    fn every_kind_of_memtable_is_reached_from_an_example() {
        let examples = MemtableKind::EXAMPLES.iter().map(|text| text.parse().unwrap());
        let kinds: Vec<&str> =
            examples.map(|kind| memtable_config(kind, 1 << 20, None).kind()).collect();
        for kind in Config::KINDS {
            assert!(kinds.contains(kind), "{kind} has no example in {:?}", MemtableKind::EXAMPLES);
        }
    }
}
