//! Operands, and the operators that combine them with values.

use std::sync::Arc;
use std::time::Duration;

use terrane::storage::MemoryStorage;
use terrane::{
    Background, Clock, Db, ErrorKind, Keyspace, KeyspaceOptions, ManualClock, MergeOperator,
    Options, WriteBatch, WriteOptions, inspect,
};
use terrane_policy::catalogue;

use crate::support::{DIR, in_memory, pairs, small_design, tiny};

fn default_of(db: &Db) -> Keyspace {
    db.keyspace("default", KeyspaceOptions::new()).unwrap()
}

/// Opens a small database whose default keyspace has an operator.
fn small(operator: &str) -> (Db, Keyspace, Options) {
    let options = in_memory().0.design(small_design());
    let db = options.open(DIR).unwrap();
    let keyspace = default_of(&db);
    keyspace.set_merge_operator(operator).unwrap();
    (db, keyspace, options)
}

fn number(number: i64) -> [u8; 8] {
    number.to_le_bytes()
}

fn work(db: &Db) {
    while db.run_background_job().unwrap() {}
}

/// Checks the value of `k` in every way of reading.
fn check(db: &Db, value: &[u8], place: &str) {
    assert_eq!(db.get("k").unwrap().unwrap(), value, "{place}");
    assert!(db.contains("k").unwrap(), "{place}");
    assert_eq!(db.multi_get(["a", "k"]).unwrap()[1].as_ref().unwrap(), value, "{place}");
    assert_eq!(db.snapshot().get("k").unwrap().unwrap(), value, "{place}");
    let text = value.escape_ascii().to_string();
    assert_eq!(pairs(db.iter().unwrap()), [("k".to_owned(), text), ("x".into(), "1".into())]);
    let mut iter = db.iter().unwrap();
    assert_eq!(iter.next_back().unwrap().unwrap().0, "x");
    assert_eq!(iter.next_back().unwrap().unwrap().1, value, "{place}");
    let mut iter = db.range("k"..).unwrap();
    assert!(iter.advance().unwrap() && iter.value() == value, "{place}");
    assert!(iter.advance().unwrap() && iter.key() == b"x", "{place}");
}

#[test]
fn operands_change_the_value_below_them_wherever_both_are() {
    let (db, keyspace, options) = small("append");
    db.put("x", "1").unwrap();
    keyspace.merge("k", "a").unwrap();
    check(&db, b"a", "an operand alone");
    keyspace.merge("k", "b").unwrap();
    check(&db, b"ab", "two in a memtable");
    db.flush().unwrap();
    check(&db, b"ab", "flushed");
    keyspace.merge("k", "c").unwrap();
    check(&db, b"abc", "one in a memtable");
    db.flush().unwrap();
    check(&db, b"abc", "in two tables");
    drop((db, keyspace));
    let db = options.open(DIR).unwrap();
    let keyspace = default_of(&db);
    assert_eq!(keyspace.merge_operator(), Some("append"));
    keyspace.merge("k", "d").unwrap();
    check(&db, b"abcd", "reopened");
    check(&options.open_read_only(DIR).unwrap(), b"abcd", "read by another");
    db.compact_range(..).unwrap();
    check(&db, b"abcd", "compacted");
    assert_eq!(db.tree().shape.tables().map(|table| table.entries).sum::<u64>(), 2);
    db.put("k", "new").unwrap();
    keyspace.merge("k", "er").unwrap();
    check(&db, b"newer", "above a put");
    db.delete("k").unwrap();
    keyspace.merge("k", "again").unwrap();
    check(&db, b"again", "above a delete");
    db.flush().unwrap();
    db.delete_range("a".."l").unwrap();
    keyspace.merge("k", "more").unwrap();
    check(&db, b"more", "above a deleted range");
    work(&db);
    check(&db, b"more", "after all work");
}

