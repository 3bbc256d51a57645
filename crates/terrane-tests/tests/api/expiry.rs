//! Values that expire at a time.

use std::sync::Arc;
use std::time::Duration;

use terrane::storage::{MemoryStorage, Storage};
use terrane::{
    Background, Clock, Db, Event, KeyspaceOptions, ManualClock, Options, SystemClock, WriteBatch,
    WriteOptions, inspect,
};
use terrane_policy::catalogue;
use terrane_testkit::wait_until;

use crate::support::{DIR, keys, pairs, small_design, tiny};

const SECOND: Duration = Duration::from_secs(1);

struct Small {
    db: Db,
    clock: Arc<ManualClock>,
    options: Options,
}

fn small() -> Small {
    let clock = Arc::new(ManualClock::new(1_000_000_000));
    let options = Options::new()
        .storage(Arc::new(MemoryStorage::new(1)))
        .background(Background::Inline)
        .clock(Arc::clone(&clock) as Arc<dyn Clock>)
        .design(small_design());
    let db = options.open(DIR).unwrap();
    Small { db, clock, options }
}

fn ttl(seconds: u64) -> WriteOptions {
    WriteOptions::new().ttl(SECOND * u32::try_from(seconds).unwrap())
}

fn work(db: &Db) {
    while db.run_background_job().unwrap() {}
}

/// Checks with every kind of read that keys `a` and `c` exist, and `b` only if `is_alive`.
fn check_reads(db: &Db, is_alive: bool, place: &str) {
    let b = is_alive.then_some("2");
    let all: Vec<_> = [("a", "1"), ("b", "2"), ("c", "3")]
        .into_iter()
        .filter(|(key, _)| *key != "b" || is_alive)
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    assert_eq!(db.get("b").unwrap().as_deref(), b.map(str::as_bytes), "{place}");
    assert_eq!(db.contains("b").unwrap(), is_alive, "{place}");
    let several = db.multi_get(["a", "b", "c"]).unwrap();
    assert_eq!(several[1].as_deref(), b.map(str::as_bytes), "{place}");
    assert_eq!(several.iter().flatten().count(), all.len(), "{place}");
    assert_eq!(pairs(db.iter().unwrap()), all, "{place}");
    let mut backward: Vec<_> = db.iter().unwrap().rev().map(|entry| entry.unwrap()).collect();
    backward.reverse();
    let backward: Vec<_> = backward
        .iter()
        .map(|(key, value)| (key.escape_ascii().to_string(), value.escape_ascii().to_string()))
        .collect();
    assert_eq!(backward, all, "{place}");
    assert_eq!(pairs(db.range("b".."bb").unwrap()).len(), usize::from(is_alive), "{place}");
    assert_eq!(db.prefix("b").unwrap().count(), usize::from(is_alive), "{place}");
    let mut lent = db.range("b"..).unwrap();
    assert!(lent.advance().unwrap());
    let first = if is_alive { (&b"b"[..], &b"2"[..]) } else { (&b"c"[..], &b"3"[..]) };
    assert_eq!((lent.key(), lent.value()), first, "{place}");
    let transaction = db.begin();
    assert_eq!(transaction.get("b").unwrap().is_some(), is_alive, "{place}");
    assert_eq!(keys(transaction.iter().unwrap()).len(), all.len(), "{place}");
}

#[test]
fn an_expired_value_is_invisible_at_once_wherever_it_is() {
    let Small { db, clock, options } = small();
    let put = |expires_after: u64| {
        db.put("a", "1").unwrap();
        db.put_with("b", "2", ttl(expires_after)).unwrap();
        db.put("c", "3").unwrap();
    };
    put(10);
    check_reads(&db, true, "in a memtable");
    clock.advance(SECOND * 9);
    check_reads(&db, true, "before it expires");
    clock.advance(SECOND);
    check_reads(&db, false, "expired in a memtable");
    put(10);
    db.flush().unwrap();
    check_reads(&db, true, "in a table");
    clock.advance(SECOND * 10);
    check_reads(&db, false, "expired in a table");
    put(10);
    drop(db);
    let db = options.open(DIR).unwrap();
    check_reads(&db, true, "replayed");
    let reader = options.open_read_only(DIR).unwrap();
    check_reads(&reader, true, "read by another");
    clock.advance(SECOND * 10);
    check_reads(&reader, false, "expired for another");
    check_reads(&db, false, "expired after a replay");
    db.compact_range(..).unwrap();
    check_reads(&db, false, "compacted");
    assert_eq!(db.tree().shape.tables().map(|table| table.entries).sum::<u64>(), 2);
}

