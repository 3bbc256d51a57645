//! Compares every example of every kind of memtable with a `BTreeMap`.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane_memtable::{Config, Cursor, Entry, EntryKind, Lookup, MAX_SEQ, Memtable, Pool, SeqNo};
use terrane_testkit::{Rng, seed_from_env};

/// The oracle: versions in memtable order.
type Oracle = BTreeMap<Version, (EntryKind, Vec<u8>)>;

/// A version of a key, in memtable order.
type Version = (Vec<u8>, Reverse<SeqNo>);

/// A number of repetitions: smaller under Miri, which is a thousand times slower.
fn some(count: u64) -> u64 {
    if cfg!(miri) { count / 50 } else { count }
}

/// Keys that are empty, short, long, equal in their first bytes, or full of zeros.
fn random_key(rng: &mut Rng) -> Vec<u8> {
    let alphabet: &[u8] = if rng.percent(50) { b"ab\0" } else { b"\0\x01\x7f\x80\xff" };
    let prefix: &[u8] = if rng.percent(30) { b"commonprefix" } else { b"" };
    let len = if rng.percent(2) { 200 } else { rng.index(5) };
    prefix.iter().copied().chain((0..len).map(|_| *rng.pick(alphabet))).collect()
}

fn random_value(rng: &mut Rng) -> Vec<u8> {
    let longest = if cfg!(miri) { 20_000 } else { 100_000 };
    let len = if rng.percent(1) { longest } else { rng.index(30) };
    (0..len).map(|_| rng.bits() as u8).collect()
}

fn fill(memtable: &Memtable, rng: &mut Rng, count: u64) -> Oracle {
    let mut oracle = Oracle::new();
    for seq in 1..=count {
        let key = random_key(rng);
        let (kind, value) = if rng.percent(20) {
            (EntryKind::Tombstone, Vec::new())
        } else {
            (EntryKind::Value, random_value(rng))
        };
        memtable.insert(&key, seq, kind, &value);
        oracle.insert((key, Reverse(seq)), (kind, value));
    }
    oracle
}

/// Inserts versions of a few keys out of the order of their sequence numbers, as concurrent writers
/// do: far out of order, or only a little. Calls `check` now and then.
fn fill_out_of_order(
    memtable: &Memtable,
    rng: &mut Rng,
    mut check: impl FnMut(&Oracle, &mut Rng),
) -> Oracle {
    let count = some(5000);
    let mut seqs: Vec<SeqNo> = (1..=count).collect();
    let nearest = *rng.pick(&[3, 100, count as usize]);
    for at in 0..seqs.len() {
        let other = rng.between(at as u64, (at + nearest).min(seqs.len()) as u64 - 1);
        seqs.swap(at, other as usize);
    }
    let mut oracle = Oracle::new();
    for (step, seq) in seqs.into_iter().enumerate() {
        // One key is written rarely, so that its versions are far apart.
        let key = if step % 500 == 7 { vec![b'r'] } else { vec![b'k', rng.below(30) as u8] };
        let value = seq.to_be_bytes();
        memtable.insert(&key, seq, EntryKind::Value, &value);
        oracle.insert((key, Reverse(seq)), (EntryKind::Value, value.to_vec()));
        if rng.percent(2) {
            check(&oracle, rng);
        }
    }
    oracle
}

/// Like [`fill`], but inserts several entries at a time.
fn fill_in_groups(memtable: &Memtable, rng: &mut Rng, count: u64) -> Oracle {
    let mut oracle = Oracle::new();
    let mut seq = 0;
    while seq < count {
        let group: Vec<_> = (0..rng.between(0, 40))
            .map(|_| {
                seq += 1;
                (random_key(rng), seq, random_value(rng))
            })
            .collect();
        let entries: Vec<Entry<'_>> = group
            .iter()
            .map(|(key, seq, value)| Entry { key, seq: *seq, kind: EntryKind::Value, value })
            .collect();
        memtable.insert_all(&entries);
        let versions = group.into_iter();
        oracle.extend(
            versions.map(|(key, seq, value)| ((key, Reverse(seq)), (EntryKind::Value, value))),
        );
    }
    oracle
}

