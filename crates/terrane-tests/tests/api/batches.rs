//! Tests that a batch is applied completely or not at all, across keyspaces and through a crash.

use terrane::storage::{Crash, MemoryStorage, Survival};
use terrane::{Db, Durability, ErrorKind, KeyspaceOptions, Options, WriteBatch, WriteOptions};

use crate::support::{DIR, in_memory, keys, small, small_design};

#[test]
fn later_operations_of_a_batch_take_precedence() {
    let db = small();
    let mut batch = WriteBatch::new();
    batch.put("a", "1").put("a", "2").put("b", "1").delete("b").delete("c").put("c", "3");
    batch.put("r1", "gone").delete_range("r".."s").put("r2", "kept");
    assert_eq!((batch.len(), batch.is_empty()), (9, false));
    db.write(&batch).unwrap();
    let check = || {
        assert_eq!(keys(db.iter().unwrap()), ["a", "c", "r2"]);
        assert_eq!(db.get("a").unwrap().unwrap(), "2");
    };
    check();
    db.flush().unwrap();
    check();
    db.compact_range(..).unwrap();
    check();
    // A batch can be reused, and cleared.
    db.delete_range(..).unwrap();
    db.write(&batch).unwrap();
    check();
    batch.clear();
    assert!(batch.is_empty());
    db.write(&batch).unwrap();
    check();
}

#[test]
fn one_refused_operation_refuses_the_batch() {
    let db = small();
    let gone = db.keyspace("gone", KeyspaceOptions::new()).unwrap();
    let mut batch = WriteBatch::new();
    batch.put("a", "1").put_in(&gone, "a", "1");
    db.write(&batch).unwrap();
    db.drop_keyspace("gone").unwrap();
    batch.put("b", "2");
    assert_eq!(db.write(&batch).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(keys(db.iter().unwrap()), ["a"]);
}

/// Batches write the same number to two keyspaces: no reader ever sees two different numbers.
#[test]
fn readers_never_see_a_batch_in_part() {
    let (options, _) = in_memory();
    let db =
        options.background(terrane::Background::Threads).design(small_design()).open(DIR).unwrap();
    let other = db.keyspace("other", KeyspaceOptions::new().design(small_design())).unwrap();
    let is_done = std::sync::atomic::AtomicBool::new(false);
    let order = std::sync::atomic::Ordering::SeqCst;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..3000u32 {
                let mut batch = WriteBatch::new();
                batch.put("a", number.to_be_bytes()).put_in(&other, "a", number.to_be_bytes());
                batch.put("b", number.to_be_bytes());
                db.write(&batch).unwrap();
            }
            is_done.store(true, order);
        });
        let mut rounds = 0;
        while !is_done.load(order) || rounds == 0 {
            let snapshot = db.snapshot();
            let here = snapshot.multi_get(["a", "b"]).unwrap();
            assert_eq!(here[0], here[1]);
            assert_eq!(here[0], snapshot.get_in(&other, "a").unwrap());
            let now = db.multi_get(["a", "b"]).unwrap();
            assert_eq!(now[0], now[1]);
            rounds += 1;
        }
    });
}

/// Whichever part of the unsynced bytes a power failure takes, a batch is in both keyspaces or in
/// neither of them, even if only one keyspace was flushed.
#[test]
fn a_power_failure_keeps_batches_whole_across_keyspaces() {
    let (options, storage) = in_memory();
    storage.track_crash_points();
    let db = options.clone().design(small_design()).open(DIR).unwrap();
    let wide: terrane::Design = "1-leveling; buffer=1MiB".parse().unwrap();
    let other = db.keyspace("other", KeyspaceOptions::new().design(wide)).unwrap();
    for number in 0..400u32 {
        let mut batch = WriteBatch::new();
        batch.put(format!("{number:03}"), [number as u8; 100]);
        batch.put_in(&other, format!("{number:03}"), [number as u8; 10]);
        let durable = WriteOptions::new().durability(Durability::Sync);
        let usual = WriteOptions::new();
        db.write_with(&batch, if number % 40 == 0 { durable } else { usual }).unwrap();
        storage.mark(if number % 40 == 0 { number.into() } else { u64::from(number) / 40 * 40 });
        while number % 7 == 0 && db.run_background_job().unwrap() {}
    }
    let points = storage.take_crash_points();
    assert!(points.len() > 20);
    for point in points {
        for (percent, seed) in [(0, 0), (50, 1)] {
            let image = point.image(Crash::Power(Survival { percent, seed }));
            check_whole(&options, &image, point.mark());
        }
    }
}

fn check_whole(options: &Options, image: &MemoryStorage, synced: u64) {
    let db = options.clone().storage(std::sync::Arc::new(image.clone())).open(DIR).unwrap();
    let here = keys(db.iter().unwrap());
    let there = match Db::keyspaces(&db).contains(&"other".to_owned()) {
        true => keys(db.keyspace("other", KeyspaceOptions::new()).unwrap().iter().unwrap()),
        false => Vec::new(),
    };
    assert_eq!(here, there);
    let expected: Vec<String> = (0..here.len()).map(|number| format!("{number:03}")).collect();
    assert_eq!(here, expected, "a prefix of what was written");
    assert!(synced == 0 || here.len() as u64 > synced, "{} of {synced}", here.len());
}