#[test]
fn a_snapshot_sees_the_operands_before_it_and_no_others() {
    let (db, keyspace, _) = small("append");
    let mut snapshots = vec![(db.snapshot(), String::new())];
    let mut value = String::new();
    for round in 0..40_u8 {
        let letter = char::from(b'a' + round % 26).to_string();
        keyspace.merge("k", &letter).unwrap();
        value.push_str(&letter);
        match round % 10 {
            3 => db.flush().unwrap(),
            6 => snapshots.push((db.snapshot(), value.clone())),
            9 => db.compact_range(..).unwrap(),
            8 if round == 18 => {
                db.delete_range("k".."l").unwrap();
                value.clear();
            }
            _ => {}
        }
        for (snapshot, value) in &snapshots {
            let found = snapshot.get("k").unwrap();
            assert_eq!(found.as_deref().unwrap_or_default(), value.as_bytes());
            let first = snapshot.iter().unwrap().next_back();
            assert_eq!(first.is_some(), !value.is_empty());
            first.into_iter().for_each(|entry| assert_eq!(entry.unwrap().1, value.as_bytes()));
        }
        assert_eq!(db.get("k").unwrap().as_deref().unwrap_or_default(), value.as_bytes());
    }
    drop(snapshots);
    db.compact_range(..).unwrap();
    assert_eq!(db.tree().shape.tables().map(|table| table.entries).sum::<u64>(), 1);
}

#[test]
fn concurrent_increments_add_up_under_every_design() {
    for entry in catalogue::ALL {
        let db = Options::new()
            .storage(Arc::new(MemoryStorage::new(1)))
            .memory_budget(16 << 20)
            .design(tiny(entry.name))
            .open(DIR)
            .unwrap();
        let keyspace = default_of(&db);
        keyspace.set_merge_operator("counter_add").unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let keyspace = &keyspace;
                scope.spawn(move || {
                    for round in 0..500_u64 {
                        keyspace.merge(format!("{:03}", round % 50), number(1)).unwrap();
                        keyspace.put(format!("other {thread} {round}"), [7; 40]).unwrap();
                    }
                });
            }
        });
        for counter in 0..50 {
            let found = db.get(format!("{counter:03}")).unwrap().unwrap();
            assert_eq!(found, number(40), "{} of {}", counter, entry.name);
        }
        let counters: Vec<_> = db.range("0".."1").unwrap().map(|entry| entry.unwrap().1).collect();
        assert!(counters.len() == 50 && counters.iter().all(|count| *count == number(40)));
        db.compact_range(..).unwrap();
        assert_eq!(db.get("007").unwrap().unwrap(), number(40), "{}", entry.name);
    }
}

#[test]
fn a_memtable_that_overwrites_in_place_keeps_what_operands_need() {
    for design in [
        "leveling; memtable=flodb; buffer=64KiB",
        "leveling; memtable=flodb(membuffer=0%); buffer=64KiB",
        "leveling; memtable=flodb(lower=skiplist,scan=restart); buffer=64KiB",
    ] {
        let db = in_memory().0.design(design.parse().unwrap()).open(DIR).unwrap();
        let keyspace = default_of(&db);
        keyspace.set_merge_operator("append").unwrap();
        for round in 0..2000_u32 {
            let key = format!("{:02}", round % 7);
            if round % 21 < 7 {
                db.put(&key, format!("{round}")).unwrap();
            } else {
                keyspace.merge(&key, format!("+{round}")).unwrap();
            }
            let expected = match round / 7 % 3 {
                0 => format!("{round}"),
                1 => format!("{}+{round}", round - 7),
                _ => format!("{}+{}+{round}", round - 14, round - 7),
            };
            assert_eq!(db.get(&key).unwrap().unwrap(), expected, "{design}");
            let mut scan = db.range(key.as_str().."9").unwrap();
            assert_eq!(scan.next().unwrap().unwrap().1, expected, "{design}");
        }
    }
}

