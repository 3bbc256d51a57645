//! Compaction filters: their effect on values, and the readers that see it.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use terrane::storage::{Crash, MemoryStorage, Survival};
use terrane::{
    Background, Clock, CompactionFilter, Db, Durability, ErrorKind, Event, FilterDecision,
    Keyspace, KeyspaceOptions, ManualClock, Options, WriteOptions, inspect,
};
use terrane_policy::catalogue;

use crate::support::{DIR, in_memory, pairs, small_design, tiny};

/// Decides by the first word of a value, or by the key.
#[derive(Debug)]
struct Words;

impl CompactionFilter for Words {
    fn name(&self) -> &'static str {
        "words"
    }

    fn decide_by_key(&self, key: &[u8]) -> Option<FilterDecision> {
        match key {
            b"~keep" => Some(FilterDecision::Keep),
            b"~gone" => Some(FilterDecision::Remove),
            _ => None,
        }
    }

    fn decide(&self, key: &[u8], value: &[u8]) -> FilterDecision {
        assert!(!key.starts_with(b"~"), "the key decides");
        assert!(!value.starts_with(b"panic"), "the filter panics");
        match value.strip_prefix(b"turn ") {
            Some(rest) => FilterDecision::Replace([b"done ", rest].concat()),
            None if value.starts_with(b"drop") => FilterDecision::Remove,
            None => FilterDecision::Keep,
        }
    }
}

fn default_of(db: &Db) -> Keyspace {
    db.keyspace("default", KeyspaceOptions::new()).unwrap()
}

/// Opens a database whose default keyspace has the filter.
fn filtered(options: &Options) -> Db {
    let db = options.open(DIR).unwrap();
    default_of(&db).set_compaction_filter(Some("words")).unwrap();
    db
}

/// Options for a database that is a single table after a flush.
fn one_table() -> Options {
    let storage = Arc::new(MemoryStorage::new(1));
    let design = "leveling; buffer=1MiB; table=1MiB".parse().unwrap();
    Options::new().storage(storage).memory_budget(16 << 20).design(design)
}

fn get(db: &Db, key: &str) -> Option<String> {
    let value = db.get(key).unwrap();
    value.map(|value| value.escape_ascii().to_string())
}

fn text(key: &str, value: &str) -> (String, String) {
    (key.into(), value.into())
}

#[test]
fn values_are_kept_removed_and_replaced_under_every_design() {
    for entry in catalogue::ALL {
        let options = in_memory().0.design(tiny(entry.name)).compaction_filter(Words);
        let db = filtered(&options);
        let keyspace = default_of(&db);
        keyspace.set_merge_operator("append").unwrap();
        for round in ["older", "old"] {
            for number in 0..300 {
                db.put(format!("{number:03}"), format!("{round} value of {number}")).unwrap();
            }
            db.flush().unwrap();
        }
        for number in 0..300 {
            let key = format!("{number:03}");
            match number % 6 {
                0 => db.put(key, format!("drop {number}")).unwrap(),
                1 => db.put(key, format!("turn {number}")).unwrap(),
                2 => {
                    db.put(&key, "dr").unwrap();
                    keyspace.merge(&key, "op").unwrap();
                }
                3 => db.delete(key).unwrap(),
                _ => {}
            }
        }
        db.delete_range("200".."210").unwrap();
        db.put("~keep", "drop").unwrap();
        db.put("~gone", "keep").unwrap();
        db.compact_range(..).unwrap();
        let mut expected: Vec<_> = (0..300)
            .filter(|number| ![0, 2, 3].contains(&(number % 6)))
            .filter(|number| !(200..210).contains(number))
            .map(|number| match number % 6 {
                1 => (format!("{number:03}"), format!("done {number}")),
                _ => (format!("{number:03}"), format!("old value of {number}")),
            })
            .collect();
        expected.push(text("~keep", "drop"));
        assert_eq!(pairs(db.iter().unwrap()), expected, "{}", entry.name);
        let stats = db.stats();
        assert!(stats.compaction_filter_removed >= 97, "{} in {stats}", entry.name);
        assert!(stats.compaction_filter_replaced >= 48, "{} in {stats}", entry.name);
        assert_eq!(stats.table_tombstones, 0, "{}: no older version is left below", entry.name);
        drop((db, keyspace));
        assert_eq!(pairs(options.open(DIR).unwrap().iter().unwrap()), expected, "{}", entry.name);
    }
}

