//! The calls: order, errors, the values that an ingest replaces, and later writes that replace its
//! own.

use std::path::Path;
use std::sync::Arc;

use terrane::storage::{MemoryStorage, Storage};
use terrane::{Background, Db, Design, Error, ErrorKind, Event, KeyspaceOptions, Options};

const DIR: &str = "db";

fn options(storage: &MemoryStorage) -> Options {
    let design = "1-leveling T=4 L0=4 base=16KiB; buffer=64KiB; table=4KiB; block=512B";
    options_without_design(storage).design(design.parse().unwrap())
}

fn options_without_design(storage: &MemoryStorage) -> Options {
    Options::new()
        .storage(Arc::new(storage.clone()))
        .background(Background::Inline)
        .memory_budget(16 << 20)
        .log_segment_bytes(64 << 10)
}

fn open() -> (Db, MemoryStorage) {
    let storage = MemoryStorage::new(1);
    (options(&storage).open(DIR).unwrap(), storage)
}

fn numbers(range: std::ops::Range<u32>, value: &str) -> impl Iterator<Item = (String, String)> {
    range.map(move |number| (format!("{number:05}"), format!("{value} {number}")))
}

fn files(storage: &MemoryStorage, end: &str) -> usize {
    let names = storage.list(Path::new(DIR)).unwrap();
    names.iter().filter(|name| name.ends_with(end)).count()
}

/// Returns the number of tables in each level.
fn levels(db: &Db) -> Vec<usize> {
    db.tree().shape.levels.iter().map(terrane_policy::Level::table_count).collect()
}