#[test]
fn many_operands_of_one_key_are_read_and_combined_in_time() {
    let (db, keyspace, _) = small("append");
    db.set_design("leveling; buffer=64MiB".parse().unwrap()).unwrap();
    let count = 100_000_usize;
    for _ in 0..count {
        keyspace.merge("k", "a").unwrap();
    }
    // Lookup and flush would take minutes if they copied the result for each operand.
    assert_eq!(db.get("k").unwrap().unwrap().len(), count);
    db.flush().unwrap();
    assert_eq!(db.get("k").unwrap().unwrap().len(), count);
    let entries: u64 = db.tree().shape.tables().map(|table| table.entries).sum();
    // There is one entry per memtable.
    assert!(entries < 5, "{entries}");
}

#[test]
fn operands_that_cannot_be_combined_are_kept_until_a_value_hides_them() {
    let (db, keyspace, _) = small("counter_add");
    db.put("a", number(1)).unwrap();
    db.put("z", number(2)).unwrap();
    let snapshot = db.snapshot();
    for round in 0..300_u32 {
        keyspace.merge("k", "not 8 bytes").unwrap();
        keyspace.merge("z", number(1)).unwrap();
        if round % 70 == 0 {
            db.flush().unwrap();
        }
    }
    for round in 0..3 {
        assert_eq!(db.get("k").unwrap_err().kind(), ErrorKind::Invalid, "{round}");
        let mut iter = db.range("k"..).unwrap();
        assert!(iter.advance().is_err(), "{round}");
        assert!(db.iter().unwrap().rev().nth(1).unwrap().is_err(), "{round}");
        assert_eq!(db.get("z").unwrap().unwrap(), number(302), "{round}");
        assert!(snapshot.get("k").unwrap().is_none(), "{round}");
        if round == 0 { db.flush().unwrap() } else { db.compact_range(..).unwrap() }
    }
    let entries: u64 = db.tree().shape.tables().map(|table| table.entries).sum();
    // These are all 300 operands, "a", and "z" in two versions, one of them for the snapshot.
    assert!((303..310).contains(&entries), "{entries}");
    db.put("k", number(5)).unwrap();
    keyspace.merge("k", number(1)).unwrap();
    assert_eq!(db.get("k").unwrap().unwrap(), number(6));
    drop(snapshot);
    db.compact_range(..).unwrap();
    let all = pairs(db.iter().unwrap());
    assert_eq!(all.len(), 3, "{all:?}");
}

#[test]
fn separated_values_and_values_that_expire_stay_below_their_operands() {
    let clock = Arc::new(ManualClock::new(1_000_000_000));
    let options = in_memory().0.clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let db = options.open(DIR).unwrap();
    db.set_design("1-leveling; buffer=64KiB; values=separate(1KiB)".parse().unwrap()).unwrap();
    let keyspace = default_of(&db);
    keyspace.set_merge_operator("append").unwrap();
    let large = vec![b'v'; 5000];
    db.put("big", &large).unwrap();
    db.put_with("expires", "v", WriteOptions::new().ttl(Duration::from_secs(10))).unwrap();
    db.flush().unwrap();
    keyspace.merge("big", "+").unwrap();
    keyspace.merge("expires", "+").unwrap();
    let whole = [&large[..], b"+"].concat();
    for round in 0..3 {
        assert_eq!(db.get("big").unwrap().unwrap(), whole, "{round}");
        assert_eq!(db.get("expires").unwrap().unwrap(), "v+", "{round}");
        let mut iter = db.iter().unwrap();
        assert!(iter.advance().unwrap() && iter.value() == whole);
        let mut back = db.iter().unwrap().rev();
        assert_eq!(back.next().unwrap().unwrap().1, "v+");
        assert_eq!(back.next().unwrap().unwrap().1, whole);
        if round == 0 { db.flush().unwrap() } else { db.compact_range(..).unwrap() }
    }
    // An operand outlives the value below it.
    clock.advance(Duration::from_secs(10));
    assert_eq!(db.get("expires").unwrap().unwrap(), "+");
    db.compact_range(..).unwrap();
    assert_eq!(db.get("expires").unwrap().unwrap(), "+");
}