/// Flushes do not filter, and a compaction may run long after the value was written.
#[test]
fn only_compactions_filter() {
    let db = filtered(&one_table().compaction_filter(Words).background(Background::Inline));
    db.put("k", "drop").unwrap();
    db.flush().unwrap();
    while db.run_background_job().unwrap() {}
    assert_eq!(get(&db, "k").unwrap(), "drop");
    db.compact_range("x"..).unwrap();
    assert_eq!(get(&db, "k").unwrap(), "drop", "outside of the range");
    db.compact_range(..).unwrap();
    assert_eq!(get(&db, "k"), None);
    assert_eq!(db.tree().shape.table_count(), 0);
    // A table that is already in its place is rewritten as well.
    default_of(&db).set_compaction_filter(None).unwrap();
    db.put("k", "drop").unwrap();
    db.compact_range(..).unwrap();
    assert_eq!(get(&db, "k").unwrap(), "drop");
    default_of(&db).set_compaction_filter(Some("words")).unwrap();
    db.compact_range(..).unwrap();
    assert_eq!(get(&db, "k"), None);
}

#[test]
fn a_removed_value_does_not_uncover_the_versions_below_it() {
    let options = in_memory().0.compaction_filter(Words);
    let tiering = "tiering T=3 L0=3; buffer=1MiB".parse().unwrap();
    let db = filtered(&options.design(tiering).background(Background::Inline));
    let write = |value: &str| {
        for _ in 0..3 {
            (0..10).for_each(|key| db.put(format!("{key}"), value).unwrap());
            db.flush().unwrap();
        }
        while db.run_background_job().unwrap() {}
    };
    write("old");
    write("drop");
    assert_eq!(db.stats().table_tombstones, 10, "{}", db.tree());
    assert_eq!((get(&db, "4"), db.iter().unwrap().count()), (None, 0));
    db.compact_range(..).unwrap();
    assert_eq!((db.stats().table_entries, db.iter().unwrap().count()), (0, 0));
}

#[test]
fn a_replaced_value_keeps_its_expiry_time() {
    let clock = Arc::new(ManualClock::new(1_000_000));
    let options = one_table().compaction_filter(Words);
    let db = filtered(&options.clock(Arc::clone(&clock) as Arc<dyn Clock>));
    let short = || WriteOptions::new().ttl(Duration::from_secs(5));
    db.put_with("a", "turn a", short()).unwrap();
    db.put_with("b", "drop b", short()).unwrap();
    db.put("c", "turn c").unwrap();
    db.compact_range(..).unwrap();
    assert_eq!(pairs(db.iter().unwrap()), [text("a", "done a"), text("c", "done c")]);
    assert_eq!(db.stats().table_expiring, 1);
    clock.advance(Duration::from_secs(5));
    assert_eq!(pairs(db.iter().unwrap()), [text("c", "done c")]);
}

#[test]
fn separated_values_are_filtered_and_leave_their_files() {
    let design = "leveling; buffer=1MiB; table=1MiB; values=separate(100,file=64KiB)";
    let options = one_table().design(design.parse().unwrap()).compaction_filter(Words);
    let db = filtered(&options);
    // A log would still contain the values.
    let unlogged = WriteOptions::new().durability(Durability::None);
    let put = |key: &str, value: String| db.put_with(key, value, unlogged).unwrap();
    let long = |word: &str| format!("{word} {}", "x".repeat(300));
    for number in 0..100 {
        let word = if number % 10 == 0 { "turn" } else { "drop" };
        put(&format!("{number:02}"), long(word));
    }
    // The key alone decides, so the value is not read; if it were, the filter would panic.
    put("~gone", long("panic"));
    put("~keep", long("panic"));
    db.flush().unwrap();
    let before = db.stats();
    assert!(before.value_live_bytes > 30_000, "{before}");
    db.compact_range(..).unwrap();
    let all = pairs(db.iter().unwrap());
    assert_eq!(all.len(), 11);
    assert_eq!(all[3], (text("30", &long("done"))));
    assert_eq!(all[10], (text("~keep", &long("panic"))));
    let after = db.stats();
    assert!(after.value_live_bytes < 5000, "{after}");
    assert!(after.value_bytes < before.value_bytes / 4, "the garbage was collected: {after}");
    assert_eq!(db.events().iter().filter(|event| is_inactive(&event.event)).count(), 0);
}

