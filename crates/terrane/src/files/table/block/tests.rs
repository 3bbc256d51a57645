//! Blocks compared with a sorted list, and damaged blocks.

use std::cmp::Reverse;

use terrane_testkit::{Rng, seed_from_env};

use super::*;
use crate::files::buffer::BufferPool;

type Entry = ((Vec<u8>, Reverse<SeqNo>), (EntryKind, Vec<u8>));

fn random_entries(rng: &mut Rng) -> Vec<Entry> {
    let prefix: &[u8] = rng.pick::<&[u8]>(&[&b""[..], b"p", b"a long common prefix of keys"]);
    let alphabet: &[u8] = rng.pick::<&[u8]>(&[&b"ab"[..], b"\0\x01", b"\0\xff\x7f0123456789"]);
    let longest = rng.between(0, 12);
    let base = rng.below(1 << 40);
    let value_len = if rng.percent(10) { 3000 } else { 20 };
    let has_separated = rng.percent(50);
    let mut entries = std::collections::BTreeMap::new();
    for _ in 0..rng.between(1, 200) {
        let len = rng.below(longest + 1);
        let key = prefix.iter().copied().chain((0..len).map(|_| *rng.pick(alphabet))).collect();
        let kind = match rng.below(10) {
            0 | 1 => EntryKind::Tombstone,
            2 if has_separated => EntryKind::Separated,
            _ => EntryKind::Value,
        };
        let value = vec![rng.bits() as u8; rng.index(value_len)];
        entries.insert((key, Reverse(base + rng.below(1000))), (kind, value));
    }
    entries.into_iter().collect()
}

fn build(entries: &[Entry]) -> Vec<u8> {
    let mut builder = BlockBuilder::default();
    for ((key, seq), (kind, value)) in entries {
        builder.add(key, seq.0, *kind, value);
    }
    let bound = builder.size();
    let mut bytes = Vec::new();
    builder.finish(&mut bytes);
    assert!(bytes.len() <= bound && builder.is_empty());
    bytes
}

fn cursor(bytes: &[u8]) -> BlockCursor {
    let mut cursor = BlockCursor::default();
    let mut block = BufferPool::new(0).standalone(bytes.len());
    block.copy_from_slice(bytes);
    cursor.set(block.freeze()).unwrap();
    cursor
}

fn assert_at(cursor: &BlockCursor, expected: Option<&Entry>) {
    assert_eq!(cursor.is_valid(), expected.is_some());
    if let Some(((key, seq), (kind, value))) = expected {
        let found = (cursor.key(), cursor.seq(), cursor.kind(), cursor.value());
        assert_eq!(found, (&key[..], seq.0, *kind, &value[..]));
        assert_eq!(cursor.pin_value(), *value);
    }
}

#[test]
fn cursors_find_and_walk_all_entries() {
    let seed = seed_from_env(21);
    let mut usually = 0;
    for round in 0..300 {
        let mut rng = Rng::new(seed + round);
        let entries = random_entries(&mut rng);
        let bytes = build(&entries);
        let layout = Layout::parse(&bytes).unwrap();
        let mut cursor = cursor(&bytes);
        assert_at(&cursor, None);
        cursor.seek_first().unwrap();
        for entry in &entries {
            assert_at(&cursor, Some(entry));
            cursor.next().unwrap();
        }
        assert_at(&cursor, None);
        cursor.seek_last().unwrap();
        for entry in entries.iter().rev() {
            assert_at(&cursor, Some(entry));
            cursor.previous().unwrap();
        }
        assert_at(&cursor, None);
        for _ in 0..100 {
            let ((key, seq), _) = &entries[rng.index(entries.len())];
            let mut key = key.clone();
            match rng.below(4) {
                0 => key.push(rng.bits() as u8),
                1 => drop(key.pop()),
                2 => key.iter_mut().take(1).for_each(|byte| *byte = byte.wrapping_add(1)),
                _ => {}
            }
            let seq = seq.0 + rng.below(3) - rng.below(2).min(seq.0);
            let at = entries.partition_point(|(place, _)| *place < (key.clone(), Reverse(seq)));
            cursor.seek(&key, seq).unwrap();
            assert_at(&cursor, entries.get(at));
            let here = entries.get(at).map(|((key, _), _)| key.clone());
            cursor.next_key().unwrap();
            let next = entries.iter().skip(at).find(|((key, _), _)| Some(key) != here.as_ref());
            assert_at(&cursor, next);
            let found = Block::new(&bytes, &layout).find(None, &key, seq).unwrap();
            let expected = entries.get(at).filter(|((found, _), _)| *found == key);
            assert_eq!(found.map(|entry| entry.seq), expected.map(|((_, seq), _)| seq.0));
            if let Some(usual) = find_usual(&bytes, None, &key, seq) {
                let found = usual.map(|version| (version.seq, version.kind, &bytes[version.value]));
                let expected = expected.map(|((_, seq), (kind, value))| (seq.0, *kind, &value[..]));
                assert_eq!(found, expected);
                usually += 1;
            }
        }
    }
    assert!(usually > 5_000, "{usually}");
}

