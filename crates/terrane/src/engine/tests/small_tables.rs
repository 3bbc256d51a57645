//! Small tables of the last level.

use std::sync::Arc;

use super::open;
use crate::files::storage::MemoryStorage;
use crate::{Background, Options};

/// Each ingest left a table for ever, so that each edit, pick and opening cost more than the one before.
#[test]
fn ingests_of_single_keys_leave_few_tables() {
    const KEYS: u32 = 200;
    let db = open();
    let tables = || db.tree().shape.table_count();
    for key in 0..KEYS {
        db.ingest([(key.to_be_bytes(), "value")]).unwrap();
        while db.run_background_job().unwrap() {}
    }
    assert!(tables() <= 16, "{} tables", tables());
    assert!(db.stats().joins >= 10);
    // A request joins the rest, but not the tables of other ranges.
    let before = tables();
    db.compact_range(..0u32.to_be_bytes()).unwrap();
    assert_eq!(tables(), before);
    db.compact_range(..).unwrap();
    assert_eq!(tables(), 1);
    assert!((0..KEYS).all(|key| db.get(key.to_be_bytes()).unwrap().unwrap() == "value"));
}

/// A binary search looked for the tables of the range, and passed over those at the beginning.
#[test]
fn a_request_joins_the_first_tables_of_a_level() {
    let db = open();
    for key in 0..7u32 {
        db.ingest([(key.to_be_bytes(), "value")]).unwrap();
    }
    assert_eq!(db.tree().shape.table_count(), 7);
    db.compact_range(..3u32.to_be_bytes()).unwrap();
    assert_eq!(db.tree().shape.table_count(), 5);
}

/// With little memory, tables end before they have the size of the design. They counted as small for
/// ever, and a compaction on request joined them again and again without an end.
#[test]
fn tables_that_end_early_for_lack_of_memory_are_not_joined_for_ever() {
    let storage = Arc::new(MemoryStorage::new(1));
    let options = Options::new().storage(storage).background(Background::Inline);
    let db = options.memory_budget(8 << 20).open("db").unwrap();
    (0..40_000u32).for_each(|key| db.put(key.to_be_bytes(), [7; 20]).unwrap());
    db.compact_range(..).unwrap();
    assert!(db.tree().shape.table_count() > 2, "{:?}", db.tree().shape);
    assert!(db.stats().joins < 10, "{} joins", db.stats().joins);
}
