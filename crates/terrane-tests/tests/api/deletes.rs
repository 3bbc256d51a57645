//! Deletes of keys and of ranges of keys.

use std::ops::Bound::{Excluded, Included};

use crate::support::{DIR, fill, in_memory, keys, small};

#[test]
fn range_deletes_respect_their_bounds() {
    let db = small();
    fill(&db, 10, 0);
    db.flush().unwrap();
    db.delete_range("001".."003").unwrap();
    db.delete_range("005"..="006").unwrap();
    db.delete_range((Excluded("007"), Included("008"))).unwrap();
    let left = ["000", "003", "004", "007", "009"];
    assert_eq!(keys(db.iter().unwrap()), left);
    db.flush().unwrap();
    assert_eq!(keys(db.iter().unwrap()), left);
    db.delete_range("004"..).unwrap();
    assert_eq!(keys(db.iter().unwrap()), ["000", "003"]);
    db.delete_range(.."003").unwrap();
    assert_eq!(keys(db.iter().unwrap()), ["003"]);
    db.compact_range(..).unwrap();
    assert_eq!(keys(db.iter().unwrap()), ["003"]);
    assert_eq!(db.stats().table_range_tombstones, 0);
    db.delete_range(..).unwrap();
    assert_eq!(db.iter().unwrap().count(), 0);
}

#[test]
fn inverted_and_empty_ranges_delete_nothing_and_cost_nothing() {
    let db = small();
    fill(&db, 10, 0);
    let before = db.stats().writes;
    db.delete_range("005".."005").unwrap();
    db.delete_range("005".."001").unwrap();
    let mut batch = terrane::WriteBatch::new();
    batch.delete_range("9".."1").delete_range(""..="");
    assert_eq!(batch.len(), 1, "the empty key is a key");
    db.write(&batch).unwrap();
    assert_eq!(db.stats().writes, before + 1);
    assert_eq!(db.iter().unwrap().count(), 10);
}

#[test]
fn a_put_after_a_range_delete_is_visible_wherever_both_end_up() {
    let db = small();
    let check = |when: &str| {
        assert_eq!(keys(db.iter().unwrap()), ["004", "100"], "{when}");
        assert_eq!(keys(db.iter().unwrap().rev()), ["100", "004"], "{when}");
        assert_eq!(db.get("004").unwrap().unwrap(), "after", "{when}");
        assert_eq!(db.get("005").unwrap(), None, "{when}");
        let found = db.multi_get(["003", "004", "005"]).unwrap();
        assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, false]);
    };
    fill(&db, 10, 0);
    db.flush().unwrap();
    fill(&db, 10, 1);
    db.put("100", "outside").unwrap();
    db.delete_range("0".."1").unwrap();
    db.put("004", "after").unwrap();
    check("all in memory");
    db.flush().unwrap();
    check("in two runs");
    db.wait_for_compactions().unwrap();
    check("where the design wants them");
    db.compact_range(..).unwrap();
    check("compacted");
    assert_eq!(db.stats().table_entries, 2);
}

#[test]
fn a_range_delete_is_in_the_log() {
    let (options, _) = in_memory();
    let db = options.open(DIR).unwrap();
    fill(&db, 10, 0);
    db.delete_range("002"..).unwrap();
    db.put("005", "again").unwrap();
    drop(db);
    let db = options.open(DIR).unwrap();
    assert_eq!(keys(db.iter().unwrap()), ["000", "001", "005"]);
}

#[test]
fn snapshots_see_the_contents_before_each_range_delete() {
    let db = small();
    let mut snapshots = Vec::new();
    for round in 0..4u32 {
        fill(&db, 10, round);
        snapshots.push((db.snapshot(), 10));
        db.delete_range(format!("{:03}", round * 2).as_str()..).unwrap();
        snapshots.push((db.snapshot(), round as usize * 2));
        if round % 2 == 0 {
            db.flush().unwrap();
        }
    }
    db.compact_range(..).unwrap();
    for (snapshot, count) in &snapshots {
        assert_eq!(snapshot.iter().unwrap().count(), *count);
        let gets = (0..10).filter(|n| snapshot.contains(format!("{n:03}")).unwrap()).count();
        assert_eq!(gets, *count);
    }
}

