//! The limits on the length of keys and values.

use terrane::{ErrorKind, MAX_KEY_LEN, MAX_VALUE_LEN, Options, WriteBatch};

use crate::support::{DIR, in_memory, keys, small};

fn long_key() -> Vec<u8> {
    (0..MAX_KEY_LEN).map(|at| (at % 255) as u8).collect()
}

#[test]
fn the_limits_match_the_documentation() {
    assert_eq!((MAX_KEY_LEN, MAX_VALUE_LEN), (64 << 10, 1 << 30));
}

#[test]
fn a_longest_key_is_kept_and_a_longer_one_is_refused() {
    let (options, _) = in_memory();
    let db = options.open(DIR).unwrap();
    let longest = long_key();
    let longer = [&longest[..], b"x"].concat();
    db.put(&longest, "long").unwrap();
    db.put("zz", "short").unwrap();
    let mut batch = WriteBatch::new();
    batch.put("fine", "but not alone").put(&longer, "v");
    for refused in [
        db.put(&longer, "v"),
        db.delete(&longer),
        db.delete_range(&longer[..]..=&longer[..]),
        db.write(&batch),
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let text = error.to_string();
        assert!(text.contains("65537 bytes") && text.contains("64 KiB"), "{text}");
    }
    let check = |db: &terrane::Db| {
        assert_eq!(db.get(&longest).unwrap().unwrap(), "long");
        assert!(!db.contains(&longer).unwrap() && !db.contains("fine").unwrap());
        assert_eq!(keys(db.range(&longest[..]..=&longest[..]).unwrap()).len(), 1);
        assert_eq!(keys(db.prefix(&longest).unwrap()).len(), 1);
    };
    check(&db);
    db.flush().unwrap();
    check(&db);
    drop(db);
    let db = options.open(DIR).unwrap();
    check(&db);
    // A range that ends right after the longest key contains that key and no other key.
    db.delete_range(&longest[..]..=&longest[..]).unwrap();
    db.flush().unwrap();
    assert_eq!(keys(db.iter().unwrap()), ["zz"]);
}

#[test]
fn keys_and_values_may_be_empty() {
    let (options, _) = in_memory();
    let db = options.open(DIR).unwrap();
    let check = |db: &terrane::Db| {
        assert_eq!(db.get("").unwrap().unwrap(), "nothing");
        assert_eq!(db.get("empty").unwrap().unwrap(), "");
        assert_eq!(db.get("absent").unwrap(), None);
        assert_eq!(keys(db.iter().unwrap()), ["", "empty"]);
        assert_eq!(keys(db.iter().unwrap().rev()), ["empty", ""]);
        assert_eq!(keys(db.range(""..="").unwrap()), [""]);
    };
    db.put("", "nothing").unwrap();
    db.put("empty", "").unwrap();
    check(&db);
    db.flush().unwrap();
    check(&db);
    drop(db);
    let db = options.open(DIR).unwrap();
    check(&db);
    db.delete("").unwrap();
    assert!(!db.contains("").unwrap());
    db.flush().unwrap();
    db.compact_range(..).unwrap();
    assert_eq!(keys(db.iter().unwrap()), ["empty"]);
}

#[test]
fn values_around_every_internal_boundary_read_back() {
    let db = small();
    // Values in place, in a shared block, in a block of their own, and written to the log
    // separately.
    let lens =
        [0, 1, 21, 22, 23, 511, 512, 513, 4095, 16_384, 16_385, 32_767, 32_768, 65_536, 300_000];
    let bytes = |len: usize| (0..len).map(|at| (at * 31 + len) as u8).collect::<Vec<u8>>();
    for len in lens {
        db.put(format!("{len:06}"), bytes(len)).unwrap();
    }
    let check = |when: &str| {
        for len in lens {
            let found = db.get(format!("{len:06}")).unwrap().unwrap();
            assert!(found == bytes(len), "{len} bytes {when}");
        }
        let from_scan: Vec<usize> =
            db.iter().unwrap().map(|entry| entry.unwrap().1.len()).collect();
        assert_eq!(from_scan, lens, "{when}");
    };
    check("in memory");
    db.flush().unwrap();
    check("in tables");
    db.compact_range(..).unwrap();
    check("after a compaction");
}

fn large_value(len: usize) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new();
    let mut value = vec![0x5a; len];
    value[len / 2] = 1;
    value[len - 1] = 2;
    let db = options.open(dir.path()).unwrap();
    db.put("before", "b").unwrap();
    db.put("large", &value).unwrap();
    db.put("quite after", "a").unwrap();
    assert!(db.get("large").unwrap().unwrap() == value, "in memory");
    drop(db);
    let db = options.open(dir.path()).unwrap();
    assert!(db.get("large").unwrap().unwrap() == value, "from the log");
    db.flush().unwrap();
    let held = db.get("large").unwrap().unwrap();
    assert!(held == value, "from a table");
    assert_eq!(keys(db.iter().unwrap().rev()), ["quite after", "large", "before"]);
    // A value that a reader holds outlives the database.
    db.delete("large").unwrap();
    db.compact_range(..).unwrap();
    assert_eq!(db.get("large").unwrap(), None);
    db.close().unwrap();
    assert!(held == value, "held");
}

#[test]
fn a_value_of_64_mib_is_kept() {
    large_value(64 << 20);
}

/// This test takes 5 GiB of memory and disk; `TERRANE_LARGE=1` runs it.
#[test]
fn a_value_of_1_gib_is_kept_and_a_longer_one_is_refused() {
    if std::env::var_os("TERRANE_LARGE").is_none() {
        return;
    }
    large_value(MAX_VALUE_LEN);
    let error = small().put("k", vec![0; MAX_VALUE_LEN + 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("1 GiB"), "{error}");
}