#[test]
fn keys_out_of_order_are_refused_and_the_ingest_goes_on() {
    let (db, _) = open();
    let mut ingest = db.default_keyspace().begin_ingest().unwrap();
    assert!(ingest.is_empty());
    ingest.put("", "the empty key").unwrap();
    ingest.put("b", "1").unwrap();
    for key in ["b", "a", ""] {
        let error = ingest.put(key, "2").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let Error::NotAscending { key: found, last, .. } = &error else { panic!("{error}") };
        assert_eq!((&**found, &**last), (key.as_bytes(), &b"b"[..]));
        let text = format!("the key '{key}' does not follow 'b'");
        assert!(error.to_string().starts_with(&text), "{error}");
    }
    assert_eq!(ingest.put(vec![b'c'; 70_000], "").unwrap_err().kind(), ErrorKind::Invalid);
    ingest.put("c", "3").unwrap();
    assert_eq!(ingest.len(), 3);
    ingest.commit().unwrap();
    let all: Vec<_> = db.iter().unwrap().map(Result::unwrap).collect();
    let text: Vec<_> = all.iter().map(|(_, value)| value.escape_ascii().to_string()).collect();
    assert_eq!(text, ["the empty key", "1", "3"]);
    assert_eq!(db.ingest([("x", "1"), ("w", "2")]).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(db.iter().unwrap().count(), 3);
}

#[test]
fn an_empty_ingest_changes_nothing() {
    let (db, storage) = open();
    db.put("a", "1").unwrap();
    assert_eq!(db.ingest(Vec::<(&str, &str)>::new()).unwrap(), 0);
    assert_eq!((db.stats().ingests, db.stats().flushes), (0, 0));
    assert_eq!(files(&storage, ".sst"), 0);
}

#[test]
fn an_ingest_replaces_earlier_values_and_later_writes_replace_it() {
    let (db, storage) = open();
    db.put("00001", "before, in a table").unwrap();
    db.put("00002", "before, in a table").unwrap();
    db.flush().unwrap();
    db.put("00003", "before, in memory").unwrap();
    db.delete("00004").unwrap();
    db.delete_range("00005".."00006").unwrap();
    let (snapshot, mut iter) = (db.snapshot(), db.iter().unwrap());
    let before = db.begin();
    let mut ingest = db.default_keyspace().begin_ingest().unwrap();
    numbers(1..100, "new").for_each(|(key, value)| ingest.put(key, value).unwrap());
    // This write was made while the ingest was prepared, so it comes before the ingest.
    db.put("00006", "meanwhile").unwrap();
    assert_eq!(db.get("00001").unwrap().unwrap(), "before, in a table");
    ingest.commit().unwrap();
    db.put("00007", "after").unwrap();
    db.delete("00008").unwrap();
    let check = |db: &Db| {
        for number in [1, 2, 3, 4, 5, 6, 9, 50, 99] {
            let value = db.get(format!("{number:05}")).unwrap();
            assert_eq!(value.unwrap(), *format!("new {number}"), "{number}");
        }
        assert_eq!(db.get("00007").unwrap().unwrap(), "after");
        assert_eq!(db.get("00008").unwrap(), None);
        assert_eq!(db.iter().unwrap().count(), 98);
        assert_eq!(db.iter().unwrap().rev().count(), 98);
        let found = db.multi_get(["00006", "00007", "00008"]).unwrap();
        assert_eq!(found[0].as_ref().unwrap(), "new 6");
    };
    check(&db);
    // No earlier snapshot, iterator or transaction sees it.
    assert_eq!(snapshot.iter().unwrap().count(), 3);
    assert_eq!(snapshot.get("00001").unwrap().unwrap(), "before, in a table");
    assert_eq!(snapshot.get("00050").unwrap(), None);
    assert_eq!(iter.by_ref().count(), 3);
    assert_eq!(before.get("00050").unwrap(), None);
    drop((iter, before));
    db.flush().unwrap();
    check(&db);
    db.compact_range(..).unwrap();
    check(&db);
    assert_eq!(snapshot.iter().unwrap().count(), 3);
    drop(snapshot);
    db.delete_range("00050"..).unwrap();
    assert_eq!(db.iter().unwrap().count(), 48);
    drop(db);
    let db = options(&storage).open(DIR).unwrap();
    assert_eq!(db.iter().unwrap().count(), 48);
    assert_eq!(db.get("00006").unwrap().unwrap(), "new 6");
}

#[test]
fn transactions_that_read_keys_of_an_ingest_conflict() {
    let (db, _) = open();
    let change = |read: &dyn Fn(&terrane::Transaction)| {
        let mut transaction = db.begin();
        read(&transaction);
        transaction.put("other", "1");
        db.ingest(numbers(10..20, "new")).unwrap();
        transaction.commit()
    };
    let key = change(&|transaction| drop(transaction.get("00015").unwrap()));
    assert_eq!(key.unwrap_err().kind(), ErrorKind::Conflict);
    let range = change(&|transaction| assert_eq!(transaction.range("00018"..).unwrap().count(), 2));
    assert_eq!(range.unwrap_err().kind(), ErrorKind::Conflict);
    change(&|transaction| drop(transaction.get("00020").unwrap())).unwrap();
    change(&|transaction| assert_eq!(transaction.range("00020".."00030").unwrap().count(), 0))
        .unwrap();
}

#[test]
fn tables_go_to_the_deepest_level_in_which_nothing_above_shares_their_keys() {
    let (db, _) = open();
    db.ingest(numbers(0..1000, "one")).unwrap();
    let first = levels(&db);
    assert_eq!(first[0], 0, "{first:?}");
    let bottom = first.len();
    // These keys lie between those of other tables, so their tables join the same run.
    db.ingest(numbers(2000..3000, "two")).unwrap();
    db.ingest(numbers(1000..2000, "three")).unwrap();
    let shape = db.tree().shape;
    assert_eq!((shape.run_count(), shape.levels[bottom - 1].runs.len()), (1, 1), "{shape:?}");
    // Tables that overlap others go above them, the rest below.
    db.ingest(numbers(2990..4000, "four")).unwrap();
    let shape = db.tree().shape;
    let upper: usize =
        shape.levels[..bottom - 1].iter().map(terrane_policy::Level::table_count).sum();
    assert_eq!(upper, 1, "{shape:?}");
    assert_eq!(db.stats().compactions, 0);
    assert_eq!(db.iter().unwrap().count(), 4000);
    assert_eq!(db.get("02995").unwrap().unwrap(), "four 2995");
    assert_eq!(db.get("02989").unwrap().unwrap(), "two 2989");
    db.wait_for_compactions().unwrap();
    assert_eq!(db.iter().unwrap().count(), 4000);
}

#[test]
fn an_ingest_that_is_dropped_leaves_no_files() {
    for values in ["", "; values=separate(64)"] {
        let (db, storage) = open();
        let design: Design = format!("{}{values}", db.design()).parse().unwrap();
        db.set_design(design).unwrap();
        let mut ingest = db.default_keyspace().begin_ingest().unwrap();
        for number in 0..500 {
            ingest.put(format!("{number:05}"), [7; 100]).unwrap();
        }
        assert!(files(&storage, ".sst") + files(&storage, ".val") > 1);
        drop(ingest);
        assert_eq!(files(&storage, ".sst") + files(&storage, ".val"), 0);
        assert!(db.is_empty().unwrap());
    }
}

/// By then, the sequence number in the tables of the second ingest is too small.
#[test]
fn ingests_may_be_committed_in_any_order() {
    for values in ["", "; values=separate(64)"] {
        let (db, storage) = open();
        let design: Design = format!("{}{values}", db.design()).parse().unwrap();
        db.set_design(design).unwrap();
        let mut ingests: Vec<_> =
            (0..3).map(|_| db.default_keyspace().begin_ingest().unwrap()).collect();
        for (round, ingest) in ingests.iter_mut().enumerate() {
            for number in 0..300 {
                ingest.put(format!("{number:05}"), [b'0' + round as u8; 100]).unwrap();
            }
        }
        let snapshots: Vec<_> = [1, 0, 2]
            .map(|round: u8| {
                // Ingest 2 is the only one left when its turn comes.
                let at = usize::from(round).min(ingests.len() - 1);
                ingests.swap_remove(at).commit().unwrap();
                db.snapshot()
            })
            .into();
        let seen: Vec<_> = snapshots
            .iter()
            .map(|snapshot| snapshot.iter().unwrap().map(|entry| entry.unwrap().1[0]).collect())
            .collect::<Vec<Vec<u8>>>();
        assert!(seen.iter().all(|values| values.len() == 300));
        assert!(seen.iter().all(|values| values.iter().all(|value| *value == values[0])));
        let mut distinct: Vec<u8> = seen.iter().map(|values| values[0]).collect();
        distinct.sort_unstable();
        assert_eq!(distinct, *b"012");
        drop(snapshots);
        db.compact_range(..).unwrap();
        assert_eq!(db.iter().unwrap().count(), 300);
        db.close().unwrap();
        let db = options_without_design(&storage).open(DIR).unwrap();
        assert_eq!(db.iter().unwrap().count(), 300);
    }
}

#[test]
fn separated_values_are_in_value_files() {
    let (db, storage) = open();
    let design: Design = format!("{}; values=separate(1KiB)", db.design()).parse().unwrap();
    db.set_design(design).unwrap();
    db.ingest((0..100_u32).map(|number| (format!("{number:03}"), vec![number as u8; 2000])))
        .unwrap();
    assert!(files(&storage, ".val") > 0);
    assert!(db.tree().shape.live_value_bytes() > 200_000);
    for number in 0..100_u32 {
        assert_eq!(db.get(format!("{number:03}")).unwrap().unwrap(), *vec![number as u8; 2000]);
    }
    db.clear().unwrap();
    db.compact_range(..).unwrap();
    assert_eq!(files(&storage, ".val"), 0);
}

#[test]
fn values_get_the_time_to_live_of_the_keyspace() {
    let storage = MemoryStorage::new(1);
    let clock = Arc::new(terrane::ManualClock::new(1_000_000));
    let db =
        options(&storage).clock(Arc::clone(&clock) as Arc<dyn terrane::Clock>).open(DIR).unwrap();
    let sessions = db.keyspace("sessions", KeyspaceOptions::new()).unwrap();
    sessions.set_ttl(Some(std::time::Duration::from_secs(10))).unwrap();
    let mut ingests: Vec<_> = (0..2).map(|_| sessions.begin_ingest().unwrap()).collect();
    for (round, ingest) in ingests.iter_mut().enumerate() {
        numbers(0..100, &format!("{round}"))
            .for_each(|(key, value)| ingest.put(key, value).unwrap());
        clock.advance(std::time::Duration::from_secs(5));
    }
    // The older ingest must be rewritten, because the newer one was committed first.
    ingests.pop().unwrap().commit().unwrap();
    assert_eq!(sessions.get("00042").unwrap().unwrap(), "1 42");
    let snapshot = db.snapshot();
    ingests.pop().unwrap().commit().unwrap();
    assert!(sessions.is_empty().unwrap(), "the values of the first one expire now");
    assert_eq!(snapshot.get_in(&sessions, "00042").unwrap().unwrap(), "1 42");
    drop(snapshot);
    db.wait_for_compactions().unwrap();
    assert!(sessions.is_empty().unwrap());
}

#[test]
fn ingests_that_cannot_be_added_say_why() {
    let (db, storage) = open();
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    let mut ingest = other.begin_ingest().unwrap();
    ingest.put("a", "1").unwrap();
    db.drop_keyspace("other").unwrap();
    let error = ingest.commit().unwrap_err();
    assert!(error.to_string().contains("dropped"), "{error}");
    assert!(other.begin_ingest().is_err());
    let mut ingest = db.default_keyspace().begin_ingest().unwrap();
    ingest.put("a", "1").unwrap();
    db.clone().close().unwrap();
    assert_eq!(ingest.put("b", "1").unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(ingest.commit().unwrap_err().kind(), ErrorKind::Closed);
    drop((db, other));
    let reader = options(&storage).open_read_only(DIR).unwrap();
    assert_eq!(reader.default_keyspace().begin_ingest().unwrap_err().kind(), ErrorKind::Invalid);
    assert!(reader.is_empty().unwrap());
    drop(reader);
    let db = options(&storage).open(DIR).unwrap();
    assert!(db.is_empty().unwrap());
    assert_eq!(files(&storage, ".sst"), 0);
}

#[test]
fn a_listener_that_writes_delays_no_ingest_and_may_not_commit_one() {
    let storage = MemoryStorage::new(1);
    let slot = Arc::new(std::sync::OnceLock::<Db>::new());
    let calls = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let (seen, counted) = (Arc::clone(&slot), Arc::clone(&calls));
    let db = options(&storage)
        .background(Background::Threads)
        .on_event(move |_| {
            let Some(db) = seen.get() else { return };
            let number = counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            db.put(format!("event {number}"), "").unwrap();
            let mut ingest = db.default_keyspace().begin_ingest().unwrap();
            ingest.put("a", "1").unwrap();
            assert_eq!(ingest.commit().unwrap_err().kind(), ErrorKind::Invalid);
        })
        .open(DIR)
        .unwrap();
    let _ = slot.set(db.clone());
    for round in 0..20 {
        db.put(format!("{round}"), "in a memtable, so that the ingest flushes it").unwrap();
        db.ingest(numbers(0..100, "new")).unwrap();
    }
    assert!(calls.load(std::sync::atomic::Ordering::Relaxed) > 20);
    db.close().unwrap();
}

#[test]
fn an_ingest_is_an_event() {
    let (db, _) = open();
    let design: Design = format!("{}; values=separate(1KiB)", db.design()).parse().unwrap();
    db.set_design(design).unwrap();
    let mut ingest = db.default_keyspace().begin_ingest().unwrap();
    numbers(0..1000, "new").for_each(|(key, value)| ingest.put(key, value).unwrap());
    ingest.put("1", vec![7; 2000]).unwrap();
    let is_ingest = |event: &Event| matches!(event, Event::TablesIngested { .. });
    assert!(!db.events().iter().any(|logged| is_ingest(&logged.event)));
    ingest.commit().unwrap();
    db.ingest(numbers(0..0, "none")).unwrap();
    let dropped = db.default_keyspace().begin_ingest().unwrap();
    drop(dropped);
    let events = db.events();
    let ingests: Vec<_> = events.iter().filter(|logged| is_ingest(&logged.event)).collect();
    assert_eq!(ingests.len(), 1, "{events:?}");
    let Event::TablesIngested {
        keyspace,
        entries,
        tables,
        value_files,
        written_bytes,
        top_level,
        bottom_level,
        ..
    } = &ingests[0].event
    else {
        panic!("{events:?}");
    };
    let bottom = levels(&db).len() as u64 - 1;
    assert_eq!((keyspace.as_str(), *entries, *value_files), ("default", 1001, 1));
    assert_eq!((*top_level, *bottom_level), (bottom, bottom));
    assert_eq!(*tables, db.tree().shape.tables().count() as u64);
    assert_eq!(*written_bytes, db.stats().ingest_bytes_written);
    let text = ingests[0].event.to_string();
    assert!(text.starts_with("default: ingested 1001 entries, "), "{text}");
}

#[test]
fn statistics_count_ingests() {
    let (db, _) = open();
    db.ingest(numbers(0..1000, "new")).unwrap();
    let stats = db.stats();
    assert_eq!((stats.ingests, stats.writes, stats.flush_bytes_written), (1, 0, 0));
    let user_bytes: usize =
        numbers(0..1000, "new").map(|(key, value)| key.len() + value.len()).sum();
    assert_eq!(stats.ingested_bytes, user_bytes as u64);
    assert_eq!(stats.ingest_bytes_written, db.tree().shape.size_bytes());
    assert!((1.0..2.0).contains(&stats.write_amplification().unwrap()));
}