fn is_inactive(event: &Event) -> bool {
    matches!(event, Event::CompactionFilterInactive { .. })
}

/// A filter that removes everything. Its first call waits until the test releases it.
#[derive(Debug)]
struct Gate {
    entered: SyncSender<()>,
    go_on: Mutex<Option<Receiver<()>>>,
}

impl Gate {
    fn new() -> (Self, Receiver<()>, SyncSender<()>) {
        let ((entered, is_entered), (let_go, go_on)) = (sync_channel(1), sync_channel(1));
        (Self { entered, go_on: Mutex::new(Some(go_on)) }, is_entered, let_go)
    }
}

impl CompactionFilter for Gate {
    fn name(&self) -> &'static str {
        "gate"
    }

    fn decide(&self, _key: &[u8], _value: &[u8]) -> FilterDecision {
        let first = self.go_on.lock().unwrap().take();
        if let Some(go_on) = first {
            self.entered.send(()).unwrap();
            go_on.recv_timeout(Duration::from_secs(60)).unwrap();
        }
        FilterDecision::Remove
    }
}

#[test]
fn readers_that_begin_during_a_compaction_do_not_see_what_it_filters() {
    let (gate, entered, let_go) = Gate::new();
    let options = one_table().compaction_filter(gate);
    let db = options.open(DIR).unwrap();
    let keyspace = default_of(&db);
    for number in 0..300 {
        db.put(format!("{number:03}"), "value").unwrap();
    }
    db.flush().unwrap();
    keyspace.set_compaction_filter(Some("gate")).unwrap();
    std::thread::scope(|scope| {
        let compaction = scope.spawn(|| db.compact_range(..).unwrap());
        entered.recv_timeout(Duration::from_secs(60)).unwrap();
        let snapshot = db.snapshot();
        let mut transaction = db.begin();
        let mut iter = db.iter().unwrap();
        assert_eq!(iter.next().unwrap().unwrap().0, "000");
        let_go.send(()).unwrap();
        compaction.join().unwrap();
        assert_eq!((get(&db, "007"), db.iter().unwrap().count()), (None, 0));
        assert_eq!(db.snapshot().iter().unwrap().count(), 0);
        for clone in [&snapshot, &snapshot.clone()] {
            assert_eq!(clone.get("007").unwrap().unwrap(), "value");
            assert!(clone.contains_in(&keyspace, "008").unwrap());
            let both = clone.multi_get(["009", "300"]).unwrap();
            assert!(both[0].is_some() && both[1].is_none());
            assert_eq!(clone.iter().unwrap().count(), 300);
            assert_eq!(clone.range_in(&keyspace, "100".."200").unwrap().rev().count(), 100);
            assert_eq!(clone.prefix("2").unwrap().count(), 100);
        }
        assert_eq!(iter.count(), 299);
        assert_eq!(transaction.get("010").unwrap().unwrap(), "value");
        assert!(transaction.multi_get(["011"]).unwrap()[0].is_some());
        assert!(transaction.contains("012").unwrap());
        assert_eq!(transaction.range("1"..).unwrap().count(), 200);
        transaction.put("sum", "200");
        transaction.commit().unwrap();
        // Another compaction, and later writes.
        db.compact_range(..).unwrap();
        assert_eq!(snapshot.iter().unwrap().count(), 300);
        assert_eq!(snapshot.get("sum").unwrap(), None);
        drop(snapshot);
        db.compact_range(..).unwrap();
        assert_eq!(db.stats().table_entries, 0);
    });
}