#[test]
fn single_blocks_read_as_others_do() {
    for key in [&b""[..], b"k", &[7; 70_000][..65_536]] {
        let mut bytes = Vec::new();
        BlockBuilder::single(key, 99, EntryKind::Value, &mut bytes);
        bytes.extend_from_slice(b"the value");
        let mut cursor = cursor(&bytes);
        cursor.seek_first().unwrap();
        let entry = ((key.to_vec(), Reverse(99)), (EntryKind::Value, b"the value".to_vec()));
        assert_at(&cursor, Some(&entry));
        cursor.seek(key, 99).unwrap();
        assert_at(&cursor, Some(&entry));
        cursor.seek(key, 98).unwrap();
        assert_at(&cursor, None);
    }
}

/// The heads of a block with a valid checksum were not ascending, so the search ended at an entry
/// that it had not compared, and a lookup returned a version newer than its snapshot.
#[test]
fn lookups_in_a_block_out_of_order_never_return_a_newer_version() {
    let entry = |seq| ((b"key03".to_vec(), Reverse(seq)), (EntryKind::Value, Vec::new()));
    let mut bytes = build(&(20..27).rev().map(entry).collect::<Vec<Entry>>());
    let heads = Layout::parse(&bytes).unwrap().heads;
    bytes[heads + 2 * HEAD_BYTES] = 1;
    let layout = Layout::parse(&bytes).unwrap();
    let block = Block::new(&bytes, &layout);
    assert_eq!(block.find(None, b"key03", MAX_SEQ).unwrap().map(|entry| entry.seq), Some(26));
    let error = block.find(None, b"key03", 5).unwrap_err().to_string();
    assert!(error.contains("sequence number of an entry"), "{error}");
}

#[test]
fn lookups_in_random_damaged_blocks_never_return_a_newer_version() {
    let seed = seed_from_env(23);
    for round in 0..2000 {
        let mut rng = Rng::new(seed + round);
        let versions = rng.between(3, 40);
        let entry = |seq| ((b"k".to_vec(), Reverse(seq)), (EntryKind::Value, Vec::new()));
        let mut bytes = build(&(10..10 + versions).rev().map(entry).collect::<Vec<Entry>>());
        let Layout { heads, count, .. } = Layout::parse(&bytes).unwrap();
        for _ in 0..rng.between(1, 3) {
            bytes[heads + rng.index(count) * HEAD_BYTES] = rng.bits() as u8;
        }
        let layout = Layout::parse(&bytes).unwrap();
        let seq = rng.below(60);
        if let Ok(Some(found)) = Block::new(&bytes, &layout).find(None, b"k", seq) {
            assert!(found.seq <= seq, "seed {}: {} > {seq}", seed + round, found.seq);
        }
        if let Some(Some(found)) = find_usual(&bytes, None, b"k", seq) {
            assert!(found.seq <= seq, "seed {}: {} > {seq}", seed + round, found.seq);
        }
    }
}

