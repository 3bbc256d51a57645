//! Small databases in memory, and their contents as text.

use std::sync::Arc;

use terrane::storage::MemoryStorage;
use terrane::{Background, Db, Design, Iter, Options};

pub(crate) const DIR: &str = "db";

/// Returns a design that flushes and compacts after a few kilobytes.
pub(crate) fn small_design() -> Design {
    "1-leveling T=4 L0=2 base=16KiB; buffer=4KiB; table=4KiB; block=512B".parse().unwrap()
}

/// Returns a design of the catalogue, with sizes that a few kilobytes fill.
pub(crate) fn tiny(name: &str) -> Design {
    let mut design: Design = name.parse().unwrap();
    (design.buffer_bytes, design.table_bytes, design.block_bytes) = (4 << 10, 4 << 10, 512);
    design.strategy.size_ratio = design.strategy.size_ratio.min(3);
    design.strategy.level0_runs = design.strategy.level0_runs.min(3);
    design.strategy.base_bytes = design.strategy.base_bytes.map(|_| 16 << 10);
    design
}

/// Returns options for files in memory, and the files.
pub(crate) fn in_memory() -> (Options, MemoryStorage) {
    let storage = MemoryStorage::new(1);
    let options = Options::new()
        .storage(Arc::new(storage.clone()))
        .background(Background::Inline)
        .memory_budget(16 << 20)
        .log_segment_bytes(64 << 10);
    (options, storage)
}

/// Opens a small database in memory with inline background work.
pub(crate) fn small() -> Db {
    in_memory().0.design(small_design()).open(DIR).unwrap()
}

/// Returns the keys and values of an iterator as text. Panics at an error.
pub(crate) fn pairs(iter: Iter) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    iter.map(|entry| entry.map(|(key, value)| (text(&key), text(&value))).unwrap()).collect()
}

/// Returns the keys of an iterator as text.
pub(crate) fn keys(
    iter: impl Iterator<Item = terrane::Result<(terrane::Key, terrane::Value)>>,
) -> Vec<String> {
    iter.map(|entry| entry.unwrap().0.escape_ascii().to_string()).collect()
}

/// Puts keys `000` to `count - 1` with values that name key and round.
pub(crate) fn fill(db: &Db, count: u32, round: u32) {
    for number in 0..count {
        db.put(format!("{number:03}"), value(number, round)).unwrap();
    }
}

pub(crate) fn value(number: u32, round: u32) -> String {
    format!(
        "value {number} of round {round}, which is long enough to be stored outside of a handle"
    )
}