#[test]
fn an_expired_value_hides_what_it_replaced() {
    let Small { db, clock, .. } = small();
    for number in 0..300 {
        db.put(format!("{number:03}"), "an old value of some length").unwrap();
    }
    db.compact_range(..).unwrap();
    for number in 0..300 {
        db.put_with(format!("{number:03}"), "a new one", ttl(5)).unwrap();
    }
    db.flush().unwrap();
    assert_eq!(db.get("007").unwrap().unwrap(), "a new one");
    clock.advance(SECOND * 5);
    assert!(db.is_empty().unwrap() && db.last().unwrap().is_none());
    // If only the tables with the new values were dropped, the old values would come back.
    work(&db);
    assert!(db.get("007").unwrap().is_none() && db.is_empty().unwrap());
    db.compact_range(..).unwrap();
    assert_eq!(db.tree().shape.tables().count(), 0, "{}", db.tree());
    // A value without an expiry time replaces one that expires.
    db.put_with("a", "1", ttl(5)).unwrap();
    db.put("a", "2").unwrap();
    clock.advance(SECOND * 5);
    assert_eq!(db.get("a").unwrap().unwrap(), "2");
}

#[test]
fn a_snapshot_sees_values_as_of_its_time_until_it_is_dropped() {
    let Small { db, clock, .. } = small();
    for number in 0..300 {
        db.put_with(format!("{number:03}"), "a value of some length", ttl(5)).unwrap();
    }
    db.flush().unwrap();
    work(&db);
    let snapshot = db.snapshot();
    let transaction = db.begin();
    clock.advance(SECOND * 10);
    let late = db.snapshot();
    work(&db);
    db.compact_range(..).unwrap();
    assert_eq!(snapshot.iter().unwrap().count(), 300);
    assert_eq!(snapshot.iter().unwrap().rev().count(), 300);
    assert_eq!(snapshot.get("007").unwrap().unwrap(), "a value of some length");
    assert!(snapshot.multi_get(["007"]).unwrap()[0].is_some());
    assert!(transaction.contains("299").unwrap());
    assert!(late.get("007").unwrap().is_none() && late.iter().unwrap().next().is_none());
    assert!(db.is_empty().unwrap());
    drop((snapshot, transaction));
    work(&db);
    assert_eq!(db.tree().shape.tables().count(), 0, "{}", db.tree());
}

#[test]
fn tables_are_dropped_unread_once_all_of_their_values_have_expired() {
    for entry in catalogue::ALL {
        let Small { db, clock, .. } = small();
        db.set_design(tiny(entry.name)).unwrap();
        for number in 0..600 {
            db.put_with(format!("{number:05}"), "a value of some length", ttl(50)).unwrap();
        }
        db.flush().unwrap();
        work(&db);
        let before = db.stats();
        assert!(before.tables > 0, "{}", entry.name);
        clock.advance(SECOND * 49);
        work(&db);
        assert_eq!(db.iter().unwrap().count(), 600, "{}", entry.name);
        clock.advance(SECOND);
        work(&db);
        let after = db.stats().since(&before);
        assert_eq!(db.stats().tables, 0, "{}\n{}", entry.name, db.tree());
        assert_eq!(after.tables_dropped, before.tables, "{}", entry.name);
        assert_eq!(after.compaction_bytes_read, 0, "{}", entry.name);
    }
}