#[test]
fn damaged_blocks_give_errors_or_entries_and_never_panic() {
    let seed = seed_from_env(22);
    for round in 0..100 {
        let mut rng = Rng::new(seed + round);
        let mut bytes = build(&random_entries(&mut rng));
        for _ in 0..rng.between(1, 4) {
            let at = rng.index(bytes.len().min(64));
            bytes[at] = rng.bits() as u8;
        }
        bytes.truncate(rng.index(bytes.len()) + 1);
        let Ok(layout) = Layout::parse(&bytes) else { continue };
        let block = Block::new(&bytes, &layout);
        for index in 0..block.len().min(1000) {
            let _ = block.entry(index);
        }
        let _ = block.search_from(block.narrow(b"p"), b"p", 5);
        for key in [&b"p"[..], b"a", b"\0\x01"] {
            if let Some(usual) = find_usual(&bytes, None, key, MAX_SEQ) {
                let found =
                    block.find(None, key, MAX_SEQ).map(|entry| entry.map(|at| (at.seq, at.value)));
                assert_eq!(found, Ok(usual.map(|version| (version.seq, &bytes[version.value]))));
            }
        }
        let mut cursor = cursor(&bytes);
        let _ = cursor.seek_first();
        let _ = cursor.next();
        let _ = cursor.next_key();
        let mut stretch = Stretch::default();
        while cursor.stretch(&mut stretch, u64::MAX, rng.percent(50).then_some(MAX_SEQ)) {
            loop {
                let found =
                    (stretch.key().map(<[u8]>::to_vec), stretch.value().map(<[u8]>::to_vec));
                cursor.step_back(stretch.left().unwrap()).unwrap();
                let alone = (Some(cursor.key().to_vec()), Some(cursor.value().to_vec()));
                assert_eq!(found, alone);
                if !stretch.has_next() {
                    break;
                }
                stretch.step();
                (0..=stretch.left().unwrap()).for_each(|_| cursor.next().unwrap());
            }
        }
        let _ = cursor.seek_last();
    }
}

#[test]
fn stretches_are_the_entries_that_steps_find() {
    let seed = seed_from_env(24);
    let (mut stepped, mut ended) = (0, 0);
    for round in 0..300 {
        let mut rng = Rng::new(seed + round);
        let entries = random_entries(&mut rng);
        let mut cursor = cursor(&build(&entries));
        cursor.seek_first().unwrap();
        let mut stretch = Stretch::default();
        let seqs: Vec<SeqNo> = entries.iter().map(|((_, seq), _)| seq.0).collect();
        let seq = rng.percent(50).then(|| *rng.pick(&seqs));
        let ((last, _), _) = rng.pick(&entries);
        let below = if rng.percent(50) { u64::MAX } else { terrane_memtable::head_of(last) };
        let mut at = 0;
        while cursor.is_valid() {
            if !cursor.stretch(&mut stretch, below, seq) {
                assert!(!stretch.has_next() && stretch.key().is_none());
                assert_at(&cursor, entries.get(at));
                cursor.next_key().unwrap();
                let ((here, _), _) = &entries[at];
                at += entries[at..].iter().take_while(|((key, _), _)| key == here).count();
                assert_at(&cursor, entries.get(at));
                continue;
            }
            loop {
                let ((before, _), _) = &entries[at];
                at += 1;
                stepped += 1;
                let ((key, entry_seq), (kind, value)) = &entries[at];
                assert_eq!((stretch.key(), stretch.value()), (Some(&key[..]), Some(&value[..])));
                assert_eq!(stretch.pin_value().unwrap(), value[..]);
                assert!(key != before && *kind == EntryKind::Value);
                assert!(seq.is_none_or(|seq| entry_seq.0 <= seq));
                assert!(terrane_memtable::head_of(key) < below);
                if !stretch.has_next() || rng.percent(10) {
                    break;
                }
                stretch.step();
            }
            ended += usize::from(stretch.has_next());
            let last = at + stretch.left().unwrap();
            assert_at(&cursor, entries.get(last));
            cursor.step_back(stretch.left().unwrap()).unwrap();
            assert_at(&cursor, entries.get(at));
        }
        assert_eq!(at, entries.len());
    }
    assert!(stepped > 2_000 && ended > 100, "{stepped} {ended}");
}
