//! Iterators: both ends, seeks, and bounds of all kinds.

use std::collections::BTreeMap;
use std::ops::Bound::{self, Excluded, Included, Unbounded};

use terrane::{Db, Iter};
use terrane_testkit::{Rng, seed_from_env};

use crate::support::{fill, keys, small};

/// Puts the keys `a` to `i`, some into tables of several levels and some into memory, and deletes
/// keys between them.
fn letters() -> Db {
    let db = small();
    for key in ["a", "c", "e", "g", "gone", "i"] {
        db.put(key, format!("{key} in a table")).unwrap();
    }
    db.flush().unwrap();
    db.compact_range(..).unwrap();
    for key in ["b", "d", "f", "going"] {
        db.put(key, format!("{key} in another")).unwrap();
    }
    db.flush().unwrap();
    for key in ["h", "e"] {
        db.put(key, format!("{key} in memory")).unwrap();
    }
    db.delete("gone").unwrap();
    db.delete("going").unwrap();
    db
}

fn key(entry: Option<terrane::Result<(terrane::Key, terrane::Value)>>) -> Option<String> {
    entry.map(|entry| entry.unwrap().0.escape_ascii().to_string())
}

fn next(iter: &mut Iter) -> Option<String> {
    key(iter.next())
}

fn next_back(iter: &mut Iter) -> Option<String> {
    key(iter.next_back())
}

#[test]
fn the_two_ends_meet_in_the_middle_wherever_that_is() {
    let db = letters();
    let all = keys(db.iter().unwrap());
    assert_eq!(all.concat(), "abcdefghi");
    for from_front in 0..=all.len() {
        let mut iter = db.iter().unwrap();
        let front: Vec<_> = (0..from_front).map(|_| next(&mut iter).unwrap()).collect();
        let mut back: Vec<_> = std::iter::from_fn(|| next_back(&mut iter)).collect();
        back.reverse();
        assert_eq!([front, back].concat(), all);
        // Once exhausted, an iterator stays exhausted at both ends.
        for _ in 0..2 {
            assert_eq!((next(&mut iter), next_back(&mut iter)), (None, None));
        }
    }
    let mut iter = db.iter().unwrap();
    let mut taken = Vec::new();
    while let Some(front) = next(&mut iter) {
        taken.push(front);
        taken.extend(next_back(&mut iter));
    }
    assert_eq!(taken.concat(), "aibhcgdfe");
}

#[test]
fn bounds_of_every_kind_select_the_right_keys() {
    let db = letters();
    let bounds = |key| [Included(key), Excluded(key)];
    let places = ["", "a", "b", "bb", "e", "i", "z"];
    let all = BTreeMap::from_iter("abcdefghi".chars().map(|key| (key.to_string(), ())));
    let starts: Vec<Bound<&str>> = places.into_iter().flat_map(bounds).chain([Unbounded]).collect();
    for start in &starts {
        for end in &starts {
            let inside = |key: &str| {
                let after = match start {
                    Included(start) => key >= *start,
                    Excluded(start) => key > *start,
                    Unbounded => true,
                };
                let before = match end {
                    Included(end) => key <= *end,
                    Excluded(end) => key < *end,
                    Unbounded => true,
                };
                after && before
            };
            let expected: Vec<_> = all.keys().filter(|key| inside(key)).cloned().collect();
            let range = || db.range((*start, *end)).unwrap();
            assert_eq!(keys(range()), expected, "{start:?} {end:?}");
            let mut back = keys(range().rev());
            back.reverse();
            assert_eq!(back, expected, "{start:?} {end:?} from the back");
            assert_eq!(keys(db.snapshot().range((*start, *end)).unwrap()), expected);
        }
    }
}

#[test]
fn inverted_and_empty_ranges_hold_nothing_even_after_a_seek() {
    let db = letters();
    for (start, end) in [("d", "b"), ("d", "d"), ("z", ""), ("", "")] {
        let mut iter = db.range(start..end).unwrap();
        assert_eq!((next(&mut iter), next_back(&mut iter)), (None, None), "{start}..{end}");
        iter.seek("c").unwrap();
        assert_eq!((next(&mut iter), next_back(&mut iter)), (None, None), "{start}..{end}");
    }
}