#[test]
fn expired_values_leave_the_tables_within_the_time_of_deletes() {
    for entry in catalogue::ALL {
        let clock = Arc::new(ManualClock::new(1_000_000_000));
        let db = Options::new()
            .storage(Arc::new(MemoryStorage::new(1)))
            .background(Background::Inline)
            .clock(Arc::clone(&clock) as Arc<dyn Clock>)
            .delete_persistence(SECOND * 100)
            .design(tiny(entry.name))
            .open(DIR)
            .unwrap();
        for number in 0..900_u32 {
            let key = format!("{:05}", number.wrapping_mul(7919) % 5000);
            let options = if number % 3 == 0 { ttl(30) } else { WriteOptions::new() };
            db.put_with(key, "a value that has some length to it", options).unwrap();
        }
        for _ in 0..70 {
            clock.advance(SECOND * 2);
            work(&db);
            for table in db.tree().shape.tables() {
                let Some(expiry) = table.expiry else { continue };
                let age = clock.now_micros().saturating_sub(expiry.first_micros);
                assert!(age <= 100_000_000, "{}: {table}", entry.name);
            }
        }
        let left = db.tree().shape.tables().filter_map(|table| table.expiry).count();
        assert_eq!(left, 0, "{}\n{}", entry.name, db.tree());
        assert_eq!(db.iter().unwrap().count(), 600, "{}", entry.name);
    }
}

#[test]
fn a_keyspace_has_a_default_that_is_stored_with_it() {
    let Small { db, clock, options } = small();
    let sessions = db.keyspace("sessions", KeyspaceOptions::new()).unwrap();
    sessions.put("before", "1").unwrap();
    sessions.set_ttl(Some(SECOND * 10)).unwrap();
    let default = db.keyspace("default", KeyspaceOptions::new()).unwrap();
    assert_eq!((sessions.ttl(), default.ttl()), (Some(SECOND * 10), None));
    sessions.put("default", "1").unwrap();
    sessions.put_with("longer", "1", ttl(20)).unwrap();
    sessions.put_with("for ever", "1", WriteOptions::new().ttl(Duration::MAX)).unwrap();
    let mut batch = WriteBatch::new();
    batch.put_in(&sessions, "batch", "1").put("elsewhere", "1");
    batch.put_with_ttl_in(&sessions, "longer batch", "1", SECOND * 20);
    batch.put_with_ttl("short", "1", SECOND * 5);
    // The time to live starts each time the batch is applied.
    clock.advance(SECOND * 3);
    db.write(&batch).unwrap();
    db.transaction(|tx| {
        tx.put_in(&sessions, "transaction", "1")?;
        tx.put_with_ttl_in(&sessions, "longer transaction", "1", SECOND * 20)?;
        tx.put_with_ttl("short transaction", "1", SECOND * 5);
        assert!(tx.get("short transaction")?.is_some());
        Ok(())
    })
    .unwrap();
    assert_eq!(sessions.update("updated", |_| Some(b"1".to_vec())).unwrap().unwrap(), "1");
    drop((db, sessions, default));
    let db = options.open(DIR).unwrap();
    let sessions = db.keyspace("sessions", KeyspaceOptions::new()).unwrap();
    assert_eq!(sessions.ttl(), Some(SECOND * 10));
    clock.advance(SECOND * 5);
    assert_eq!(keys(db.iter().unwrap()), ["elsewhere"]);
    assert_eq!(sessions.iter().unwrap().count(), 9);
    clock.advance(SECOND * 2);
    assert!(!sessions.contains("default").unwrap() && sessions.contains("batch").unwrap());
    clock.advance(SECOND * 4);
    let left = ["before", "for ever", "longer", "longer batch", "longer transaction"];
    assert_eq!(keys(sessions.iter().unwrap()), left);
    db.write(&batch.clone()).unwrap_err();
    sessions.set_ttl(None).unwrap();
    sessions.put("later", "1").unwrap();
    clock.advance(SECOND * 1000);
    assert_eq!(keys(sessions.iter().unwrap()), ["before", "for ever", "later"]);
    db.close().unwrap();
    let db = options.open(DIR).unwrap();
    assert_eq!(db.keyspace("sessions", KeyspaceOptions::new()).unwrap().ttl(), None);
}

