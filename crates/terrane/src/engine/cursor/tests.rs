//! Compares merged memtables with a sorted map, in both directions, at every sequence number.

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_memtable::{Config, Memtable, Pool, SkipListConfig};
use terrane_testkit::{Rng, seed_from_env};

use super::*;
use crate::base::types::{EntryKind, SeqNo};
use crate::engine::version::Version;

enum Event {
    Put(u8, u8),
    Delete(u8),
    DeleteRange(u8, Option<u8>),
}

/// The contents visible to a reader at `seq`.
fn oracle(events: &[Event], seq: SeqNo) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut map = BTreeMap::new();
    for event in &events[..seq as usize] {
        match *event {
            Event::Put(key, value) => drop(map.insert(vec![key], vec![value])),
            Event::Delete(key) => drop(map.remove(&vec![key])),
            Event::DeleteRange(start, end) => {
                map.retain(|key, _| key[0] < start || end.is_some_and(|end| key[0] >= end));
            }
        }
    }
    map
}

fn cursor(memtables: &[Arc<Memtable>], seq: SeqNo) -> VisibleCursor {
    let sources = memtables.iter().map(|memtable| Source::Memtable(memtable.cursor()));
    let deleted = DeletedRanges::new(
        memtables.iter(),
        &Arc::new(Version::default()),
        (&Arc::default(), seq),
        Sight { seq, state: 0 },
    )
    .unwrap();
    VisibleCursor::new(MergeCursor::new(sources), (seq, 0), deleted, None)
}

fn collect(cursor: &mut VisibleCursor) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    while cursor.is_valid() {
        assert_eq!(cursor.pin_value(), cursor.value());
        all.push((cursor.key().to_vec(), cursor.value().to_vec()));
        cursor.step().unwrap();
    }
    all
}

#[test]
fn readers_see_the_state_at_their_sequence_number() {
    let seed = seed_from_env(61);
    for round in 0..100 {
        let mut rng = Rng::new(seed + round);
        let keys = rng.between(1, 30);
        let pool = Pool::new(0);
        let kind = Config::SkipList(SkipListConfig { branching: 4, height: 12 });
        let memtables: Vec<_> =
            (0..rng.between(1, 6)).map(|_| Memtable::new(kind, &pool)).collect();
        let mut events = Vec::new();
        for seq in 1..=rng.between(1, 150) {
            let key = rng.below(keys) as u8;
            // Distribute versions over memtables arbitrarily, because the merge does not rely on
            // their order.
            let memtable = rng.pick(&memtables);
            match rng.below(10) {
                0..=5 => {
                    memtable.insert(&[key], seq, EntryKind::Value, &[seq as u8]);
                    events.push(Event::Put(key, seq as u8));
                }
                6..=8 => {
                    memtable.insert(&[key], seq, EntryKind::Tombstone, &[]);
                    events.push(Event::Delete(key));
                }
                _ => {
                    let end = rng.percent(80).then(|| key + rng.below(12) as u8);
                    let bytes = end.map(|end| [end]);
                    memtable.insert_range_tombstone(
                        &[key],
                        bytes.as_ref().map(|end| &end[..]),
                        seq,
                        seq,
                    );
                    events.push(Event::DeleteRange(key, end));
                }
            }
        }
        for seq in 0..=events.len() as u64 {
            let expected: Vec<_> = oracle(&events, seq).into_iter().collect();
            let mut cursor = cursor(&memtables, seq);
            cursor.seek(b"").unwrap();
            assert_eq!(collect(&mut cursor), expected, "seed {}", seed + round);
            cursor.seek_before(None).unwrap();
            let mut backward = collect(&mut cursor);
            backward.reverse();
            assert_eq!(backward, expected, "seed {}", seed + round);
            let at = [rng.below(keys + 2) as u8];
            cursor.seek(&at).unwrap();
            let from = expected.partition_point(|(key, _)| key[..] < at[..]);
            assert_eq!(collect(&mut cursor), expected[from..], "seed {}", seed + round);
            cursor.seek_before(Some(&at)).unwrap();
            let mut before = collect(&mut cursor);
            before.reverse();
            assert_eq!(before, expected[..from], "seed {}", seed + round);
        }
    }
}
