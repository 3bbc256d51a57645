//! One transaction after the other, against a map: own writes, ranges in both directions, savepoints.

use std::collections::BTreeMap;
use std::ops::Bound;

use terrane::{Isolation, Keyspace, KeyspaceOptions, Transaction, TransactionOptions};
use terrane_testkit::{Rng, seed_from_env};

use super::{MEMTABLES, open};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(rng: &mut Rng) -> Vec<u8> {
    format!("k{:02}", rng.below(60)).into_bytes()
}

fn bounds(rng: &mut Rng) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let (a, b) = (key(rng), key(rng));
    let (a, b) = if a <= b { (a, b) } else { (b, a) };
    let start = match rng.below(3) {
        0 => Bound::Unbounded,
        1 => Bound::Excluded(a.clone()),
        _ => Bound::Included(a.clone()),
    };
    let end = match rng.below(3) {
        0 => Bound::Unbounded,
        // `BTreeMap` panics at a range between two equal excluded keys.
        1 if a < b => Bound::Excluded(b),
        _ => Bound::Included(b),
    };
    (start, end)
}

fn show(entries: &[(Vec<u8>, Vec<u8>)]) -> String {
    let one = |(key, value): &(Vec<u8>, Vec<u8>)| {
        format!("{}={}", key.escape_ascii(), value.escape_ascii())
    };
    entries.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// A transaction, and the maps that it should see: of the default keyspace and of another one.
struct Case<'a> {
    tx: Transaction,
    other: &'a Keyspace,
    maps: [Map; 2],
    savepoints: Vec<[Map; 2]>,
}

impl Case<'_> {
    /// Performs a random operation, and compares its result with the maps.
    fn step(&mut self, rng: &mut Rng, story: &str) {
        let which = rng.below(2) as usize;
        match rng.below(100) {
            0..25 => self.put(which, key(rng), rng.below(1000).to_string().into_bytes()),
            25..40 => self.delete(which, &key(rng)),
            40..47 => self.delete_range(which, bounds(rng)),
            47..60 => self.look_up(which, &key(rng), story),
            60..68 => self.look_up_many(which, rng, story),
            68..88 => self.iterate(which, rng, story),
            88..93 => {
                self.tx.savepoint();
                self.savepoints.push(self.maps.clone());
            }
            93..98 => {
                let before = self.savepoints.pop();
                assert_eq!(self.tx.roll_back_to_savepoint(), before.is_some(), "{story}");
                self.maps = before.unwrap_or_else(|| self.maps.clone());
            }
            _ => {
                let released = self.savepoints.pop().is_some();
                assert_eq!(self.tx.release_savepoint(), released, "{story}");
            }
        }
    }

    fn put(&mut self, which: usize, key: Vec<u8>, value: Vec<u8>) {
        match which {
            0 => self.tx.put(&key, &value),
            _ => self.tx.put_in(self.other, &key, &value).unwrap(),
        }
        self.maps[which].insert(key, value);
    }

    fn delete(&mut self, which: usize, key: &[u8]) {
        match which {
            0 => self.tx.delete(key),
            _ => self.tx.delete_in(self.other, key).unwrap(),
        }
        self.maps[which].remove(key);
    }

    fn delete_range(&mut self, which: usize, range: (Bound<Vec<u8>>, Bound<Vec<u8>>)) {
        match which {
            0 => self.tx.delete_range(range.clone()),
            _ => self.tx.delete_range_in(self.other, range.clone()).unwrap(),
        }
        let map = &mut self.maps[which];
        let gone: Vec<_> = map.range(range).map(|(key, _)| key.clone()).collect();
        gone.iter().for_each(|key| drop(map.remove(key)));
    }

    fn look_up(&self, which: usize, key: &[u8], story: &str) {
        let (found, exists) = match which {
            0 => (self.tx.get(key), self.tx.contains(key)),
            _ => (self.tx.get_in(self.other, key), self.tx.contains_in(self.other, key)),
        };
        let expected = self.maps[which].get(key);
        assert_eq!(found.unwrap().map(|found| found.to_vec()), expected.cloned(), "{story}");
        assert_eq!(exists.unwrap(), expected.is_some(), "{story}");
    }

    fn look_up_many(&self, which: usize, rng: &mut Rng, story: &str) {
        let keys: Vec<_> = (0..rng.below(6)).map(|_| key(rng)).collect();
        let found = match which {
            0 => self.tx.multi_get(&keys),
            _ => self.tx.multi_get_in(self.other, &keys),
        };
        let found = found.unwrap().into_iter().map(|one| one.map(|one| one.to_vec()));
        assert!(found.eq(keys.iter().map(|key| self.maps[which].get(key).cloned())), "{story}");
    }

    /// Iterates over a range, taking each entry from a random end, and sometimes stops early.
    fn iterate(&self, which: usize, rng: &mut Rng, story: &str) {
        let range = bounds(rng);
        let mut expected = self.maps[which].range(range.clone());
        let mut entries = match which {
            0 => self.tx.range(range.clone()).unwrap(),
            _ => self.tx.range_in(self.other, range.clone()).unwrap(),
        };
        let (mut found, mut wanted) = (Vec::new(), Vec::new());
        for _ in 0..rng.below(80) {
            let (next, expected) = match rng.percent(50) {
                true => (entries.next(), expected.next()),
                false => (entries.next_back(), expected.next_back()),
            };
            let next = next.map(Result::unwrap);
            found.extend(next.map(|(key, value)| (key.to_vec(), value.to_vec())));
            wanted.extend(expected.map(|(key, value)| (key.clone(), value.clone())));
        }
        assert_eq!(show(&found), show(&wanted), "{story}, {range:?}");
    }
}

