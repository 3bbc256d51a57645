//! Stores through a map reach the file, wherever they begin and end, and stay within their bounds. Miri
//! runs these tests with a stand-in for the map.
#![allow(clippy::disallowed_methods, reason = "a map needs a file")]

use std::io::{Read, Seek};
use std::os::unix::fs::FileExt;

use terrane_testkit::{Rng, seed_from_env};

use super::*;

/// A file of `len` bytes that are 0xff, and its map.
fn mapped(len: usize) -> (File, WritableMapping) {
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(&vec![0xff; len], 0).unwrap();
    let map = WritableMapping::of_file(&file, len as u64).unwrap();
    (file, map)
}

/// Drops the map and returns the contents of the file.
fn contents((mut file, map): (File, WritableMapping)) -> Vec<u8> {
    drop(map);
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

fn is_lost(map: &WritableMapping) -> bool {
    map.check().is_err_and(|error| error.downcast::<LostPage>().is_ok())
}

#[test]
fn stores_reach_the_file_wherever_they_begin_and_end() {
    const LEN: usize = 4096 + 5;
    let mut rng = Rng::new(seed_from_env(81));
    let (file, map) = mapped(LEN);
    let mut expected = vec![0xff; LEN];
    let mut write = |offset: usize, len: usize| {
        let bytes: Vec<u8> = (0..len).map(|_| rng.bits() as u8).collect();
        map.write(offset as u64, &bytes).unwrap();
        expected[offset..offset + len].copy_from_slice(&bytes);
    };
    for offset in 0..WORD {
        for len in 0..3 * WORD {
            write(100 + offset + 2 * len, len);
            write(LEN - offset - len, len);
        }
    }
    write(0, LEN);
    write(8, 24);
    for (offset, len) in [(LEN as u64, 1), (LEN as u64 - 3, 4), (u64::MAX, 1), (0, LEN + 1)] {
        let refused = map.write(offset, &vec![1; len]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{len} bytes at {offset}");
    }
    map.write(LEN as u64, &[]).unwrap();
    map.populate(3, u64::MAX);
    map.populate(u64::MAX, 1);
    map.check().unwrap();
    assert!(contents((file, map)) == expected);
}

#[test]
fn records_of_several_parts_reach_the_file_and_wrong_ones_store_nothing_outside() {
    const LEN: usize = 4096;
    let (file, map) = mapped(LEN);
    let record: Vec<u8> = (1..=61).collect();
    for (offset, splits) in [(0, [16, 16]), (64, [17, 40]), (128, [24, 24]), (LEN - 64, [60, 61])] {
        let parts = [&record[..splits[0]], &record[splits[0]..splits[1]], &record[splits[1]..]];
        map.write_record(offset as u64, &parts).unwrap();
    }
    let end = LEN as u64;
    let refused: [(u64, &[&[u8]]); 6] = [
        (0, &[]),
        (256, &[&record[..15]]),
        (260, &[&record]),
        (end - 56, &[&record]),
        (end - 56, &[&record[..16], &record[16..]]),
        (u64::MAX - 7, &[&record[..16], &record[16..]]),
    ];
    for (offset, record) in refused {
        let refused = map.write_record(offset, record).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{record:?} at {offset}");
    }
    let found = contents((file, map));
    let mut expected = vec![0xff; LEN];
    for offset in [0, 64, 128, LEN - 64] {
        expected[offset..offset + record.len()].copy_from_slice(&record);
    }
    assert!(found == expected);
}

#[test]
fn threads_store_side_by_side_and_over_each_other() {
    const THREADS: usize = 4;
    const ROUNDS: usize = if cfg!(miri) { 6 } else { 200 };
    const RECORD: usize = 48;
    /// After the records of all threads, a range that all of them overwrite.
    const SHARED: usize = THREADS * ROUNDS * RECORD;
    let (file, map) = mapped(SHARED + 64);
    let weak = map.downgrade();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let map = map.clone();
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let bytes = [thread as u8 + 1; RECORD];
                    let offset = (round * THREADS + thread) * RECORD;
                    map.write_record(offset as u64, &[&bytes[..21], &bytes[21..]]).unwrap();
                    map.write(SHARED as u64 + 3, &bytes).unwrap();
                    map.check().unwrap();
                }
            });
        }
    });
    drop(weak.upgrade().unwrap());
    let found = contents((file, map));
    assert!(weak.upgrade().is_none() && WeakMapping::default().upgrade().is_none());
    for (index, record) in found[..SHARED].chunks(RECORD).enumerate() {
        assert!(record == [(index % THREADS) as u8 + 1; RECORD], "{index}: {record:?}");
    }
    let (before, rest) = found[SHARED..].split_at(3);
    let (shared, after) = rest.split_at(RECORD);
    assert!(before.iter().chain(after).all(|byte| *byte == 0xff));
    assert!(shared.iter().all(|byte| (1..=THREADS as u8).contains(byte)), "{shared:?}");
}

/// Stores of bytes and of words to the same bytes, each atomic, were undefined behaviour.
#[test]
fn threads_store_over_each_other_in_part() {
    let (file, map) = mapped(256);
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let map = map.clone();
            scope.spawn(move || {
                for round in 0..8 {
                    let offset = u64::from(thread) * 3 + round % 2;
                    map.write(64 + offset, &[thread; 33]).unwrap();
                }
            });
        }
    });
    let found = contents((file, map));
    assert!(found[..64].iter().chain(&found[107..]).all(|byte| *byte == 0xff));
    // Four words are stored as a whole by every thread, or at either end in part.
    assert!(found[74..97].iter().all(|byte| *byte < 4), "{found:?}");
}

#[test]
fn a_lost_page_is_an_error_for_every_clone_until_the_map_is_dropped() {
    let (file, map) = mapped(4096);
    let clone = map.clone();
    map.check().unwrap();
    clone.note_shortened(0);
    assert!(is_lost(&map) && is_lost(&clone));
    drop((map, clone));
    // The next map may reuse the place of the note.
    WritableMapping::of_file(&file, 4096).unwrap().check().unwrap();
}

#[test]
fn a_long_map_is_unmapped_in_steps_and_keeps_its_stores() {
    const LEN: usize = 2 * UNMAP_STEP + 5;
    let (file, map) = mapped(LEN);
    map.write(UNMAP_STEP as u64 - 1, &[1; 3]).unwrap();
    let steps = std::cell::Cell::new(0);
    map.discard_pages(&|| steps.set(steps.get() + 1));
    assert_eq!(steps.get(), 3);
    map.write(0, &[2]).unwrap();
    let contents = contents((file, map));
    assert_eq!(contents.len(), LEN);
    assert_eq!(contents[..2], [2, 255]);
    assert_eq!(contents[UNMAP_STEP - 2..UNMAP_STEP + 3], [255, 1, 1, 1, 255]);
}