#[test]
fn an_expired_value_is_no_value_for_changes_that_depend_on_it() {
    let Small { db, clock, .. } = small();
    db.put_with("a", "1", ttl(5)).unwrap();
    assert!(!db.put_if_absent("a", "2").unwrap());
    assert!(db.compare_and_swap("a", Some("1"), Some("3")).unwrap());
    db.put_with("a", "1", ttl(5)).unwrap();
    clock.advance(SECOND * 5);
    assert!(!db.compare_and_swap("a", Some("1"), Some("3")).unwrap());
    assert!(db.put_if_absent("a", "2").unwrap());
    clock.advance(SECOND * 500);
    assert_eq!(db.get("a").unwrap().unwrap(), "2");
    db.put_with("b", "1", ttl(5)).unwrap();
    clock.advance(SECOND * 5);
    db.update("b", |old| {
        assert_eq!(old, None);
        Some(b"new".to_vec())
    })
    .unwrap();
    assert_eq!(db.get("b").unwrap().unwrap(), "new");
}

#[test]
fn values_are_restored_with_the_expiry_times_that_an_iterator_reports() {
    let Small { db, clock, .. } = small();
    db.put("plain", "0").unwrap();
    db.put_with("soon", "1", ttl(10)).unwrap();
    let copies: Vec<_> =
        ["batch", "ingest"].map(|name| db.keyspace(name, KeyspaceOptions::new()).unwrap()).into();
    // A default applies only to values without an expiry time of their own.
    copies[1].set_ttl(Some(SECOND * 100)).unwrap();
    let (mut batch, mut ingest) = (WriteBatch::new(), copies[1].begin_ingest().unwrap());
    let mut entries = db.iter().unwrap();
    let expires_at = clock.now_micros() + 10_000_000;
    let mut times = Vec::new();
    clock.advance(SECOND * 3);
    while entries.advance().unwrap() {
        times.push(entries.expires_at_micros());
        let (key, value) = (entries.key(), entries.value());
        match entries.expires_at_micros() {
            Some(expires_at) => {
                batch.put_with_expiry_in(&copies[0], key, value, expires_at);
                ingest.put_with_expiry(key, value, expires_at).unwrap();
            }
            None => {
                batch.put_in(&copies[0], key, value);
                ingest.put(key, value).unwrap();
            }
        }
    }
    assert_eq!((times, entries.expires_at_micros()), (vec![None, Some(expires_at)], None));
    db.write(&batch).unwrap();
    ingest.commit().unwrap();
    clock.advance(SECOND * 7 - Duration::from_micros(1));
    let count = |copy: &terrane::Keyspace| copy.iter().unwrap().count();
    assert!(copies.iter().all(|copy| count(copy) == 2));
    clock.advance(Duration::from_micros(1));
    assert!(copies.iter().all(|copy| count(copy) == 1));
    let mixed = WriteBatch::new()
        .put_with_ttl("a", "", SECOND)
        .put_with_expiry_in(&copies[0], "b", "", 1)
        .clone();
    assert!(db.write(&mixed).is_err());
}

#[test]
fn a_time_to_live_is_refused_where_it_means_nothing() {
    let Small { db, .. } = small();
    let error = db.delete_with("a", ttl(5)).unwrap_err();
    assert!(error.to_string().contains("set for a delete"), "{error}");
    let error = db.write_with(WriteBatch::new().put("a", "1"), ttl(5)).unwrap_err();
    assert!(error.to_string().contains("set for a batch"), "{error}");
    let default = db.keyspace("default", KeyspaceOptions::new()).unwrap();
    default.set_ttl(Some(Duration::from_nanos(999))).unwrap_err();
    assert_eq!(default.ttl(), None);
}