#[test]
fn a_snapshot_taken_before_a_compaction_defers_the_filter() {
    let db = filtered(&one_table().compaction_filter(Words));
    db.put("a", "drop").unwrap();
    db.put("b", "turn b").unwrap();
    let snapshot = db.snapshot();
    db.put("c", "drop").unwrap();
    db.put("a", "drop again").unwrap();
    db.compact_range(..).unwrap();
    let old = [text("a", "drop"), text("b", "turn b")];
    assert_eq!(pairs(snapshot.iter().unwrap()), old);
    assert_eq!(pairs(db.iter().unwrap()), [text("b", "turn b")]);
    let checkpoint = std::path::Path::new("copy");
    db.checkpoint(checkpoint).unwrap();
    drop(snapshot);
    db.compact_range(..).unwrap();
    assert_eq!(pairs(db.iter().unwrap()), [text("b", "done b")]);
}

/// A scan used to record deleted keys, and the keys after them that the filter had removed, as a range
/// without live keys at the snapshot's sequence number. The snapshot stepped over the first of the
/// deleted keys, and then skipped the range, although it sees keys there.
#[test]
fn a_snapshot_does_not_skip_what_later_scans_found_dead() {
    let (gate, entered, let_go) = Gate::new();
    let tiering = "tiering T=3 L0=3; buffer=1MiB".parse().unwrap();
    let options = in_memory().0.design(tiering).compaction_filter(gate);
    let db = options.open(DIR).unwrap();
    let write = |value: &str| {
        (0..300).for_each(|key| db.put(format!("{key:03}"), value).unwrap());
        db.flush().unwrap();
    };
    (0..3).for_each(|_| write("old"));
    while db.run_background_job().unwrap() {}
    (0..2).for_each(|_| write("new"));
    let ends = [0..40, 260..300];
    ends.into_iter().flatten().for_each(|key| db.delete(format!("{key:03}")).unwrap());
    db.flush().unwrap();
    default_of(&db).set_compaction_filter(Some("gate")).unwrap();
    std::thread::scope(|scope| {
        let jobs = scope.spawn(|| while db.run_background_job().unwrap() {});
        entered.recv_timeout(Duration::from_secs(60)).unwrap();
        let (snapshot, iter) = (db.snapshot(), db.iter().unwrap());
        let_go.send(()).unwrap();
        jobs.join().unwrap();
        assert_eq!(db.stats().table_tombstones, 300, "{}", db.tree());
        for _ in 0..3 {
            assert_eq!(db.iter().unwrap().count(), 0);
            assert_eq!(db.iter().unwrap().rev().count(), 0);
        }
        assert_eq!(snapshot.iter().unwrap().count(), 220);
        assert_eq!(snapshot.iter().unwrap().rev().count(), 220);
        assert_eq!(iter.count(), 220);
    });
}

#[test]
fn a_crash_during_a_filtering_compaction_leaves_each_value_or_what_becomes_of_it() {
    let design = format!("{}; values=separate(32,file=1KiB)", small_design());
    let (options, storage) = in_memory();
    let options = options.design(design.parse().unwrap()).compaction_filter(Words);
    let db = filtered(&options);
    for number in 0..200 {
        let word = ["drop", "turn", "keep"][number % 3];
        db.put(format!("{number:03}"), format!("{word} {}", "x".repeat(number % 60))).unwrap();
    }
    db.flush().unwrap();
    let before = pairs(db.iter().unwrap());
    storage.track_crash_points();
    db.compact_range(..).unwrap();
    let after = pairs(db.iter().unwrap());
    assert_eq!(after.len(), 133);
    let mut found = [0, 0];
    for (seed, point) in (0..).zip(storage.take_crash_points()) {
        let percent = [0, 50, 100][seed as usize % 3];
        let image = point.image(Crash::Power(Survival { percent, seed }));
        let db = options.clone().storage(Arc::new(image)).open(DIR).unwrap();
        let all = pairs(db.iter().unwrap());
        assert!(all.iter().all(|entry| before.contains(entry) || after.contains(entry)));
        let survives = |entry: &&(String, String)| all.iter().any(|one| one.0 == entry.0);
        assert_eq!(after.iter().filter(survives).count(), after.len(), "nothing else is lost");
        found[usize::from(all == after)] += 1;
        db.compact_range(..).unwrap();
        assert_eq!(pairs(db.iter().unwrap()), after);
    }
    assert!(found[0] > 0 && found[1] > 0, "{found:?}");
}

