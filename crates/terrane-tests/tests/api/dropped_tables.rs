//! Flushing a range delete drops the tables that it covers, without a compaction. Tables that
//! readers still use are removed soon after the last reader.

use std::path::Path;
use std::sync::Arc;

use terrane::storage::{Crash, MemoryStorage, Storage, Survival};
use terrane::{Background, Db, Options};
use terrane_testkit::wait_until;

use crate::support::{DIR, in_memory, keys, small, small_design};

/// Puts 2000 keys, which end up in many tables of the last level.
fn fill_and_settle(db: &Db) {
    for number in 0..2000u32 {
        db.put(format!("{number:05}"), [7; 100]).unwrap();
    }
    db.compact_range(..).unwrap();
    assert!(db.tree().shape.table_count() > 40 && db.stats().table_bytes > 200_000);
}

fn left() -> Vec<String> {
    (0..10).chain(1990..2000).map(|number: u32| format!("{number:05}")).collect()
}

#[test]
fn covered_tables_are_dropped_by_one_edit_without_a_read() {
    let db = small();
    fill_and_settle(&db);
    let before = db.stats();
    db.delete_range("00010".."01990").unwrap();
    db.flush().unwrap();
    assert!(db.run_background_job().unwrap());
    let stats = db.stats();
    assert!(stats.tables_dropped > 40, "{}", stats.tables_dropped);
    assert!(stats.table_bytes < 20_000, "{}", stats.table_bytes);
    assert_eq!(stats.compactions, before.compactions);
    assert_eq!(stats.compaction_bytes_read, before.compaction_bytes_read);
    // Only the tombstones and the index of their table were read.
    assert!(stats.table_bytes_read - before.table_bytes_read < 4096);
    // The tables at the ends stay, because the tombstone covers them in part.
    assert_eq!(stats.table_range_tombstones, 1);
    assert_eq!(keys(db.iter().unwrap()), left());
    assert_eq!(db.get("00500").unwrap(), None);
    db.put("00500", "again").unwrap();
    assert_eq!(db.iter().unwrap().count(), 21);
    db.compact_range(..).unwrap();
    assert_eq!(db.iter().unwrap().rev().count(), 21);
    assert_eq!(db.stats().table_range_tombstones, 0);
}

#[test]
fn files_of_dropped_tables_are_removed_with_the_last_reader() {
    let (options, storage) = in_memory();
    let db = options.design(small_design()).open(DIR).unwrap();
    fill_and_settle(&db);
    let mut iter = db.iter().unwrap();
    assert!(iter.advance().unwrap());
    db.delete_range(..).unwrap();
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let tables = || {
        let names = storage.list(Path::new(DIR)).unwrap();
        names.iter().filter(|name| name.ends_with(".sst")).count()
    };
    assert!(db.stats().table_bytes < 1000 && tables() > 40);
    assert_eq!(iter.count(), 1999, "an iterator sees the entries from its creation to the end");
    assert!(tables() <= 1);
    assert_eq!(db.iter().unwrap().count(), 0);
}

#[test]
fn an_older_snapshot_keeps_covered_tables_until_it_is_released() {
    for background in [Background::Inline, Background::Threads] {
        let (options, _) = in_memory();
        let db = options.design(small_design()).background(background).open(DIR).unwrap();
        fill_and_settle(&db);
        let older = db.snapshot();
        db.delete_range("00010".."01990").unwrap();
        let newer = db.snapshot();
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
        assert!(db.stats().table_bytes > 200_000);
        assert_eq!(older.iter().unwrap().count(), 2000);
        assert_eq!(older.get("01000").unwrap().unwrap().len(), 100);
        assert_eq!(keys(newer.iter().unwrap()), left());
        drop(older);
        // The snapshot was taken after the delete, so it keeps no deleted entry.
        db.wait_for_compactions().unwrap();
        assert!(db.stats().table_bytes < 20_000, "{background:?} {}", db.stats());
        assert!(db.stats().tables_dropped > 40);
        assert_eq!(keys(newer.iter().unwrap()), left());
        assert_eq!(newer.get("01000").unwrap(), None);
    }
}