#[test]
fn large_values_that_expire_are_kept_with_their_keys() {
    let clock = Arc::new(ManualClock::new(1_000_000_000));
    let options = Options::new()
        .storage(Arc::new(MemoryStorage::new(1)))
        .background(Background::Inline)
        .clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let db = options.open(DIR).unwrap();
    db.set_design("1-leveling; buffer=64KiB; values=separate(1KiB)".parse().unwrap()).unwrap();
    let large = vec![7; 100_000];
    db.put_with("expiring", &large, ttl(5)).unwrap();
    db.put("stays", &large).unwrap();
    db.flush().unwrap();
    drop(db);
    let db = options.open(DIR).unwrap();
    assert_eq!(db.get("expiring").unwrap().unwrap(), large);
    let mut iter = db.iter().unwrap();
    assert!(iter.advance().unwrap() && iter.value() == large);
    clock.advance(SECOND * 5);
    assert_eq!(keys(db.iter().unwrap()), ["stays"]);
}

#[test]
fn reports_and_repair_know_the_expiry_times() {
    let dir = tempfile::tempdir().unwrap();
    // The repair uses the system clock.
    let begin = SystemClock.now_micros();
    let clock = Arc::new(ManualClock::new(begin));
    let options = Options::new().clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let db = options.open(dir.path()).unwrap();
    db.put_with("a", "1", ttl(5000)).unwrap();
    db.put("b", "2").unwrap();
    db.flush().unwrap();
    db.put_with("c", "3", ttl(50_000)).unwrap();
    drop(db);
    let tables = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let is_table = |path: &std::path::PathBuf| path.extension().is_some_and(|ext| ext == "sst");
    let table = inspect::table(tables.into_iter().find(is_table).unwrap()).unwrap();
    assert_eq!(table.expiry.unwrap().entries, 1);
    assert_eq!(table.value_bytes, 2);
    let entries: Vec<_> = table.iter().map(|entry| entry.unwrap()).collect();
    assert_eq!(entries[0].value.as_ref().unwrap(), "1");
    assert_eq!(
        (entries[0].expires_at_micros, entries[1].expires_at_micros),
        (Some(begin + 5_000_000_000), None)
    );
    std::fs::remove_file(dir.path().join("CURRENT")).unwrap();
    let target = dir.path().join("repaired");
    inspect::repair(dir.path(), &target).unwrap();
    let db = options.open(&target).unwrap();
    assert_eq!(keys(db.iter().unwrap()), ["a", "b", "c"]);
    clock.advance(SECOND * 5000);
    assert_eq!(keys(db.iter().unwrap()), ["b", "c"]);
}

#[test]
fn a_value_is_no_longer_than_with_its_expiry_time() {
    let Small { db, options, .. } = small();
    let error = db.put_with("k", vec![0; (1 << 30) - 7], ttl(5)).unwrap_err();
    assert!(error.to_string().contains("with the 8 bytes of its expiry time"), "{error}");
    let default = db.keyspace("default", KeyspaceOptions::new()).unwrap();
    default.set_ttl(Some(SECOND)).unwrap();
    db.put("k", vec![0; 1 << 30]).unwrap_err();
    drop((db, default));
    assert!(options.open(DIR).unwrap().is_empty().unwrap());
}

#[test]
fn repair_expires_no_value_that_had_no_expiry_time() {
    let dir = tempfile::tempdir().unwrap();
    let db = Options::new().open(dir.path()).unwrap();
    let default = db.keyspace("default", KeyspaceOptions::new()).unwrap();
    db.put("stays", "1").unwrap();
    default.set_ttl(Some(SECOND * 3600)).unwrap();
    db.put("expiring", "1").unwrap();
    drop((db, default));
    let target = dir.path().join("repaired");
    inspect::repair(dir.path(), &target).unwrap();
    let clock = Arc::new(ManualClock::new(SystemClock.now_micros()));
    let db = Options::new().clock(Arc::clone(&clock) as Arc<dyn Clock>).open(&target).unwrap();
    assert_eq!(keys(db.iter().unwrap()), ["expiring", "stays"]);
    clock.advance(SECOND * 3600);
    assert_eq!(keys(db.iter().unwrap()), ["stays"]);
}