/// Keeps the longer of two values.
#[derive(Debug)]
struct Longest;

impl MergeOperator for Longest {
    fn name(&self) -> &str {
        "longest"
    }

    fn combine(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some(if newer.len() > older.len() { newer } else { older }.to_vec())
    }
}

#[test]
fn an_operator_of_the_application_is_needed_by_every_opening() {
    let (options, _) = in_memory();
    let own = options.clone().merge_operator(Longest);
    let db = own.open(DIR).unwrap();
    let error = default_of(&db).set_merge_operator("shortest").unwrap_err().to_string();
    assert!(error.contains("'shortest'") && error.contains("longest"), "{error}");
    let words = db.keyspace("words", KeyspaceOptions::new()).unwrap();
    words.set_merge_operator("longest").unwrap();
    words.set_merge_operator("longest").unwrap();
    let error = words.set_merge_operator("append").unwrap_err().to_string();
    assert!(error.contains("'longest', which the keyspace has"), "{error}");
    for word in ["a", "abc", "ab"] {
        words.merge("k", word).unwrap();
    }
    drop((db, words));
    for error in [options.open(DIR).unwrap_err(), options.open_read_only(DIR).unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let text = error.to_string();
        let parts = ["'longest'", "'words'", "Options::merge_operator"];
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
    let db = own.open(DIR).unwrap();
    let words = db.keyspace("words", KeyspaceOptions::new()).unwrap();
    assert_eq!(words.get("k").unwrap().unwrap(), "abc");
    db.close().unwrap();
}

#[test]
fn merges_without_an_operator_are_refused() {
    let (db, counters, _) = small("counter_add");
    let plain = db.keyspace("plain", KeyspaceOptions::new()).unwrap();
    let error = plain.merge("k", "1").unwrap_err().to_string();
    assert!(error.contains("'plain', which has no merge operator"), "{error}");
    let mut batch = WriteBatch::new();
    batch.merge("k", number(1)).merge_in(&counters, "k", number(2));
    db.write(&batch).unwrap();
    assert_eq!(db.get("k").unwrap().unwrap(), number(3));
    db.write(batch.merge_in(&plain, "k", "1")).unwrap_err();
    assert_eq!(db.get("k").unwrap().unwrap(), number(3));
    let ttl = WriteOptions::new().ttl(Duration::from_secs(1));
    counters.merge_with("k", number(1), ttl).unwrap_err();
    db.transaction(|tx| {
        tx.merge("k", number(10))?;
        assert_eq!(tx.get("k")?.unwrap(), number(13));
        tx.merge_in(&plain, "k", "1").unwrap_err();
        tx.merge("k", number(100))
    })
    .unwrap();
    assert_eq!(db.get("k").unwrap().unwrap(), number(113));
    // The result of a merge in a transaction does not expire, like any operand.
    counters.set_ttl(Some(Duration::from_nanos(1000))).unwrap();
    db.transaction(|tx| tx.merge("k", number(1))).unwrap();
    assert_eq!(db.get("k").unwrap().unwrap(), number(114));
}

#[test]
fn what_cannot_be_combined_fails_reads_of_its_key_alone() {
    let (db, keyspace, options) = small("counter_add");
    db.put("good", number(1)).unwrap();
    db.put("bad", "no number").unwrap();
    for _ in 0..3 {
        keyspace.merge("good", number(1)).unwrap();
        keyspace.merge("bad", number(1)).unwrap();
        db.flush().unwrap();
    }
    db.compact_range(..).unwrap();
    drop((db, keyspace));
    let db = options.open(DIR).unwrap();
    let error = db.get("bad").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(
        error.to_string().contains("an operand of key 'bad', which counter_add cannot combine"),
        "{error}"
    );
    assert!(db.contains("bad").unwrap());
    assert_eq!(db.get("good").unwrap().unwrap(), number(4));
    assert!(db.iter().unwrap().next().unwrap().is_err());
    assert_eq!(db.range("c"..).unwrap().count(), 1);
    db.set_design("leveling; memtable=flodb(scan=restart); buffer=64KiB".parse().unwrap()).unwrap();
    db.flush().unwrap();
    default_of(&db).merge("bad", number(1)).unwrap();
    let mut bounded = db.range("a".."z").unwrap();
    assert!(bounded.next().unwrap().is_err());
    assert_eq!(db.range("c".."z").unwrap().count(), 1);
    db.put("bad", number(5)).unwrap();
    assert_eq!(db.iter().unwrap().map(Result::unwrap).count(), 2);
}

#[test]
fn repair_keeps_operands_once_each() {
    let dir = tempfile::tempdir().unwrap();
    let own = Options::new().merge_operator(Longest);
    let db = own.open(dir.path()).unwrap();
    let counters = default_of(&db);
    counters.set_merge_operator("counter_add").unwrap();
    let words = db.keyspace("words", KeyspaceOptions::new()).unwrap();
    words.set_merge_operator("longest").unwrap();
    words.set_ttl(Some(Duration::from_secs(3600))).unwrap();
    for round in 0..3_i64 {
        counters.merge("k", number(1)).unwrap();
        counters.merge("only operands", number(round)).unwrap();
        words.merge("k", "x".repeat(3 - round as usize)).unwrap();
        if round < 2 {
            db.put("k", number(10)).unwrap();
            counters.merge("k", number(5)).unwrap();
            db.flush().unwrap();
        }
    }
    drop((db, counters, words));
    let table = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let is_table = |path: &std::path::PathBuf| path.extension().is_some_and(|ext| ext == "sst");
    let kinds: Vec<bool> = table
        .filter(is_table)
        .flat_map(|path| inspect::table(path).unwrap().iter().collect::<Vec<_>>())
        .map(|entry| entry.unwrap().is_operand)
        .collect();
    assert!(kinds.contains(&true), "{kinds:?}");
    let target = dir.path().join("repaired");
    inspect::repair(dir.path(), &target).unwrap();
    Options::new().open(&target).unwrap_err();
    let db = own.open(&target).unwrap();
    assert_eq!(db.get("k").unwrap().unwrap(), number(16));
    assert_eq!(db.get("only operands").unwrap().unwrap(), number(3));
    let words = db.keyspace("words", KeyspaceOptions::new()).unwrap();
    assert_eq!(words.get("k").unwrap().unwrap(), "xxx");
    assert_eq!(words.ttl(), Some(Duration::from_secs(3600)));
}

#[test]
fn inline_work_combines_as_well() {
    let options = Options::new().storage(Arc::new(MemoryStorage::new(1)));
    let db = options.background(Background::Inline).design(small_design()).open(DIR).unwrap();
    let keyspace = default_of(&db);
    keyspace.set_merge_operator("max").unwrap();
    for round in 0..3000_u32 {
        keyspace.merge(format!("{:02}", round % 40), format!("{round:05}")).unwrap();
    }
    db.flush().unwrap();
    work(&db);
    let all: Vec<_> = db.iter().unwrap().map(|entry| entry.unwrap().1).collect();
    assert_eq!(all.len(), 40);
    assert!(all.iter().all(|value| value[..] >= b"02960"[..]));
}

/// Changes absolute values only, so that deltas are combined with the value below them, but not with each
/// other.
#[derive(Debug)]
struct Deltas;

impl MergeOperator for Deltas {
    fn name(&self) -> &str {
        "deltas"
    }

    fn combine(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        let older: u64 = std::str::from_utf8(older.strip_prefix(b"=")?).ok()?.parse().ok()?;
        let delta: u64 = std::str::from_utf8(newer.strip_prefix(b"+")?).ok()?.parse().ok()?;
        Some(format!("={}", older + delta).into_bytes())
    }
}

#[test]
fn operands_that_only_a_value_combines_are_read_in_any_number() {
    let db = in_memory().0.design(small_design()).merge_operator(Deltas).open(DIR).unwrap();
    let keyspace = default_of(&db);
    keyspace.set_merge_operator("deltas").unwrap();
    db.put("k", "=0").unwrap();
    let mut failed = None;
    for number in 1..100 {
        keyspace.merge("k", "+1").unwrap();
        let got = db.get("k").map(|value| value.map(|value| value.to_vec()));
        match got {
            Ok(value) => assert_eq!(value.unwrap(), format!("={number}").into_bytes()),
            Err(error) => failed = failed.or(Some(format!("{number}: {error}"))),
        }
    }
    assert_eq!(failed, None);
    db.compact_range(..).unwrap();
    assert_eq!(db.get("k").unwrap().unwrap(), *b"=99");
}

/// Returns the value of `k`, or the error, from a lookup, a forward scan and a backward scan.
fn in_three_ways(db: &Db) -> [Result<Vec<u8>, String>; 3] {
    let text = |error: terrane::Error| {
        assert_eq!(error.kind(), ErrorKind::Invalid);
        error.to_string()
    };
    let got = db.get("k").map(|value| value.unwrap().to_vec());
    let value_of = |entry: terrane::Result<(terrane::Key, terrane::Value)>| {
        entry.map(|(key, value)| {
            assert_eq!(key, "k");
            value.to_vec()
        })
    };
    let forward = value_of(db.range("k".."l").unwrap().next().unwrap());
    let mut back = db.iter().unwrap();
    assert_eq!(back.next_back().unwrap().unwrap().0, "z");
    let backward = value_of(back.next_back().unwrap());
    // A scan continues below the key, unless it failed.
    let below = back.next_back();
    assert_eq!(below.is_some(), backward.is_ok());
    below.into_iter().for_each(|entry| assert_eq!(entry.unwrap().0, "a"));
    [got.map_err(text), forward.map_err(text), backward.map_err(text)]
}

#[test]
fn a_scan_backward_finds_the_value_of_any_number_of_operands() {
    let db = in_memory().0.design(small_design()).merge_operator(Deltas).open(DIR).unwrap();
    let keyspace = default_of(&db);
    keyspace.set_merge_operator("deltas").unwrap();
    db.put("a", "=1").unwrap();
    db.put("z", "=2").unwrap();
    db.put("k", "=1000").unwrap();
    for count in 1..=3000_u32 {
        keyspace.merge("k", "+1").unwrap();
        if count % 700 == 0 {
            db.flush().unwrap();
        }
        // Checks counts around the number of versions that a backward scan keeps, and far above it.
        if (60..70).contains(&count) || count.is_power_of_two() || count == 3000 {
            let expected = format!("={}", 1000 + count).into_bytes();
            assert_eq!(
                in_three_ways(&db),
                [Ok(expected.clone()), Ok(expected.clone()), Ok(expected)]
            );
        }
    }
    let snapshot = db.snapshot();
    db.delete_range("b".."l").unwrap();
    keyspace.merge("k", "=7").unwrap();
    (0..200).for_each(|_| keyspace.merge("k", "+1").unwrap());
    assert_eq!(in_three_ways(&db), [(); 3].map(|()| Ok(b"=207".to_vec())));
    let mut old = snapshot.iter().unwrap();
    assert_eq!(old.nth_back(1).unwrap().unwrap().1, "=4000");
    assert_eq!(old.next_back().unwrap().unwrap().1, "=1");
}

#[test]
fn a_scan_backward_refuses_the_operands_that_a_scan_forward_refuses() {
    let options = in_memory().0.design(small_design()).merge_operator(Deltas);
    let db = options.open(DIR).unwrap();
    let keyspace = default_of(&db);
    keyspace.set_merge_operator("deltas").unwrap();
    db.put("a", "=1").unwrap();
    db.put("z", "=2").unwrap();
    (0..1000).for_each(|_| keyspace.merge("k", "+1").unwrap());
    let found = in_three_ways(&db);
    let text = "an operand of key 'k', which deltas cannot combine";
    assert!(found[0].as_ref().unwrap_err().contains(text), "{found:?}");
    assert!(found.iter().all(|other| *other == found[0]), "{found:?}");
    // Operands of more than 64 MiB are refused before all of them are read.
    let large = [b"+".to_vec(), vec![b'0'; 1 << 20]].concat();
    (0..70).for_each(|_| keyspace.merge("k", &large).unwrap());
    let found = in_three_ways(&db);
    let text = "bytes of operands of key 'k', which deltas cannot combine";
    assert!(found[0].as_ref().unwrap_err().contains(text), "{found:?}");
    assert!(found.iter().all(|other| *other == found[0]), "{found:?}");
}

/// A merge operator that joins with a comma, and panics on request.
#[derive(Debug)]
struct Panics;

impl MergeOperator for Panics {
    fn name(&self) -> &str {
        "test.panics"
    }

    fn combine(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        let asks = |part: &[u8]| part.ends_with(b"panic") || part.starts_with(b"panic");
        assert!(!asks(older) && !asks(newer), "asked for");
        Some([older, b",", newer].concat())
    }
}

#[test]
fn an_operator_that_panics_fails_only_the_reads_of_its_key() {
    let options = in_memory().0.design(small_design()).merge_operator(Panics);
    let db = options.open(DIR).unwrap();
    let keyspace = default_of(&db);
    keyspace.set_merge_operator("test.panics").unwrap();
    for (key, operand) in [("a", "1"), ("a", "2"), ("b", "1"), ("b", "panic"), ("b", "3")] {
        keyspace.merge(key, operand).unwrap();
    }
    for place in ["memtable", "table", "after a compaction"] {
        assert_eq!(db.get("a").unwrap().unwrap(), b"1,2", "{place}");
        let error = db.get("b").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{place}");
        let text = error.to_string();
        assert!(text.contains("of key 'b', which test.panics cannot combine"), "{text}");
        if place == "memtable" {
            db.flush().unwrap();
        } else {
            db.compact_range(..).unwrap();
        }
    }
    db.put("b", "4").unwrap();
    keyspace.merge("b", "5").unwrap();
    assert_eq!(db.get("b").unwrap().unwrap(), b"4,5");
}

#[test]
fn a_database_is_looked_after_without_its_operator() {
    let base = in_memory().0.design(small_design());
    let known = base.clone().merge_operator(Panics);
    let db = known.open(DIR).unwrap();
    default_of(&db).set_merge_operator("test.panics").unwrap();
    db.put("k", "0").unwrap();
    for operand in ["1", "2"] {
        default_of(&db).merge("k", operand).unwrap();
        db.flush().unwrap();
    }
    db.put("x", "x").unwrap();
    db.close().unwrap();
    let refused = base.open(DIR).unwrap_err().to_string();
    assert!(
        refused.contains("'test.panics'") && refused.contains("unknown_functions"),
        "{refused}"
    );
    let db = base.clone().unknown_functions().open(DIR).unwrap();
    db.compact_range(..).unwrap();
    assert_eq!(db.get("x").unwrap().unwrap(), b"x");
    assert_eq!(db.get("k").unwrap_err().kind(), ErrorKind::Invalid);
    default_of(&db).merge("k", "3").unwrap();
    default_of(&db).set_merge_operator("test.panics").unwrap();
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    for name in ["counter_ad", ""] {
        assert_eq!(other.set_merge_operator(name).unwrap_err().kind(), ErrorKind::Invalid);
    }
    assert!(other.set_compaction_filter(Some("counter_ad")).is_err());
    db.close().unwrap();
    let db = known.open(DIR).unwrap();
    assert_eq!(db.get("k").unwrap().unwrap(), b"0,1,2,3");
}
