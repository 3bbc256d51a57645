//! Explained lookups.

use std::time::Duration;

use terrane::{LookupAnswer, LookupPlace, Options, WriteOptions};

#[test]
fn a_path_shows_what_a_lookup_consults_up_to_the_answer() {
    let dir = tempfile::tempdir().unwrap();
    let db = Options::new().open(dir.path()).unwrap();
    let keyspace = db.default_keyspace();
    assert_eq!(
        keyspace.explain("a").unwrap().to_string(),
        "active memtable: searched, not found\nthe key has no value: nothing contains it"
    );
    for number in 0..1000 {
        keyspace.put(format!("key{:04}", number * 2), "value").unwrap();
    }
    keyspace.flush().unwrap();
    let found = keyspace.explain("key0010").unwrap();
    assert_eq!(
        found.to_string(),
        "active memtable: searched, not found\n\
         L0 run 0, table 1: put 6, 5 bytes\n\
         the key has a value"
    );
    let outside = keyspace.explain("z").unwrap();
    assert_eq!(outside.steps[1].answer, LookupAnswer::OutOfRange);
    assert!(matches!(outside.steps[1].place, LookupPlace::Run { level: 0, run: 0, table: None }));
    // Of many keys that no table has, the filter excludes nearly all.
    let absent =
        (0..500).map(|number| keyspace.explain(format!("key{:04}", number * 2 + 1)).unwrap());
    let filtered = absent.filter(|path| path.steps[1].answer == LookupAnswer::Filtered).count();
    assert!(filtered > 400, "{filtered}");

    keyspace.put("key0010", "new").unwrap();
    let path = keyspace.explain("key0010").unwrap();
    assert!(path.has_value && path.steps.len() == 1, "the memtable decides: {path}");
    assert_eq!(path.steps[0].place, LookupPlace::ActiveMemtable);
}

#[test]
fn deleted_and_expired_values_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let db = Options::new().open(dir.path()).unwrap();
    let keyspace = db.default_keyspace();
    for key in ["a", "b", "c", "d"] {
        keyspace.put(key, "value").unwrap();
    }
    keyspace.delete("a").unwrap();
    keyspace.delete_range("b".."c").unwrap();
    keyspace.put_with("c", "short", WriteOptions::new().ttl(Duration::from_micros(1))).unwrap();
    std::thread::sleep(Duration::from_millis(1));
    for is_flushed in [false, true] {
        if is_flushed {
            keyspace.flush().unwrap();
        }
        let decided = |key: &str| {
            let path = keyspace.explain(key).unwrap();
            (path.steps.last().unwrap().answer, path.has_value, keyspace.contains(key).unwrap())
        };
        let (answer, explained, contained) = decided("a");
        assert!(
            matches!(answer, LookupAnswer::Version { kind: "delete", sequence_number: 5, .. })
                || is_flushed
        );
        assert!(!explained && !contained);
        let (answer, explained, contained) = decided("b");
        assert!(
            matches!(answer, LookupAnswer::RangeTombstone { sequence_number: 6 }) || is_flushed,
            "{answer:?}"
        );
        assert!(!explained && !contained);
        let (_, explained, contained) = decided("c");
        assert!(!explained && !contained);
        let (answer, explained, contained) = decided("d");
        assert!(explained && contained && answer.decides());
    }
}