#[test]
fn a_filter_that_panics_is_not_called_again_and_loses_nothing() {
    let options = one_table().compaction_filter(Words);
    let db = filtered(&options);
    db.put("a", "drop").unwrap();
    db.put("b", "panic").unwrap();
    db.put("c", "drop").unwrap();
    db.compact_range(..).unwrap();
    let left = [text("b", "panic"), text("c", "drop")];
    assert_eq!(pairs(db.iter().unwrap()), left);
    let events = db.events();
    let inactive: Vec<_> = events.iter().filter(|event| is_inactive(&event.event)).collect();
    assert_eq!(inactive.len(), 1);
    assert!(
        inactive[0].event.to_string().contains("'words' is not applied: the function panicked")
    );
    let view = db.tree();
    assert!(view.compaction_filter.as_ref().unwrap().inactive.unwrap().contains("panicked"));
    assert!(view.to_string().contains("do not apply the filter 'words'"), "{view}");
    db.put("b", "fine").unwrap();
    db.compact_range(..).unwrap();
    assert_eq!(pairs(db.iter().unwrap()), [text("b", "fine"), text("c", "drop")]);
    drop(db);
    let db = options.open(DIR).unwrap();
    db.compact_range(..).unwrap();
    assert_eq!(pairs(db.iter().unwrap()), [text("b", "fine")]);
}

#[test]
fn a_filter_that_panicked_works_again_when_it_is_set_anew() {
    let db = filtered(&one_table().compaction_filter(Words));
    db.put("b", "panic").unwrap();
    db.put("c", "drop").unwrap();
    db.compact_range(..).unwrap();
    let keyspace = default_of(&db);
    // Setting the filter that the keyspace already has changes nothing.
    keyspace.set_compaction_filter(Some("words")).unwrap();
    let is_inactive = || db.tree().compaction_filter.unwrap().inactive.is_some();
    assert!(is_inactive());
    db.put("b", "fine").unwrap();
    keyspace.set_compaction_filter(None).unwrap();
    keyspace.set_compaction_filter(Some("words")).unwrap();
    assert!(!is_inactive());
    db.compact_range(..).unwrap();
    assert_eq!(pairs(db.iter().unwrap()), [text("b", "fine")]);
}

#[test]
fn the_name_is_stored_and_an_opening_without_the_filter_says_so() {
    let storage = MemoryStorage::new(3);
    let options = || one_table().storage(Arc::new(storage.clone()));
    let known = options().compaction_filter(Words);
    let db = filtered(&known);
    db.keyspace("other", KeyspaceOptions::new()).unwrap();
    db.put("k", "drop").unwrap();
    db.sync().unwrap();
    let image = storage.crash_point().image(Crash::Power(Survival { percent: 0, seed: 0 }));
    drop(db);
    let db = options().open(DIR).unwrap();
    let keyspace = default_of(&db);
    assert_eq!(keyspace.compaction_filter().as_deref(), Some("words"));
    let events = db.events();
    let event = events.iter().find(|event| is_inactive(&event.event)).unwrap();
    let sentence = "default: compaction filter 'words' is not applied: no function of this name is \
                    registered by Options::compaction_filter";
    assert_eq!(event.event.to_string(), sentence);
    assert!(db.tree().compaction_filter.unwrap().inactive.unwrap().contains("registered"));
    db.compact_range(..).unwrap();
    assert_eq!(get(&db, "k").unwrap(), "drop");
    let error = keyspace.set_compaction_filter(Some("others")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("'others' for keyspace 'default'"), "{error}");
    keyspace.set_compaction_filter(Some("")).unwrap_err();
    drop((db, keyspace));
    let reader = known.open_read_only(DIR).unwrap();
    assert_eq!(reader.tree().compaction_filter.unwrap().inactive, None);
    default_of(&reader).set_compaction_filter(None).unwrap_err();
    drop(reader);
    let db = known.open(DIR).unwrap();
    assert!(!db.events().iter().any(|event| is_inactive(&event.event)));
    db.compact_range(..).unwrap();
    assert_eq!(get(&db, "k"), None);
    default_of(&db).set_compaction_filter(None).unwrap();
    drop(db);
    let db = options().open(DIR).unwrap();
    assert_eq!((default_of(&db).compaction_filter(), db.tree().compaction_filter), (None, None));
    // The keyspace still has the filter after the crash.
    let crashed = Options::new().storage(Arc::new(image)).compaction_filter(Words);
    let db = crashed.open(DIR).unwrap();
    assert_eq!(default_of(&db).compaction_filter().as_deref(), Some("words"));
    db.compact_range(..).unwrap();
    assert_eq!(get(&db, "k"), None);
}

