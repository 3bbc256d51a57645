//! FloDB's memtable keeps the versions that somebody can see, and no others.
#![cfg(not(loom))]
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use terrane_memtable::{
    Config, DrainInsert, EntryKind, FloDbConfig, Lookup, LowerLevel, Memtable, Pool, Readers,
    SeqBounds, SeqNo, Update,
};
use terrane_testkit::{Rng, seed_from_env};

/// Readers at the newest visible number and at held ones.
#[derive(Clone, Copy)]
struct Held<'a>(SeqNo, &'a [SeqNo]);

impl Readers for Held<'_> {
    fn bounds(&self) -> SeqBounds {
        let oldest = self.1.iter().min().copied().unwrap_or(SeqNo::MAX);
        SeqBounds { visible: self.0, oldest, newest: self.1.iter().max().copied().unwrap_or(0) }
    }

    fn hold_any(&self, seqs: Range<SeqNo>) -> bool {
        self.1.iter().any(|seq| seqs.contains(seq))
    }
}

fn memtable(lower: LowerLevel, buckets: usize) -> Arc<Memtable> {
    let (insert, update) = (DrainInsert::Multi, Update::InPlace);
    let config = FloDbConfig { buckets, partition_bits: 2, lower, insert, update };
    Memtable::new(Config::FloDb(config), &Pool::new(0))
}

fn some(count: u64) -> u64 {
    if cfg!(miri) { count / 50 } else { count }
}

fn key_of(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn value_of(seq: SeqNo) -> Vec<u8> {
    let len = 8 + (seq % 40) as usize;
    seq.to_be_bytes().iter().cycle().take(len).copied().collect()
}

/// All versions ever written, by key and from new to old.
type Versions = BTreeSet<([u8; 8], Reverse<SeqNo>)>;

fn newest_at(versions: &Versions, key: [u8; 8], seq: SeqNo) -> Option<SeqNo> {
    let range = (key, Reverse(seq))..=(key, Reverse(0));
    versions.range(range).next().map(|(_, Reverse(seq))| *seq)
}

/// The versions that readers at `held`, or at the newest number, see.
fn seen(versions: &Versions, held: &[SeqNo]) -> usize {
    let keys: BTreeSet<[u8; 8]> = versions.iter().map(|(key, _)| *key).collect();
    let of_key = |key: &[u8; 8]| {
        let at = held.iter().copied().chain([SeqNo::MAX >> 8]);
        at.filter_map(|seq| newest_at(versions, *key, seq)).collect::<BTreeSet<_>>().len()
    };
    keys.iter().map(of_key).sum()
}

fn assert_held(memtable: &Arc<Memtable>, versions: &Versions, key: [u8; 8], seq: SeqNo) {
    let found = match memtable.look_up_held(&key, seq) {
        Lookup::Found(found, _, value) => {
            assert_eq!(value[..], value_of(found));
            Some(found)
        }
        Lookup::Absent => None,
        Lookup::Overwritten => panic!("a held version was overwritten"),
    };
    assert_eq!(found, newest_at(versions, key, seq), "{key:?} at {seq}");
}

#[test]
fn only_versions_that_somebody_can_see_are_kept() {
    const KEYS: u64 = 40;
    for lower in [LowerLevel::BTree, LowerLevel::SkipList] {
        let mut rng = Rng::new(seed_from_env(71));
        // Every key has a slot, and nothing is drained.
        let memtable = memtable(lower, 256);
        let mut versions = Versions::new();
        let mut held: Vec<SeqNo> = Vec::new();
        let mut seq = 0;
        let mut write = |versions: &mut Versions, number: u64, held: &[SeqNo]| {
            seq += 1;
            let key = key_of(number);
            let value = value_of(seq);
            let readers = Held(seq - 1, held);
            let added = memtable.update(&key, seq, EntryKind::Value, &value, readers);
            assert!(added.is_in_membuffer);
            versions.insert((key, Reverse(seq)));
            // The version before it may be read until this one is visible.
            assert_held(&memtable, versions, key, seq - 1);
            if added.wants_settling {
                memtable.settle(&key, Held(seq, held));
            }
            assert_held(&memtable, versions, key, seq);
            seq
        };
        for _ in 0..some(20_000) {
            let written = write(&mut versions, rng.below(KEYS), &held);
            match rng.below(200) {
                0..=2 if held.len() < 6 => held.push(written),
                3..=5 if !held.is_empty() => drop(held.swap_remove(rng.index(held.len()))),
                _ => {}
            }
            if let Some(at) = held.get(rng.index(held.len() + 1)) {
                assert_held(&memtable, &versions, key_of(rng.below(KEYS)), *at);
            }
        }
        // Once each key was written again, nothing is left of snapshots that were released.
        (0..KEYS).for_each(|key| _ = write(&mut versions, key, &held));
        assert_eq!(memtable.len(), seen(&versions, &held));
        for (key, at) in (0..KEYS).flat_map(|key| held.iter().map(move |at| (key, *at))) {
            assert_held(&memtable, &versions, key_of(key), at);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes long")]
fn values_of_varying_sizes_reuse_memory() {
    const KEYS: u64 = 5000;
    for (least, most) in [(16, 1000), (100, 4000)] {
        let mut rng = Rng::new(seed_from_env(72));
        let memtable = memtable(LowerLevel::BTree, 4096);
        let mut sizes: BTreeMap<u64, usize> = BTreeMap::new();
        let mut after_first = None;
        for seq in 1..=KEYS * 40 {
            let number = if seq <= KEYS { seq - 1 } else { rng.below(KEYS) };
            let len = rng.between(least, most) as usize;
            let key = key_of(number);
            let added =
                memtable.update(&key, seq, EntryKind::Value, &vec![7; len], Held(seq - 1, &[]));
            if added.wants_settling {
                memtable.settle(&key, Held(seq, &[]));
            }
            sizes.insert(number, len);
            if seq == KEYS {
                after_first = Some(memtable.memory());
            }
        }
        let (first, last) = (after_first.unwrap(), memtable.memory());
        let live: usize = sizes.values().map(|len| len + 8).sum();
        assert_eq!((memtable.len() as u64, last.data_bytes), (KEYS, live));
        let growth = |after: usize, before: usize| after as f64 / before as f64;
        let used = growth(last.used_bytes(), first.used_bytes());
        let total = growth(last.total_bytes(), first.total_bytes());
        assert!(used < 1.1 && total < 1.4, "{least} to {most} bytes: {used:.2}, {total:.2}");
    }
}