#[test]
fn seek_goes_forwards_and_backwards_within_the_range() {
    let db = letters();
    let mut iter = db.range("b".."h").unwrap();
    iter.seek("e").unwrap();
    assert_eq!(next(&mut iter).unwrap(), "e");
    iter.seek("c").unwrap();
    assert_eq!(next(&mut iter).unwrap(), "c");
    iter.seek("cc").unwrap();
    assert_eq!(next(&mut iter).unwrap(), "d");
    // A seek to a key before the range moves to the start of the range; a seek to a key after the
    // range moves to its end.
    iter.seek("").unwrap();
    assert_eq!(next(&mut iter).unwrap(), "b");
    iter.seek("h").unwrap();
    assert_eq!(next(&mut iter), None);
    iter.seek("g").unwrap();
    assert_eq!((next(&mut iter).unwrap(), next(&mut iter)), ("g".into(), None));
    // A seek skips deleted keys.
    iter.seek("fzz").unwrap();
    assert_eq!(next(&mut iter).unwrap(), "g");
    iter.seek("gone").unwrap();
    assert_eq!(next(&mut iter), None);
}

#[test]
fn seek_leaves_the_other_end_where_it_is() {
    let db = letters();
    let mut iter = db.iter().unwrap();
    assert_eq!(next_back(&mut iter).unwrap(), "i");
    iter.seek("g").unwrap();
    assert_eq!(next_back(&mut iter).unwrap(), "h");
    assert_eq!(next(&mut iter).unwrap(), "g");
    assert_eq!((next(&mut iter), next_back(&mut iter)), (None, None));
    // Either end may return the key of the seek, but only once.
    iter.seek("d").unwrap();
    assert_eq!(next_back(&mut iter).unwrap(), "g");
    assert_eq!(next_back(&mut iter).unwrap(), "f");
    assert_eq!(next_back(&mut iter).unwrap(), "e");
    assert_eq!(next_back(&mut iter).unwrap(), "d");
    assert_eq!((next(&mut iter), next_back(&mut iter)), (None, None));
}

/// To find out whether the two ends have met, the back end moves one entry further. That entry must
/// not get lost.
#[test]
fn ends_that_have_met_part_again_after_a_seek_backwards() {
    let db = letters();
    let met = || {
        let mut iter = db.range("a".."f").unwrap();
        assert_eq!((next(&mut iter).unwrap(), next(&mut iter).unwrap()), ("a".into(), "b".into()));
        for key in ["e", "d", "c"] {
            assert_eq!(next_back(&mut iter).unwrap(), key);
        }
        assert_eq!(next_back(&mut iter), None);
        iter.seek("a").unwrap();
        iter
    };
    assert_eq!(keys(met()), ["a", "b"]);
    assert_eq!(keys(met().rev()), ["b", "a"]);
}

#[test]
fn prefixes_of_high_bytes_have_an_end() {
    let db = small();
    let bytes: [&[u8]; 8] =
        [b"", b"a", b"a\xfe", b"a\xff", b"a\xff\xff", b"a\xff\xffz", b"b", b"\xff\xff"];
    for key in bytes {
        db.put(key, "v").unwrap();
    }
    db.flush().unwrap();
    for prefix in
        [&b""[..], b"a", b"a\xff", b"a\xff\xff", b"\xff", b"\xff\xff", b"\xff\xff\xff", b"c"]
    {
        let expected: Vec<String> = bytes
            .iter()
            .filter(|key| key.starts_with(prefix))
            .map(|key| key.escape_ascii().to_string())
            .collect();
        assert_eq!(keys(db.prefix(prefix).unwrap()), expected, "{}", prefix.escape_ascii());
        assert_eq!(keys(db.snapshot().prefix(prefix).unwrap()), expected);
        let mut back = keys(db.prefix(prefix).unwrap().rev());
        back.reverse();
        assert_eq!(back, expected);
    }
}

#[test]
fn lending_and_sharing_give_the_same_entries() {
    let db = letters();
    let mut lending = db.iter().unwrap();
    let mut lent = Vec::new();
    assert_eq!((lending.key(), lending.value()), (&b""[..], &b""[..]));
    while lending.advance().unwrap() {
        lent.push((lending.key().to_vec(), lending.value().to_vec()));
    }
    assert!(!lending.advance().unwrap());
    let shared: Vec<_> = db
        .iter()
        .unwrap()
        .map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap())
        .collect();
    assert_eq!(lent, shared);
    assert_eq!(lent[4], (b"e".to_vec(), b"e in memory".to_vec()));
}