#[test]
fn tables_that_a_range_delete_covers_are_dropped_unread() {
    let db = small();
    for number in 0..2000u32 {
        db.put(format!("{number:05}"), [7; 100]).unwrap();
    }
    db.flush().unwrap();
    db.compact_range(..).unwrap();
    let before = db.stats();
    assert!(before.table_bytes > 200_000);
    db.delete_range("00010".."01990").unwrap();
    db.compact_range(..).unwrap();
    let stats = db.stats();
    assert!(stats.tables_dropped > 10, "{}", stats.tables_dropped);
    let read = stats.compaction_bytes_read - before.compaction_bytes_read;
    assert_eq!(db.iter().unwrap().count(), 20);
    assert!(stats.table_bytes < 20_000, "{}", stats.table_bytes);
    let written = stats.compaction_bytes_written - before.compaction_bytes_written;
    let most = before.table_bytes / 20;
    assert!(read < most && written < most, "{read} read, {written} written");
}

#[test]
fn deleting_an_absent_key_succeeds() {
    let db = small();
    db.delete("nothing").unwrap();
    db.delete_range("a".."z").unwrap();
    db.flush().unwrap();
    db.compact_range(..).unwrap();
    assert_eq!(db.iter().unwrap().count(), 0);
    assert_eq!(db.stats().table_bytes, 0);
}

/// Each range of a batch used to be stored with the sequence numbers of all ranges around it, which
/// took 275 MiB for the ranges of this test.
#[test]
fn nested_range_deletes_of_one_batch_take_little_memory_and_delete_their_keys() {
    const COUNT: u32 = 6000;
    let (options, _) = in_memory();
    let db = options.memory_budget(256 << 20).open(DIR).unwrap();
    let key = |number: u32| number.to_be_bytes();
    for number in (0..2 * COUNT + 2).step_by(100) {
        db.put(key(number), "before").unwrap();
    }
    let mut batch = terrane::WriteBatch::new();
    for number in 1..=COUNT {
        batch.delete_range(key(number)..key(2 * COUNT + 1 - number));
    }
    // This put comes after some of the ranges that cover it, and before others.
    batch.put(key(COUNT / 2), "between");
    batch.delete_range(key(COUNT - 10)..key(COUNT + 10));
    let before = db.snapshot();
    db.write(&batch).unwrap();
    let memtables = db.stats().memory.memtable_bytes;
    assert!(memtables < 8 << 20, "{memtables} bytes");
    let left = [key(0), key(COUNT / 2), key(2 * COUNT)];
    let check = |when: &str| {
        let found: Vec<_> = db.iter().unwrap().map(|entry| entry.unwrap().0.to_vec()).collect();
        assert_eq!(found, left, "{when}");
        assert_eq!(before.iter().unwrap().count(), 121, "{when}");
        for number in (0..2 * COUNT + 2).step_by(50) {
            let is_left = left.contains(&key(number));
            assert_eq!(db.get(key(number)).unwrap().is_some(), is_left, "{when}: {number}");
        }
    };
    check("in memory");
    db.flush().unwrap();
    check("in a table");
    db.compact_range(..).unwrap();
    check("compacted");
}

/// Nested ranges of many writes take memory in proportion to their depth. They count towards the
/// size at which a memtable rotates.
#[test]
fn nested_range_deletes_of_many_writes_fill_memtables() {
    let (options, _) = in_memory();
    let design: terrane::Design = "tiering T=4; buffer=256KiB".parse().unwrap();
    let db = options.design(design).open(DIR).unwrap();
    let key = |number: u32| number.to_be_bytes();
    for number in 0..4001 {
        db.put(key(number), "before").unwrap();
    }
    let mut most = 0;
    for number in 0..2000 {
        db.delete_range(key(number + 1)..key(4000 - number)).unwrap();
        most = most.max(db.stats().memory.memtable_bytes);
    }
    assert!(most < 4 << 20, "{most} bytes");
    assert!(db.stats().flushes > 0);
    let found: Vec<_> = db.iter().unwrap().map(|entry| entry.unwrap().0.to_vec()).collect();
    assert_eq!(found, [key(0), key(4000)]);
}