#[test]
fn repair_keeps_the_name_of_the_filter() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().compaction_filter(Words).design(small_design());
    let db = options.open(dir.path().join("db")).unwrap();
    default_of(&db).set_compaction_filter(Some("words")).unwrap();
    db.put("k", "drop").unwrap();
    db.close().unwrap();
    let target = dir.path().join("repaired");
    inspect::repair(dir.path().join("db"), &target).unwrap();
    let db = options.open(&target).unwrap();
    assert_eq!(default_of(&db).compaction_filter().as_deref(), Some("words"));
    assert_eq!(get(&db, "k").unwrap(), "drop");
}

/// Filters that read the database take no lock that a compaction holds.
#[test]
fn a_filter_reads_the_database() {
    #[derive(Debug)]
    struct Referenced(Arc<Mutex<Option<Db>>>);

    impl CompactionFilter for Referenced {
        fn name(&self) -> &'static str {
            "referenced"
        }

        fn decide(&self, key: &[u8], _value: &[u8]) -> FilterDecision {
            let db = self.0.lock().unwrap();
            let used = db.as_ref().unwrap().keyspace("used", KeyspaceOptions::new()).unwrap();
            let (snapshot, scan) = (db.as_ref().unwrap().snapshot(), used.iter().unwrap());
            let is_used = snapshot.contains_in(&used, key).unwrap() && scan.count() > 0;
            if is_used { FilterDecision::Keep } else { FilterDecision::Remove }
        }
    }

    let shared = Arc::new(Mutex::new(None));
    let db = one_table().compaction_filter(Referenced(Arc::clone(&shared))).open(DIR).unwrap();
    *shared.lock().unwrap() = Some(db.clone());
    default_of(&db).set_compaction_filter(Some("referenced")).unwrap();
    db.keyspace("used", KeyspaceOptions::new()).unwrap().put("b", "").unwrap();
    for key in ["a", "b", "c"] {
        db.put(key, "value").unwrap();
    }
    db.compact_range(..).unwrap();
    assert_eq!(pairs(db.iter().unwrap()), [text("b", "value")]);
    drop(shared.lock().unwrap().take());
}

/// The keys increase, as in a log, so the runs do not overlap.
#[test]
fn keys_that_grow_are_all_filtered_on_request() {
    let mut left = Vec::new();
    for entry in catalogue::ALL {
        let options = in_memory().0.design(tiny(entry.name)).compaction_filter(Words);
        let db = options.background(Background::Inline).open(DIR).unwrap();
        for number in 0..2000 {
            db.put(format!("{number:05}"), "drop this value, which is 40 bytes long").unwrap();
        }
        db.flush().unwrap();
        while db.run_background_job().unwrap() {}
        default_of(&db).set_compaction_filter(Some("words")).unwrap();
        db.compact_range(..).unwrap();
        let count = db.iter().unwrap().count();
        if count > 0 {
            left.push((entry.name, count));
        }
    }
    assert!(left.is_empty(), "left of 2000: {left:?}");
}
