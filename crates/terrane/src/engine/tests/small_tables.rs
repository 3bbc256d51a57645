//! Small tables of the last level.

use super::open;

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