#[test]
fn an_iterator_keeps_its_initial_view() {
    let db = letters();
    let (mut forwards, backwards) = (db.iter().unwrap(), db.iter().unwrap());
    assert_eq!(next(&mut forwards).unwrap(), "a");
    db.delete_range(..).unwrap();
    db.put("new", "v").unwrap();
    db.flush().unwrap();
    db.compact_range(..).unwrap();
    assert_eq!(keys(db.iter().unwrap()), ["new"]);
    assert_eq!(keys(forwards).concat(), "bcdefghi");
    assert_eq!(keys(backwards.rev()).concat(), "ihgfedcba");
}

/// Random walks from both ends with seeks are compared with positions in a sorted list.
#[test]
fn random_walks_agree_with_a_list() {
    let seed = seed_from_env(11);
    let db = letters();
    let all: Vec<String> = keys(db.iter().unwrap());
    for round in 0..300 {
        let mut rng = Rng::new(seed + round);
        let mut iter = db.iter().unwrap();
        // The keys from `front` to `back` are those that the iterator has yet to return.
        let (mut front, mut back) = (0, all.len());
        let mut story = format!("seed {}", seed + round);
        for _ in 0..rng.between(1, 20) {
            let (found, expected) = match rng.below(4) {
                0 => {
                    let to = ["", "a", "b", "bb", "d", "g", "i", "j"][rng.index(8)];
                    story += &format!(" seek {to}");
                    iter.seek(to).unwrap();
                    front = all.partition_point(|key| key.as_str() < to);
                    (None, None)
                }
                1 => {
                    story += " back";
                    let expected = (front < back).then(|| all[back - 1].clone());
                    back -= usize::from(front < back);
                    (next_back(&mut iter), expected)
                }
                _ => {
                    story += " next";
                    let expected = (front < back).then(|| all[front].clone());
                    front += usize::from(front < back);
                    (next(&mut iter), expected)
                }
            };
            assert_eq!(found, expected, "{story}");
        }
    }
}

/// After a failed read the back end has no position, and an iterator that continued could skip
/// entries.
#[test]
fn an_error_at_the_back_ends_the_iterator_for_good() {
    use terrane::storage::{Fault, FaultStorage, MemoryStorage, Operation};
    use terrane::{Background, Options, ReadMode};
    let storage = FaultStorage::new(std::sync::Arc::new(MemoryStorage::new(1)));
    let options = Options::new()
        .storage(std::sync::Arc::new(storage.clone()))
        .background(Background::Inline)
        .read_mode(ReadMode::Cached)
        .design(crate::support::small_design());
    let db = options.open(crate::support::DIR).unwrap();
    // More than is read ahead at a time.
    (0..1000).for_each(|number| db.put(format!("{number:03}"), [0; 4096]).unwrap());
    db.flush().unwrap();
    let mut iter = db.iter().unwrap();
    assert_eq!(next_back(&mut iter).unwrap(), "999");
    storage.set(Some(Fault {
        operation: Some(Operation::Read),
        path_contains: ".sst".into(),
        after: 0,
        // A block whose read-ahead failed is read again.
        is_permanent: true,
        error: std::io::ErrorKind::Other,
    }));
    let error = std::iter::from_fn(|| iter.next_back()).find_map(Result::err).unwrap();
    assert!(error.to_string().contains(".sst"), "{error}");
    storage.set(None);
    iter.seek("000").unwrap();
    assert!(iter.next_back().is_none() && iter.next().is_none());
    assert_eq!(keys(db.iter().unwrap().rev()).len(), 1000);
}

#[test]
fn the_first_and_last_keys_are_found_past_deleted_ones() {
    let db = small();
    assert!(
        db.is_empty().unwrap() && db.first().unwrap().is_none() && db.last().unwrap().is_none()
    );
    fill(&db, 100, 0);
    db.flush().unwrap();
    db.delete("099").unwrap();
    db.delete_range("000".."010").unwrap();
    let key = |entry: Option<(terrane::Key, terrane::Value)>| entry.unwrap().0.to_vec();
    assert_eq!(key(db.first().unwrap()), b"010");
    assert_eq!(key(db.last().unwrap()), b"098");
    assert!(!db.is_empty().unwrap());
    db.delete_range(..).unwrap();
    assert!(
        db.is_empty().unwrap() && db.first().unwrap().is_none() && db.last().unwrap().is_none()
    );
}