#[test]
fn reports_of_deletes_have_no_expiry_times_to_come() {
    let dir = tempfile::tempdir().unwrap();
    let db = Options::new().open(dir.path()).unwrap();
    db.put_with("a", "1", WriteOptions::new().ttl(Duration::MAX)).unwrap();
    db.put_with("b", "1", ttl(3600)).unwrap();
    db.flush().unwrap();
    db.put_with("c", "1", ttl(3600)).unwrap();
    let report = inspect::deletes(dir.path()).unwrap();
    assert!(report.keyspaces.iter().all(|keyspace| keyspace.tables.is_empty()));
    assert_eq!(report.log.iter().map(|file| file.deletes).sum::<u64>(), 0);
}

#[test]
fn a_table_is_dropped_in_time_although_nobody_calls() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new(1));
    let db = Options::new().storage(storage).open(DIR).unwrap();
    db.put_with("a", "1", WriteOptions::new().ttl(Duration::from_millis(300))).unwrap();
    db.flush().unwrap();
    assert_eq!(db.stats().tables, 1);
    let is_drop = |event: &terrane::LoggedEvent| matches!(event.event, Event::TablesDropped { .. });
    // The event is emitted after the new state, without the table, is installed.
    wait_until(|| db.events().iter().any(is_drop), || db.tree().to_string());
    assert_eq!(db.stats().tables, 0);
}

#[test]
fn lookups_report_the_expiry_times_that_were_set() {
    let Small { db, clock, .. } = small();
    let keyspace = db.keyspace("sessions", KeyspaceOptions::new()).unwrap();
    let now = clock.now_micros();
    let mut batch = WriteBatch::new();
    batch.put_with_expiry_in(&keyspace, "fixed", "1", now + 7);
    db.write(&batch).unwrap();
    keyspace.put("unlimited", "2").unwrap();
    keyspace.put_with("still unlimited", "3", WriteOptions::new().ttl(Duration::MAX)).unwrap();
    for place in ["memtable", "table"] {
        let expires_at =
            |key| keyspace.get_with_expiry(key).unwrap().map(|(_, expires_at)| expires_at);
        assert_eq!(expires_at("fixed"), Some(Some(now + 7)), "{place}");
        assert_eq!(expires_at("unlimited"), Some(None), "{place}");
        assert_eq!(expires_at("still unlimited"), Some(None), "{place}");
        assert_eq!(expires_at("missing"), None, "{place}");
        db.flush().unwrap();
    }
    clock.advance(Duration::from_micros(7));
    assert_eq!(keyspace.get_with_expiry("fixed").unwrap(), None);
}

#[test]
fn lookups_of_many_keys_report_what_lookups_of_one_do() {
    let Small { db, clock, .. } = small();
    let keyspace = db.keyspace("sessions", KeyspaceOptions::new()).unwrap();
    let now = clock.now_micros();
    // These are more keys than one batch of lookups takes.
    let names: Vec<String> = (0..200).map(|number| format!("key{number:03}")).collect();
    for place in ["memtable", "table and memtable", "tables"] {
        let mut batch = WriteBatch::new();
        for (at, key) in names.iter().enumerate() {
            match (at + place.len()) % 5 {
                0 => batch.put_with_expiry_in(&keyspace, key, "expiring", now + at as u64),
                1 => batch.put_in(&keyspace, key, "stays"),
                2 => batch.delete_in(&keyspace, key),
                _ => &mut batch,
            };
        }
        db.write(&batch).unwrap();
        if place == "tables" {
            db.flush().unwrap();
        }
        for _ in 0..2 {
            let one_by_one: Vec<_> =
                names.iter().map(|key| keyspace.get_with_expiry(key).unwrap()).collect();
            assert_eq!(keyspace.multi_get_with_expiry(&names).unwrap(), one_by_one, "{place}");
            // Some of the values expire.
            clock.advance(Duration::from_micros(50));
        }
        db.flush().unwrap();
    }
    assert!(keyspace.multi_get_with_expiry::<&str>([]).unwrap().is_empty());
}