fn contents(entries: terrane::Iter) -> Map {
    let pair = |entry: terrane::Result<(terrane::Key, terrane::Value)>| {
        let (key, value) = entry.unwrap();
        (key.to_vec(), value.to_vec())
    };
    entries.map(pair).collect()
}

#[test]
fn transactions_see_the_snapshot_and_their_own_writes() {
    let seed = seed_from_env(13_000);
    for (number, memtable) in MEMTABLES.into_iter().enumerate() {
        let rng = &mut Rng::new(seed + number as u64);
        let db = open(memtable);
        let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
        let mut committed = [Map::new(), Map::new()];
        for round in 0..150 {
            let isolation =
                if rng.percent(50) { Isolation::Serializable } else { Isolation::Snapshot };
            let tx = db.begin_with(TransactionOptions::new().isolation(isolation));
            let (maps, savepoints) = (committed.clone(), Vec::new());
            let mut case = Case { tx, other: &other, maps, savepoints };
            for step in 0..rng.below(30) {
                let story = format!("seed {seed}, {memtable}, round {round}, step {step}");
                case.step(rng, &story);
            }
            match rng.below(4) {
                0 => case.tx.roll_back(),
                1 => drop(case),
                _ => {
                    case.tx.commit().unwrap();
                    committed = case.maps;
                }
            }
            if rng.percent(10) {
                db.flush().unwrap();
            }
            let now = [contents(db.iter().unwrap()), contents(other.iter().unwrap())];
            assert!(now == committed, "seed {seed}, {memtable}, round {round}");
        }
    }
}

#[test]
fn keyspaces_of_other_databases_and_dropped_ones_are_refused() {
    let (db, foreign) = (open("btree"), open("btree"));
    let other = foreign.keyspace("other", KeyspaceOptions::new()).unwrap();
    let mut tx = db.begin();
    assert!(tx.get_in(&other, "key").is_err());
    assert!(tx.put_in(&other, "key", "value").is_err());
    assert!(tx.delete_in(&other, "key").is_err());
    assert!(tx.delete_range_in(&other, "a".."b").is_err());
    assert!(tx.range_in(&other, "a".."b").is_err());
    tx.commit().unwrap();
    let dropped = db.keyspace("dropped", KeyspaceOptions::new()).unwrap();
    let mut tx = db.begin();
    tx.put_in(&dropped, "key", "value").unwrap();
    tx.put("key", "value");
    db.drop_keyspace("dropped").unwrap();
    let error = tx.commit().unwrap_err();
    assert_eq!(error.kind(), terrane::ErrorKind::Invalid, "{error}");
    assert!(db.get("key").unwrap().is_none());
    let mut tx = db.begin();
    tx.put([0; 70_000], "value");
    assert_eq!(tx.commit().unwrap_err().kind(), terrane::ErrorKind::Invalid);
}
