//! Scans with [`Iter::advance`], compared with a map: most of their steps stay within a block.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included};
use std::time::Duration;

use terrane::{Db, Iter, WriteOptions};
use terrane_testkit::{Rng, seed_from_env};

use crate::support::{DIR, in_memory, small_design};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Keys that share prefixes shorter and longer than the first eight bytes, and prefixes of each other.
fn key(rng: &mut Rng) -> Vec<u8> {
    let prefix = *rng.pick(&["", "a", "prefix", "a longer prefix"]);
    let rest = (0..rng.below(7)).map(|_| *rng.pick(&[0, b'a', b'b', 0xff]));
    prefix.bytes().chain(rest).collect()
}

/// Makes a change to both.
fn change(db: &Db, map: &mut Map, rng: &mut Rng) {
    let key = key(rng);
    let value: Vec<u8> = vec![rng.bits() as u8; *rng.pick(&[0, 1, 9, 40, 300])];
    match rng.below(8) {
        0 => {
            db.delete(&key).unwrap();
            map.remove(&key);
            return;
        }
        1 => db.put_with(&key, &value, WriteOptions::new().ttl(Duration::from_secs(1 << 20))),
        _ => db.put(&key, &value),
    }
    .unwrap();
    map.insert(key, value);
}

/// Checks a walk: steps from the front, seeks, and now and then steps from the back.
fn walk(mut iter: Iter, map: &Map, (start, end): (&[u8], &[u8]), rng: &mut Rng) {
    let all: Vec<(&Vec<u8>, &Vec<u8>)> = match start < end {
        true => map.range::<[u8], _>((Included(start), Excluded(end))).collect(),
        false => Vec::new(),
    };
    let (mut front, mut back) = (0, all.len());
    for _ in 0..rng.between(1, 300) {
        match rng.below(100) {
            0..4 => {
                let to = key(rng);
                iter.seek(&to).unwrap();
                front = all.partition_point(|(key, _)| **key < to);
            }
            4 => {
                let expected = (front < back).then(|| all[back - 1]);
                back -= usize::from(front < back);
                let found = iter.next_back().map(Result::unwrap);
                let found = found.map(|(key, value)| (key.to_vec(), value.to_vec()));
                assert_eq!(found, expected.map(|(key, value)| (key.clone(), value.clone())));
            }
            _ => {
                let expected = (front < back).then(|| all[front]);
                assert_eq!(iter.advance().unwrap(), expected.is_some());
                if let Some((key, value)) = expected {
                    assert_eq!((iter.key(), iter.value()), (&key[..], &value[..]));
                    front += 1;
                }
            }
        }
    }
}

#[test]
fn steps_within_blocks_agree_with_a_map() {
    let seed = seed_from_env(17);
    for round in 0..40 {
        println!("TERRANE_SEED={}", seed + round);
        let mut rng = Rng::new(seed + round);
        let db = in_memory().0.design(small_design()).open(DIR).unwrap();
        let mut map = Map::new();
        let mut snapshots = Vec::new();
        for _ in 0..rng.between(1, 5) {
            (0..rng.between(1, 400)).for_each(|_| change(&db, &mut map, &mut rng));
            match rng.below(4) {
                0 => db.compact_range(..).unwrap(),
                1 => {}
                _ => db.flush().unwrap(),
            }
            if rng.below(2) == 0 {
                snapshots.push((db.snapshot(), map.clone()));
            }
        }
        for _ in 0..10 {
            let (start, end) = (key(&mut rng), key(&mut rng));
            let bounds = (&start[..], &end[..]);
            walk(db.range(&start[..]..&end[..]).unwrap(), &map, bounds, &mut rng);
            for (snapshot, map) in &snapshots {
                let end: &[u8] = &[0xff; 20];
                walk(snapshot.iter().unwrap(), map, (&[], end), &mut rng);
            }
        }
        let mut all = db.iter().unwrap();
        let mut expected = map.iter();
        while all.advance().unwrap() {
            let (key, value) = expected.next().unwrap();
            assert_eq!((all.key(), all.value()), (&key[..], &value[..]));
        }
        assert!(expected.next().is_none());
    }
}