#[test]
fn a_transaction_lets_values_expire_at_times_and_after_times() {
    let Small { db, clock, .. } = small();
    let keyspace = db.keyspace("sessions", KeyspaceOptions::new()).unwrap();
    keyspace.put_with("before", "0", ttl(9)).unwrap();
    let begin = clock.now_micros();
    let mut tx = db.begin();
    tx.put_with_expiry_in(&keyspace, "fixed", "1", begin + 5_000_000).unwrap();
    tx.put_with_ttl_in(&keyspace, "counted", "2", SECOND * 3).unwrap();
    tx.put_in(&keyspace, "unlimited", "3").unwrap();
    let expires_at = |tx: &terrane::Transaction, key| {
        tx.get_with_expiry_in(&keyspace, key).unwrap().map(|(_, expires_at)| expires_at)
    };
    assert_eq!(expires_at(&tx, "before"), Some(Some(begin + 9_000_000)));
    assert_eq!(expires_at(&tx, "fixed"), Some(Some(begin + 5_000_000)));
    assert_eq!(expires_at(&tx, "counted"), Some(Some(begin + 3_000_000)));
    assert_eq!(expires_at(&tx, "unlimited"), Some(None));
    assert_eq!(expires_at(&tx, "missing"), None);
    // A time to live counts from the commit.
    clock.advance(SECOND);
    tx.commit().unwrap();
    let expires_at = |key| keyspace.get_with_expiry(key).unwrap().map(|(_, expires_at)| expires_at);
    assert_eq!(expires_at("fixed"), Some(Some(begin + 5_000_000)));
    assert_eq!(expires_at("counted"), Some(Some(begin + 4_000_000)));
    assert_eq!(expires_at("unlimited"), Some(None));
}

#[test]
fn a_transaction_that_read_an_expiry_time_conflicts_with_a_write_of_the_key() {
    let Small { db, .. } = small();
    let keyspace = db.default_keyspace().clone();
    let mut tx = db.begin();
    assert_eq!(tx.get_with_expiry_in(&keyspace, "key").unwrap(), None);
    tx.put("other", "1");
    db.put("key", "2").unwrap();
    assert_eq!(tx.commit().unwrap_err().kind(), terrane::ErrorKind::Conflict);
}

/// A transaction made a value that expires permanent by merging with it, while a batch did not.
#[test]
fn operands_outlast_values_that_expire_in_transactions_as_in_batches() {
    let values = |in_transaction: bool| {
        let Small { db, clock, .. } = small();
        let keyspace = db.keyspace("merged", KeyspaceOptions::new()).unwrap();
        keyspace.set_merge_operator("append").unwrap();
        keyspace.put_with("stored", "v", ttl(5)).unwrap();
        if in_transaction {
            let mut tx = db.begin();
            tx.put_with_ttl_in(&keyspace, "put", "v", 5 * SECOND).unwrap();
            tx.put_in(&keyspace, "kept", "v").unwrap();
            tx.put_with_ttl_in(&keyspace, "replaced", "v", 5 * SECOND).unwrap();
            for key in ["put", "kept", "stored", "replaced"] {
                tx.merge_in(&keyspace, key, "x").unwrap();
                tx.merge_in(&keyspace, key, "y").unwrap();
                assert_eq!(tx.get_in(&keyspace, key).unwrap().unwrap(), "vxy", "{key}");
            }
            tx.put_in(&keyspace, "replaced", "w").unwrap();
            tx.commit().unwrap();
        } else {
            let mut batch = WriteBatch::new();
            batch.put_with_ttl_in(&keyspace, "put", "v", 5 * SECOND);
            batch.put_in(&keyspace, "kept", "v");
            for key in ["put", "kept", "stored"] {
                batch.merge_in(&keyspace, key, "x");
                batch.merge_in(&keyspace, key, "y");
            }
            batch.put_in(&keyspace, "replaced", "w");
            db.write(&batch).unwrap();
        }
        let before = pairs(keyspace.iter().unwrap());
        clock.advance(6 * SECOND);
        [before, pairs(keyspace.iter().unwrap())]
    };
    let [before, after] = values(true);
    let of = |value: &str| {
        [("kept", "vxy"), ("put", value), ("replaced", "w"), ("stored", value)]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
    };
    assert_eq!(before, of("vxy"));
    assert_eq!(after, of("xy"));
    assert_eq!([before, after], values(false));
}
