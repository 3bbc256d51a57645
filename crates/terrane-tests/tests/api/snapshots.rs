//! Snapshots do not change, whatever happens to the database.

use terrane::KeyspaceOptions;

use crate::support::{DIR, fill, in_memory, keys, pairs, small, small_design, value};

#[test]
fn a_snapshot_stays_through_flushes_compactions_range_deletes_and_the_end_of_the_handle() {
    let db = small();
    fill(&db, 100, 0);
    let snapshot = db.snapshot();
    let before = pairs(db.iter().unwrap());
    let check = |when: &str| {
        assert_eq!(pairs(snapshot.iter().unwrap()), before, "{when}");
        let mut back = keys(snapshot.iter().unwrap().rev());
        back.reverse();
        assert!(back.iter().eq(before.iter().map(|(key, _)| key)), "{when}");
        assert_eq!(snapshot.get("050").unwrap().unwrap(), value(50, 0), "{when}");
        assert_eq!(snapshot.get("100").unwrap(), None, "{when}");
        assert!(snapshot.contains("000").unwrap() && !snapshot.contains("x").unwrap());
        let several = snapshot.multi_get(["099", "x", "000"]).unwrap();
        assert_eq!(several[0].as_deref(), Some(value(99, 0).as_bytes()));
        assert!(several[1].is_none() && several[2].is_some());
        assert_eq!(keys(snapshot.range("010"..="012").unwrap()), ["010", "011", "012"]);
        assert_eq!(keys(snapshot.prefix("09").unwrap()).len(), 10);
    };
    check("at once");
    fill(&db, 120, 1);
    check("after overwrites");
    db.flush().unwrap();
    check("after a flush");
    db.delete("050").unwrap();
    db.delete_range("000".."090").unwrap();
    check("after a range delete");
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    db.compact_range(..).unwrap();
    check("after a compaction");
    assert_eq!(db.iter().unwrap().count(), 30);
    drop(db);
    check("after the handle is gone");
}

#[test]
fn space_that_only_a_snapshot_needs_is_freed_with_it() {
    let db = small();
    fill(&db, 200, 0);
    db.flush().unwrap();
    let snapshot = db.snapshot();
    let clone = snapshot.clone();
    assert_eq!(db.stats().snapshots, 1);
    db.delete_range(..).unwrap();
    db.compact_range(..).unwrap();
    assert!(db.stats().table_entries >= 200);
    drop(snapshot);
    assert_eq!(clone.iter().unwrap().count(), 200);
    drop(clone);
    assert_eq!(db.stats().snapshots, 0);
    db.compact_range(..).unwrap();
    let stats = db.stats();
    assert_eq!((stats.table_entries, stats.table_bytes), (0, 0));
}

#[test]
fn a_snapshot_covers_all_keyspaces_at_one_sequence_number() {
    let db = small();
    let other = db.keyspace("other", KeyspaceOptions::new().design(small_design())).unwrap();
    db.put("k", "1").unwrap();
    other.put("k", "one").unwrap();
    let first = db.snapshot();
    other.put("k", "two").unwrap();
    let second = db.snapshot();
    other.delete("k").unwrap();
    db.flush().unwrap();
    assert!(first.sequence_number() < second.sequence_number());
    assert_eq!(first.get_in(&other, "k").unwrap().unwrap(), "one");
    assert_eq!(second.get_in(&other, "k").unwrap().unwrap(), "two");
    assert_eq!(keys(second.range_in(&other, ..).unwrap()), ["k"]);
    assert_eq!(first.get("k").unwrap().unwrap(), "1");
    assert_eq!(other.get("k").unwrap(), None);
}

#[test]
fn a_snapshot_of_a_read_only_database_reads_its_contents() {
    let (options, _) = in_memory();
    let db = options.open(DIR).unwrap();
    db.put("a", "1").unwrap();
    let reader = options.open_read_only(DIR).unwrap();
    db.put("a", "2").unwrap();
    assert_eq!(reader.snapshot().get("a").unwrap().unwrap(), "1");
    assert_eq!(reader.get("a").unwrap().unwrap(), "1");
}

#[test]
fn a_snapshot_reads_other_keyspaces_in_every_way_that_it_reads_the_default_one() {
    let db = small();
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    for key in ["a1", "a2", "b1"] {
        other.put(key, key).unwrap();
    }
    let snapshot = db.snapshot();
    other.delete_range(..).unwrap();
    other.put("a3", "later").unwrap();
    assert_eq!(snapshot.get_in(&other, "a1").unwrap().unwrap(), "a1");
    assert!(snapshot.contains_in(&other, "b1").unwrap());
    assert!(!snapshot.contains_in(&other, "a3").unwrap());
    let several = snapshot.multi_get_in(&other, ["a2", "a3"]).unwrap();
    assert!(several[0].is_some() && several[1].is_none());
    assert_eq!(keys(snapshot.iter_in(&other).unwrap()), ["a1", "a2", "b1"]);
    assert_eq!(keys(snapshot.range_in(&other, "a2"..).unwrap()), ["a2", "b1"]);
    assert_eq!(keys(snapshot.prefix_in(&other, "a").unwrap().rev()), ["a2", "a1"]);
    let foreign =
        in_memory().0.open(DIR).unwrap().keyspace("other", KeyspaceOptions::new()).unwrap();
    for refused in [
        snapshot.iter_in(&foreign).map(|_| ()),
        snapshot.prefix_in(&foreign, "a").map(|_| ()),
        snapshot.multi_get_in(&foreign, ["a"]).map(|_| ()),
        snapshot.contains_in(&foreign, "a").map(|_| ()),
    ] {
        assert_eq!(refused.unwrap_err().kind(), terrane::ErrorKind::Invalid);
    }
}