/// Looks up keys together, and returns the sequence numbers of their versions.
fn seqs_together(memtable: &Arc<Memtable>, keys: &[&[u8]], seq: SeqNo) -> Vec<Option<SeqNo>> {
    let mut found = vec![None; keys.len()];
    let mut calls = 0;
    memtable.look_up_all_held(keys, seq, |at, lookup| {
        calls += 1;
        match lookup {
            Lookup::Found(seq, ..) => found[at] = Some(seq),
            other => assert!(matches!(other, Lookup::Absent), "a held version was overwritten"),
        }
    });
    assert_eq!(calls, keys.len());
    found
}

fn assert_at(cursor: &Cursor, expected: Option<(&Version, &(EntryKind, Vec<u8>))>) {
    let found = cursor.entry().map(|entry| (entry.key, entry.seq, entry.kind, entry.value));
    let expected = expected.map(|((key, seq), (kind, value))| (&key[..], seq.0, *kind, &value[..]));
    assert_eq!(found, expected);
    assert_eq!(cursor.is_valid(), expected.is_some());
    assert_eq!(cursor.pin_value().as_deref(), expected.map(|entry| entry.3));
}

mod checks {
    use super::*;

    pub(super) fn gets_find_the_newest_version_not_above_a_seq(config: Config) {
        let mut rng = Rng::new(seed_from_env(11));
        let memtable = Memtable::new(config, &Pool::new(0));
        let oracle = fill(&memtable, &mut rng, some(2000));
        for _ in 0..some(3000) {
            let (key, seq) = (random_key(&mut rng), rng.below(some(2100)));
            let mut versions =
                oracle.range((key.clone(), Reverse(seq))..=(key.clone(), Reverse(0)));
            let expected =
                versions.next().map(|((_, seq), (kind, value))| (seq.0, *kind, value.clone()));
            let pinned = memtable.get_pinned(&key, seq);
            let found = pinned.map(|(seq, kind, value)| (seq, kind, value.to_vec()));
            assert_eq!(found, expected);
            assert_eq!(
                memtable.get(&key, seq).map(|entry| entry.seq),
                expected.map(|found| found.0)
            );
        }
        assert_eq!(memtable.len(), oracle.len());
    }

    pub(super) fn cursors_walk_both_ways_and_seek(config: Config) {
        let mut rng = Rng::new(seed_from_env(12));
        let memtable = Memtable::new(config, &Pool::new(0));
        let oracle = fill(&memtable, &mut rng, some(2000));
        let mut cursor = memtable.cursor();
        assert_at(&cursor, None);
        cursor.seek_first();
        for entry in &oracle {
            assert_at(&cursor, Some(entry));
            cursor.next();
        }
        assert_at(&cursor, None);
        cursor.seek_last();
        for entry in oracle.iter().rev() {
            assert_at(&cursor, Some(entry));
            cursor.previous();
        }
        assert_at(&cursor, None);
        for _ in 0..some(1000) {
            let (key, seq) = (random_key(&mut rng), rng.below(some(2100)));
            cursor.seek(&key, seq);
            assert_at(&cursor, oracle.range((key.clone(), Reverse(seq))..).next());
            cursor.seek_before(&key);
            assert_at(&cursor, oracle.range(..(key.clone(), Reverse(MAX_SEQ))).next_back());
        }
    }

