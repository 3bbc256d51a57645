//! FloDB's memtable keeps the versions that readers can see, and no others.
#![cfg(not(loom))]
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use terrane_memtable::{
    Config, Cursor, DrainInsert, EntryKind, FloDbConfig, FrontLevel, Lookup, LowerLevel, MemoryUse,
    Memtable, Pool, Readers, SeqBounds, SeqNo, Update,
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

/// Takes all steps of a pass, as writers and drain threads do.
fn reclaim_all(front: &dyn FrontLevel, readers: &dyn Readers) {
    front.begin_reclaiming(0);
    while front.reclaiming_steps() > 0 {
        front.reclaim_step(readers);
    }
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

/// Returns the number of versions that readers at `held` or at the newest number see.
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
            if added.needs_reclaim {
                memtable.reclaim_hidden(&key, seq, Held(seq, held));
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
        // Once each key has been written again, no version is left for released snapshots, and each
        // key has at most one version that was needed until the newest became visible.
        let last = (0..KEYS).map(|key| write(&mut versions, key, &held)).max().unwrap();
        let seen = seen(&versions, &held);
        assert!((seen..=seen + KEYS as usize).contains(&memtable.len()), "{}", memtable.len());
        reclaim_all(memtable.front_level().unwrap(), &Held(last, &held));
        assert_eq!(memtable.len(), seen);
        // From then on, each write reclaims the versions that it hides, except those drained earlier.
        (0..2).for_each(|_| _ = write(&mut versions, 0, &held));
        let (left, seen) = (memtable.len(), self::seen(&versions, &held));
        assert!(left <= seen + 1, "{left} left of {seen}");
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
        let (mut sizes, mut fulls) = (BTreeMap::<u64, usize>::new(), 0);
        let front = memtable.front_level().unwrap();
        let mut after_first = None;
        for seq in 1..=KEYS * 40 {
            let number = if seq <= KEYS { seq - 1 } else { rng.below(KEYS) };
            let len = rng.between(least, most) as usize;
            let key = key_of(number);
            let added =
                memtable.update(&key, seq, EntryKind::Value, &vec![7; len], Held(seq - 1, &[]));
            if added.needs_reclaim {
                memtable.reclaim_hidden(&key, seq, Held(seq, &[]));
            }
            sizes.insert(number, len);
            if seq == KEYS {
                after_first = Some(memtable.memory());
            }
            // Growth by a quarter counts as full.
            let is_full =
                |first: MemoryUse| memtable.memory().used_bytes() > first.used_bytes() * 5 / 4;
            if seq % 16 == 0 && after_first.is_some_and(is_full) {
                reclaim_all(front, &Held(seq, &[]));
                fulls += 1;
            }
        }
        assert!(fulls < 5, "{least} to {most} bytes: full {fulls} times");
        let (first, last) = (after_first.unwrap(), memtable.memory());
        let live: usize = sizes.values().map(|len| len + 8).sum();
        assert_eq!((memtable.len() as u64, last.data_bytes), (KEYS, live));
        let growth = |after: usize, before: usize| after as f64 / before as f64;
        let used = growth(last.used_bytes(), first.used_bytes());
        let total = growth(last.total_bytes(), first.total_bytes());
        assert!(used < 1.1 && total < 1.4, "{least} to {most} bytes: {used:.2}, {total:.2}");
    }
}

/// A reader that keeps the last values it read pins the nodes that were freed last.
#[test]
fn pinned_values_do_not_keep_free_memory_from_use() {
    let memtable = memtable(LowerLevel::BTree, 64);
    let mut window = VecDeque::new();
    let mut first = 0;
    for seq in 1..=some(50_000) {
        let key = key_of(seq % 20);
        let added = memtable.update(&key, seq, EntryKind::Value, &[7; 100], Held(seq - 1, &[]));
        if added.needs_reclaim {
            memtable.reclaim_hidden(&key, seq, Held(seq, &[]));
        }
        window.push_back(memtable.get_pinned(&key, seq).unwrap());
        if window.len() > 30 {
            window.pop_front();
        }
        if seq == some(1000) {
            first = memtable.memory().total_bytes();
        }
    }
    let last = memtable.memory().total_bytes();
    assert!(last < first + (8 << 10), "grew from {first} to {last} bytes");
}

/// The newest version of each key at or below `seq` as a cursor visits it.
fn scan(memtable: &Arc<Memtable>, seq: SeqNo, is_forward: bool) -> BTreeMap<[u8; 8], SeqNo> {
    let mut newest = BTreeMap::new();
    let mut cursor = memtable.cursor();
    if is_forward {
        cursor.seek_first();
    } else {
        cursor.seek_last();
    }
    while let Some(entry) = cursor.entry() {
        assert_eq!(entry.value, value_of(entry.seq));
        if entry.seq <= seq {
            let version = newest.entry(entry.key.try_into().unwrap()).or_insert(entry.seq);
            *version = entry.seq.max(*version);
        }
        if is_forward { cursor.next() } else { cursor.previous() }
    }
    newest
}

/// The key and the sequence number of an entry.
type Place = (Vec<u8>, SeqNo);

/// Checks that a cursor is still on its entry, and moves it to the next one, which it returns.
fn assert_next(cursor: &mut Cursor, on: Option<&Place>) -> Option<Place> {
    let place = |cursor: &Cursor| cursor.entry().map(|entry| (entry.key.to_vec(), entry.seq));
    let order = |(key, seq): &Place| (key.clone(), Reverse(*seq));
    assert_eq!(place(cursor).as_ref(), on, "a cursor stays on its entry");
    cursor.next();
    let next = place(cursor);
    if let Some(entry) = cursor.entry() {
        assert_eq!(entry.value, value_of(entry.seq));
        assert!(next.as_ref().map(order) > on.map(order));
    }
    next
}

/// Writes every key again, after which few versions are left for released snapshots: those that
/// drains do not yet know to be hidden.
fn write_again(
    memtable: &Arc<Memtable>,
    writes: SeqNo,
    keys: u64,
    held: &[SeqNo],
    versions: &mut Versions,
) {
    for seq in writes + 1..=writes + 2 * keys {
        let key = key_of(seq % keys);
        let readers = Held(seq - 1, held);
        let added = memtable.update(&key, seq, EntryKind::Value, &value_of(seq), readers);
        versions.insert((key, Reverse(seq)));
        if added.needs_reclaim {
            memtable.reclaim_hidden(&key, seq, Held(seq, held));
        }
    }
}

/// Most keys have no slot in the Membuffer, or there is no Membuffer: the leaves are overwritten in place,
/// while snapshots, cursors and pinned values see no change.
#[test]
fn the_tree_overwrites_in_place() {
    let keys = if cfg!(miri) { 12 } else { 3000 };
    for buckets in [0, 1, 100] {
        let mut rng = Rng::new(seed_from_env(73) + buckets as u64);
        let memtable = memtable(LowerLevel::BTree, buckets);
        let front = memtable.front_level().unwrap();
        let mut versions = Versions::new();
        let mut held: Vec<SeqNo> = Vec::new();
        let (mut pinned, mut cursors) = (Vec::new(), Vec::new());
        let writes = if cfg!(miri) { 300 } else { 60_000 };
        for seq in 1..=writes {
            let key = key_of(rng.below(keys));
            let value = value_of(seq);
            let readers = Held(seq - 1, &held);
            let added = memtable.update(&key, seq, EntryKind::Value, &value, readers);
            versions.insert((key, Reverse(seq)));
            assert_held(&memtable, &versions, key, seq - 1);
            if added.needs_reclaim {
                memtable.reclaim_hidden(&key, seq, Held(seq, &held));
            }
            assert_held(&memtable, &versions, key, seq);
            match rng.below(1000) {
                0..=4 if held.len() < 3 => held.push(seq),
                5..=9 if !held.is_empty() => drop(held.swap_remove(rng.index(held.len()))),
                10..=40 => _ = front.drain(),
                41..=45 => front.drain_all(),
                46..=60 => {
                    let mut cursor = memtable.cursor();
                    cursor.seek(&key_of(rng.below(keys)), seq);
                    let entry = cursor.entry().map(|entry| (entry.key.to_vec(), entry.seq));
                    cursors.push((cursor, entry));
                }
                61..=75 => pinned.push(memtable.get_pinned(&key, seq).unwrap()),
                76..=80 => cursors.clear(),
                81..=85 => pinned.clear(),
                _ => {}
            }
            if let Some(at) = held.get(rng.index(held.len() + 1)) {
                assert_held(&memtable, &versions, key_of(rng.below(keys)), *at);
            }
            if rng.below(3000) == 0 {
                let at = held.first().copied().unwrap_or(seq);
                let expected: BTreeMap<[u8; 8], SeqNo> = (0..keys)
                    .filter_map(|key| Some((key_of(key), newest_at(&versions, key_of(key), at)?)))
                    .collect();
                assert_eq!(scan(&memtable, at, rng.percent(50)), expected);
            }
            if let Some((cursor, entry)) = cursors.last_mut() {
                *entry = assert_next(cursor, entry.as_ref());
            }
        }
        for (seq, _, value) in &pinned {
            assert_eq!(value[..], value_of(*seq));
        }
        write_again(&memtable, writes, keys, &held, &mut versions);
        front.drain_all();
        let (left, seen) = (memtable.len(), seen(&versions, &held));
        assert!(left >= seen && (cfg!(miri) || left <= seen + seen / 40), "{left} left of {seen}");
        // All versions would take more than 4 MB.
        let bytes = memtable.memory().total_bytes();
        assert!(cfg!(miri) || bytes < 2_000_000, "{bytes} bytes");
    }
}