#[test]
fn background_threads_drop_covered_tables() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().design(small_design()).memory_budget(16 << 20);
    let db = options.open(dir.path()).unwrap();
    fill_and_settle(&db);
    db.delete_range("00010".."01990").unwrap();
    db.flush().unwrap();
    wait_until(|| db.stats().table_bytes <= 20_000, || db.stats().to_string());
    assert_eq!(keys(db.iter().unwrap()), left());
}

#[test]
fn entries_below_a_dropped_table_stay_deleted() {
    let db = small();
    // Older versions lie in tables that the delete covers in part, below newer ones in tables that
    // it covers completely, among them tombstones and a range tombstone.
    db.put("a", "old").unwrap();
    db.put("m", "old").unwrap();
    db.put("n", "old").unwrap();
    db.put("z", "old").unwrap();
    db.compact_range(..).unwrap();
    db.put("k", "new").unwrap();
    db.delete("m").unwrap();
    db.delete_range("n".."o").unwrap();
    db.put("p", "new").unwrap();
    db.flush().unwrap();
    let dropped = db.stats().tables_dropped;
    db.delete_range("b".."y").unwrap();
    db.flush().unwrap();
    db.run_background_job().unwrap();
    let shape = db.tree().shape;
    assert_eq!(db.stats().tables_dropped, dropped + 1, "{shape}");
    let check = |when: &str| {
        assert_eq!(keys(db.iter().unwrap()), ["a", "z"], "{when}");
        for key in ["k", "m", "n", "p"] {
            assert_eq!(db.get(key).unwrap(), None, "{key} {when}");
        }
    };
    check("dropped");
    db.wait_for_compactions().unwrap();
    check("at rest");
    db.compact_range("b".."c").unwrap();
    check("compacted in part");
    db.compact_range(..).unwrap();
    check("compacted");
}

#[test]
fn dropped_tables_stay_gone_after_reopening_and_crashes() {
    let (options, storage) = in_memory();
    let db = options.clone().design(small_design()).open(DIR).unwrap();
    fill_and_settle(&db);
    storage.track_crash_points();
    storage.mark(0);
    db.delete_range("00010".."01990").unwrap();
    db.flush().unwrap();
    storage.mark(1);
    db.wait_for_compactions().unwrap();
    assert!(db.stats().tables_dropped > 40);
    drop(db);
    let points = storage.take_crash_points();
    assert!(points.len() > 4);
    for point in points {
        for percent in [0, 40, 100] {
            let crash = Crash::Power(Survival { percent, seed: 7 });
            let image = point.image(crash);
            let db = options.clone().storage(Arc::new(image.clone())).open(DIR).unwrap();
            let found = keys(db.iter().unwrap());
            if point.mark() > 0 || found.len() != 2000 {
                assert_eq!(found, left(), "{}", point.operation());
            }
            drop(db);
            assert!(tables_are_consistent(&options, &image));
        }
    }
    let db = options.open(DIR).unwrap();
    assert_eq!(keys(db.iter().unwrap()), left());
    assert!(db.stats().table_bytes < 20_000);
}

fn tables_are_consistent(options: &Options, image: &MemoryStorage) -> bool {
    let db = options.clone().storage(Arc::new(image.clone())).open(DIR).unwrap();
    db.compact_range(..).unwrap();
    let count = db.iter().unwrap().count();
    count == 20 || count == 2000
}

/// With threads, the last reader only releases the tables. A background thread removes them.
#[test]
fn tables_that_an_iterator_pinned_are_removed_soon_after_it() {
    let storage = MemoryStorage::new(1);
    let options = Options::new().storage(Arc::new(storage.clone())).design(small_design());
    let db = options.open(DIR).unwrap();
    fill_and_settle(&db);
    let held = db.iter().unwrap();
    for number in 0..2000u32 {
        db.put(format!("{number:05}"), [8; 100]).unwrap();
    }
    db.compact_range(..).unwrap();
    let files = || {
        let names = storage.list(Path::new(DIR)).unwrap();
        names.iter().filter(|name| name.ends_with(".sst")).count()
    };
    assert!(files() > db.tree().shape.table_count() + 30, "the iterator reads them");
    assert!(held.map(Result::unwrap).all(|(_, value)| *value == [7; 100]));
    let are_removed = || files() <= db.tree().shape.table_count();
    wait_until(are_removed, || format!("{} files of {}", files(), db.tree()));
    db.close().unwrap();
}