    /// A lookup finds the newest version of a key, not the last one that arrived.
    pub(super) fn versions_that_arrive_out_of_order_are_found(config: Config) {
        for round in 0..3 {
            let mut rng = Rng::new(seed_from_env(20) + round);
            let memtable = Memtable::new(config, &Pool::new(0));
            let find = |oracle: &Oracle, rng: &mut Rng| {
                let key =
                    if rng.percent(20) { vec![b'r'] } else { vec![b'k', rng.below(30) as u8] };
                let seq = if rng.percent(50) { MAX_SEQ } else { rng.below(some(5000)) };
                let versions = (key.clone(), Reverse(seq))..=(key.clone(), Reverse(0));
                let expected = oracle.range(versions).next().map(|((_, seq), _)| seq.0);
                assert_eq!(memtable.get(&key, seq).map(|entry| entry.seq), expected, "{key:?}");
            };
            let oracle = fill_out_of_order(&memtable, &mut rng, find);
            (0..some(1000)).for_each(|_| find(&oracle, &mut rng));
            let mut cursor = memtable.cursor();
            cursor.seek_first();
            for entry in &oracle {
                assert_at(&cursor, Some(entry));
                cursor.next();
            }
            assert_at(&cursor, None);
            memtable.freeze();
            (0..some(1000)).for_each(|_| find(&oracle, &mut rng));
        }
    }

    /// Lookups of several keys, alone and while other threads insert.
    pub(super) fn keys_are_found_together_as_one_by_one(config: Config) {
        let mut rng = Rng::new(seed_from_env(23));
        let memtable = Memtable::new(config, &Pool::new(0));
        assert_eq!(seqs_together(&memtable, &[b"a", b"b"], MAX_SEQ), [None, None]);
        fill(&memtable, &mut rng, some(3000));
        let keys: Vec<Vec<u8>> = (0..some(100)).map(|_| random_key(&mut rng)).collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        for seq in [1, some(1500), MAX_SEQ] {
            for count in [0, 1, 5, keys.len()] {
                let together = seqs_together(&memtable, &keys[..count], seq);
                let one_by_one = keys[..count].iter().map(|key| memtable.get_pinned(key, seq));
                let one_by_one: Vec<_> = one_by_one.map(|found| found.map(|it| it.0)).collect();
                assert_eq!(together, one_by_one, "at {seq}");
            }
        }
        // Keys with a common prefix, so that leaves are split during the lookups.
        let key = |number: u64| format!("counter:{:012}", number * 7919 % 100_003).into_bytes();
        let count = some(500);
        (0..count).for_each(|at| memtable.insert(&key(at), 10_000 + at, EntryKind::Value, b""));
        let keys: Vec<Vec<u8>> = (0..count).map(key).collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let expected: Vec<_> = (0..count).map(|at| Some(10_000 + at)).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for at in count..3 * count {
                    memtable.insert(&key(at), 10_000 + at, EntryKind::Value, b"");
                }
            });
            for _ in 0..3 {
                assert_eq!(seqs_together(&memtable, &keys, 10_000 + count - 1), expected);
            }
        });
    }

    /// Entries that are inserted in groups, by one thread and by four concurrently.
    pub(super) fn groups_are_there_as_if_they_came_one_by_one(config: Config) {
        let mut rng = Rng::new(seed_from_env(19));
        let memtable = Memtable::new(config, &Pool::new(0));
        let oracle = fill_in_groups(&memtable, &mut rng, some(3000));
        assert_eq!(memtable.len(), oracle.len());
        let mut cursor = memtable.cursor();
        cursor.seek_first();
        for entry in &oracle {
            assert_at(&cursor, Some(entry));
            cursor.next();
        }
        assert_at(&cursor, None);
        let memtable = Memtable::new(config, &Pool::new(0));
        let groups = some(300).max(3);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let memtable = &memtable;
                scope.spawn(move || {
                    for group in 0..groups {
                        let numbers = (0..20).map(|at| (group * 20 + at) * 4 + thread + 1);
                        let keys: Vec<_> = numbers
                            .map(|seq| (seq.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(), seq))
                            .collect();
                        let kind = EntryKind::Value;
                        let entries: Vec<_> = keys
                            .iter()
                            .map(|(key, seq)| Entry { key, seq: *seq, kind, value: key })
                            .collect();
                        memtable.insert_all(&entries);
                    }
                });
            }
        });
        assert_eq!(memtable.len() as u64, groups * 80);
        let mut seqs = Vec::new();
        let mut cursor = memtable.cursor();
        cursor.seek_first();
        while let Some(entry) = cursor.entry() {
            assert_eq!(entry.key, entry.seq.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
            seqs.push(entry.seq);
            cursor.next();
        }
        seqs.sort_unstable();
        assert!(seqs.into_iter().eq(1..=groups * 80));
    }

    pub(super) fn an_empty_memtable_has_nothing(config: Config) {
        let memtable = Memtable::new(config, &Pool::new(0));
        assert!(memtable.is_empty());
        assert_eq!(memtable.get(b"", MAX_SEQ), None);
        let mut cursor = memtable.cursor();
        for step in [Cursor::seek_first, Cursor::seek_last, Cursor::next, Cursor::previous] {
            step(&mut cursor);
            assert_at(&cursor, None);
        }
        memtable.insert(b"", 1, EntryKind::Value, b"");
        assert_eq!(memtable.get(b"", 0), None);
        assert_eq!(memtable.get(b"", 1).map(|entry| entry.value), Some(&b""[..]));
    }

    pub(super) fn pinned_values_outlive_their_memtable(config: Config) {
        let memtable = Memtable::new(config, &Pool::new(0));
        memtable.insert(b"k", 1, EntryKind::Value, b"value");
        let (_, _, value) = memtable.get_pinned(b"k", 1).unwrap();
        let mut cursor = memtable.cursor();
        cursor.seek_first();
        drop(memtable);
        let copy = value.clone();
        drop(value);
        assert_eq!(std::thread::spawn(move || copy.to_vec()).join().unwrap(), b"value");
        assert_eq!(cursor.entry().unwrap().value, b"value");
    }

    pub(super) fn ascending_keys_and_all_heights_are_found(config: Config) {
        let memtable = Memtable::new(config, &Pool::new(0));
        for number in 0..some(5000) {
            let key = number.to_be_bytes();
            memtable.insert(&key, number + 1, EntryKind::Value, &key);
            if number % 100 == 50 {
                memtable.insert(
                    &(number / 2).to_be_bytes(),
                    10_000 + number,
                    EntryKind::Value,
                    b"again",
                );
            }
        }
        let mut cursor = memtable.cursor();
        cursor.seek_first();
        let mut walked = 0;
        let mut last = Vec::new();
        while let Some(entry) = cursor.entry() {
            assert!(entry.key >= &last[..]);
            last = entry.key.to_vec();
            walked += 1;
            cursor.next();
        }
        assert_eq!(walked, some(5000) + some(50));
    }

    pub(super) fn concurrent_writers_lose_nothing_and_readers_see_order(config: Config) {
        let memtable = Memtable::new(config, &Pool::new(0));
        let next_seq = AtomicU64::new(1);
        let seed = seed_from_env(13);
        let oracles: Vec<Oracle> = std::thread::scope(|scope| {
            let write = |thread: u64| {
                let (memtable, next_seq) = (Arc::clone(&memtable), &next_seq);
                move || {
                    let mut rng = Rng::new(seed + thread);
                    let mut oracle = Oracle::new();
                    for step in 0..some(1500) {
                        let seq = next_seq.fetch_add(1, Ordering::Relaxed);
                        // Some keys belong to this thread, some are shared by all threads, some
                        // ascend.
                        let key = match step % 3 {
                            0 => random_key(&mut rng),
                            1 => format!("t{thread}-{}", rng.below(500)).into_bytes(),
                            _ => seq.to_be_bytes().to_vec(),
                        };
                        let value = random_value(&mut rng);
                        memtable.insert(&key, seq, EntryKind::Value, &value);
                        let found = memtable.get(&key, seq).unwrap();
                        assert_eq!((found.seq, found.value), (seq, &value[..]));
                        oracle.insert((key, Reverse(seq)), (EntryKind::Value, value));
                    }
                    oracle
                }
            };
            let writers: Vec<_> = (0..4).map(|thread| scope.spawn(write(thread))).collect();
            scope.spawn(|| {
                for _ in 0..some(20).max(2) {
                    let mut cursor = memtable.cursor();
                    cursor.seek_first();
                    let mut last: Option<(Vec<u8>, Reverse<SeqNo>)> = None;
                    while let Some(entry) = cursor.entry() {
                        let here = (entry.key.to_vec(), Reverse(entry.seq));
                        assert!(last.is_none_or(|last| last < here));
                        last = Some(here);
                        cursor.next();
                    }
                }
            });
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        let oracle: Oracle = oracles.into_iter().flatten().collect();
        let mut cursor = memtable.cursor();
        cursor.seek_first();
        for entry in &oracle {
            assert_at(&cursor, Some(entry));
            cursor.next();
        }
        assert_at(&cursor, None);
    }

    /// Reads between inserts find every earlier entry.
    pub(super) fn reads_between_inserts_miss_nothing(config: Config) {
        let mut rng = Rng::new(seed_from_env(14));
        let memtable = Memtable::new(config, &Pool::new(0));
        let mut oracle = Oracle::new();
        let mut cursor = memtable.cursor();
        for seq in 1..=some(1200) {
            let key = random_key(&mut rng);
            let value = seq.to_be_bytes().to_vec();
            memtable.insert(&key, seq, EntryKind::Value, &value);
            oracle.insert((key, Reverse(seq)), (EntryKind::Value, value));
            let (key, at) = (random_key(&mut rng), rng.below(seq + 1));
            let newest = oracle.range((key.clone(), Reverse(at))..).next();
            match rng.below(5) {
                0 => {
                    let newest = newest.filter(|((found, _), _)| *found == key);
                    let found = memtable.get(&key, at).map(|entry| entry.seq);
                    assert_eq!(found, newest.map(|((_, seq), _)| seq.0));
                }
                1 => {
                    cursor.seek(&key, at);
                    let mut expected = oracle.range((key, Reverse(at))..);
                    for _ in 0..rng.below(8) {
                        assert_at(&cursor, expected.next());
                        cursor.next();
                    }
                }
                2 => {
                    cursor.seek_before(&key);
                    let mut expected = oracle.range(..(key, Reverse(MAX_SEQ))).rev();
                    for _ in 0..rng.below(8) {
                        assert_at(&cursor, expected.next());
                        cursor.previous();
                    }
                }
                3 => {
                    cursor.seek(&key, at);
                    assert_at(&cursor, newest);
                    cursor.previous();
                    let before = oracle.range(..(key, Reverse(at))).next_back();
                    if newest.is_some() {
                        assert_at(&cursor, before);
                    }
                }
                _ => {}
            }
        }
    }

    /// A cursor that continues from an entry visits the rest in order, whatever is inserted
    /// meanwhile and however often the cursor changes direction.
    pub(super) fn cursors_go_on_while_entries_come(config: Config) {
        let mut rng = Rng::new(seed_from_env(15));
        let memtable = Memtable::new(config, &Pool::new(0));
        let mut seen_before = fill(&memtable, &mut rng, some(500));
        let mut seq = some(500);
        for _ in 0..20 {
            let mut cursor = memtable.cursor();
            cursor.seek_first();
            let mut walked: Vec<Version> = Vec::new();
            while let Some(entry) = cursor.entry() {
                walked.push((entry.key.to_vec(), Reverse(entry.seq)));
                if rng.percent(5) {
                    seq += 1;
                    let key = random_key(&mut rng);
                    memtable.insert(&key, seq, EntryKind::Value, b"meanwhile");
                    seen_before
                        .insert((key, Reverse(seq)), (EntryKind::Value, b"meanwhile".to_vec()));
                }
                cursor.next();
            }
            assert!(walked.is_sorted_by(|a, b| a < b));
            assert!(walked.iter().all(|version| seen_before.contains_key(version)));
            let key = random_key(&mut rng);
            cursor.seek(&key, MAX_SEQ);
            let mut at = seen_before.range((key, Reverse(MAX_SEQ))..).next();
            for _ in 0..30 {
                assert_at(&cursor, at);
                let Some((version, _)) = at else { break };
                if rng.percent(60) {
                    cursor.next();
                    at = seen_before.range(version.clone()..).nth(1);
                } else {
                    cursor.previous();
                    at = seen_before.range(..version.clone()).next_back();
                }
            }
        }
    }

    /// A cursor with bounds visits the same entries within these bounds as a cursor without bounds.
    pub(super) fn cursors_of_a_range_have_all_of_it(config: Config) {
        let mut rng = Rng::new(seed_from_env(16));
        let memtable = Memtable::new(config, &Pool::new(0));
        let oracle = fill(&memtable, &mut rng, some(1000));
        for _ in 0..some(500) {
            let (one, other) = (random_key(&mut rng), random_key(&mut rng));
            let (first, end) = if one < other { (one, other) } else { (other, one) };
            let mut cursor = memtable.cursor();
            cursor.limit_to(Some(&first), Some(&end));
            let versions = (first.clone(), Reverse(MAX_SEQ))..(end.clone(), Reverse(MAX_SEQ));
            let expected: Vec<_> =
                oracle.range(versions).map(|(version, _)| version.clone()).collect();
            let mut found: Vec<Version> = Vec::new();
            cursor.seek(&first, MAX_SEQ);
            while let Some(entry) = cursor.entry().filter(|entry| *entry.key < end[..]) {
                found.push((entry.key.to_vec(), Reverse(entry.seq)));
                cursor.next();
            }
            assert_eq!(found, expected);
            found.clear();
            cursor.seek_before(&end);
            while let Some(entry) = cursor.entry().filter(|entry| *entry.key >= first[..]) {
                found.push((entry.key.to_vec(), Reverse(entry.seq)));
                cursor.previous();
            }
            found.reverse();
            assert_eq!(found, expected);
        }
    }

    /// Freezing does not change answers, whenever it happens and on whichever thread.
    pub(super) fn frozen_memtables_answer_as_before(config: Config) {
        let mut rng = Rng::new(seed_from_env(17));
        let memtable = Memtable::new(config, &Pool::new(0));
        let oracle = fill(&memtable, &mut rng, some(2000));
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (memtable, oracle) = (&memtable, &oracle);
                let mut rng = Rng::new(seed_from_env(18) + thread);
                scope.spawn(move || {
                    for _ in 0..some(100) {
                        let key = random_key(&mut rng);
                        let first = oracle.range((key.clone(), Reverse(MAX_SEQ))..).next();
                        let newest = first.filter(|((found, _), _)| *found == key);
                        let found = memtable.get(&key, MAX_SEQ).map(|entry| entry.seq);
                        assert_eq!(found, newest.map(|((_, seq), _)| seq.0));
                    }
                });
            }
            memtable.freeze();
        });
        memtable.freeze();
        let mut cursor = memtable.cursor();
        cursor.seek_first();
        for entry in &oracle {
            assert_at(&cursor, Some(entry));
            cursor.next();
        }
        assert_at(&cursor, None);
        cursor.seek_first();
        let mut newest = oracle.iter().peekable();
        while let Some(entry) = newest.next() {
            assert_at(&cursor, Some(entry));
            while newest.next_if(|(version, _)| version.0 == entry.0.0).is_some() {}
            cursor.next_key();
        }
        assert_at(&cursor, None);
    }

    /// Ranges that are read during inserts miss no earlier entry and return none twice.
    pub(super) fn ranges_read_while_writers_insert_have_every_entry_once(config: Config) {
        for round in 0..if cfg!(miri) { 2 } else { 30 } {
            let memtable = Memtable::new(config, &Pool::new(0));
            // The number of entries that each writer has inserted.
            let inserted = [AtomicU64::new(0), AtomicU64::new(0)];
            let count = some(400).max(8);
            std::thread::scope(|scope| {
                for (thread, inserted) in (0u64..).zip(&inserted) {
                    let memtable = &memtable;
                    scope.spawn(move || {
                        for step in 0..count {
                            let seq = 2 * step + thread + 1;
                            let key = seq.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
                            memtable.insert(&key, seq, EntryKind::Value, &seq.to_be_bytes());
                            inserted.store(step + 1, Ordering::Release);
                        }
                    });
                }
                for reader in 0..2 {
                    let (memtable, inserted) = (&memtable, &inserted);
                    scope.spawn(move || {
                        if round % 2 == reader {
                            while inserted[0].load(Ordering::Acquire) < count / 2 {
                                std::hint::spin_loop();
                            }
                        }
                        for _ in 0..3 {
                            let before: Vec<u64> = inserted
                                .iter()
                                .map(|count| count.load(Ordering::Acquire))
                                .collect();
                            let mut cursor = memtable.cursor();
                            cursor.seek_first();
                            let mut found = Vec::new();
                            let mut last = None;
                            while let Some(entry) = cursor.entry() {
                                assert!(last < Some(entry.key.to_vec()));
                                last = Some(entry.key.to_vec());
                                found.push(entry.seq);
                                cursor.next();
                            }
                            found.sort_unstable();
                            for (thread, count) in (0u64..).zip(before) {
                                let mut missing = (0..count).map(|step| 2 * step + thread + 1);
                                assert!(missing.all(|seq| found.binary_search(&seq).is_ok()));
                            }
                        }
                    });
                }
            });
            let mut cursor = memtable.cursor();
            cursor.seek_first();
            let mut walked = 0;
            while cursor.is_valid() {
                walked += 1;
                cursor.next();
            }
            assert_eq!(walked, 2 * count);
        }
    }

    pub(super) fn memory_is_counted(config: Config) {
        let memtable = Memtable::new(config, &Pool::new(0));
        let mut data = 0;
        for number in 0..some(1000) {
            let value = vec![7; usize::try_from(number % 50).unwrap()];
            memtable.insert(&number.to_be_bytes(), number + 1, EntryKind::Value, &value);
            data += 8 + value.len();
        }
        let memory = memtable.memory();
        assert_eq!(memory.data_bytes, data);
        assert!(memory.metadata_bytes > 0);
        assert_eq!(memory.total_bytes(), memory.used_bytes() + memory.unused_bytes);
        memtable.insert_range_tombstone(b"a", Some(b"b"), 2000, 2000);
        assert!(memtable.memory().metadata_bytes > memory.metadata_bytes);
        assert!(!memtable.is_empty());
    }
}

/// Runs each check with every example of every kind. A failed check prints the example.
macro_rules! conformance {
    ($($check:ident)*) => {$(
        #[test]
        fn $check() {
            for (name, config) in Config::examples() {
                println!("{name}");
                checks::$check(config);
            }
        }
    )*};
}

conformance! {
    gets_find_the_newest_version_not_above_a_seq
    cursors_walk_both_ways_and_seek
    versions_that_arrive_out_of_order_are_found
    groups_are_there_as_if_they_came_one_by_one
    keys_are_found_together_as_one_by_one
    an_empty_memtable_has_nothing
    pinned_values_outlive_their_memtable
    ascending_keys_and_all_heights_are_found
    concurrent_writers_lose_nothing_and_readers_see_order
    reads_between_inserts_miss_nothing
    cursors_go_on_while_entries_come
    cursors_of_a_range_have_all_of_it
    frozen_memtables_answer_as_before
    ranges_read_while_writers_insert_have_every_entry_once
    memory_is_counted
}

#[test]
fn every_kind_has_examples() {
    let kinds: Vec<&str> = Config::examples().map(|(_, config)| config.kind()).collect();
    assert!(Config::KINDS.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
    assert_eq!(Config::SMALLEST.len(), Config::KINDS.len());
}
