//! Hot records in a real buffer pool.

use std::collections::HashMap;

use super::ring::SEGMENT_BYTES;
use super::share::{CAPACITY_MIN, SEGMENTS_MIN};
use super::{Carried, HotRecord, HotRecords, RecordKey};
use crate::base::types::EntryKind;
use crate::files::buffer::{BufferPool, Priority, Slots, pin};
use crate::files::table::filter_hash;

const CAPACITY: usize = CAPACITY_MIN;
const BLOCK: usize = 4096;

/// Pseudo-random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end
    }

    /// A number below `end`; twice as large ones are half as likely.
    fn skewed(&mut self, end: usize) -> usize {
        let share = self.next() as f64 / (1u64 << 31) as f64;
        ((end as f64).powf(share) as usize).min(end) - 1
    }
}

/// A pool that has evicted, with the slots of a table.
fn full_pool(slots: usize) -> (BufferPool, Slots) {
    let pool = BufferPool::new(CAPACITY as u64);
    let table = Slots::new(&pool, slots);
    for slot in 0..slots.min(2 * CAPACITY / BLOCK) {
        read(&pool, &table, slot);
    }
    // The first blocks are read again, which shows the pool that it has evicted them.
    read(&pool, &table, 0);
    assert!(pool.has_evicted());
    (pool, table)
}

/// Reads a block if it is not in memory. Returns whether it was.
fn read(pool: &BufferPool, table: &Slots, slot: usize) -> bool {
    if table.get(slot, &pin()).is_some() {
        return true;
    }
    table.fill(slot, pool.allocate(BLOCK).freeze(), Priority::Data);
    false
}

fn at(table: u64, key: &[u8]) -> RecordKey<'_> {
    RecordKey { table, key, hash: filter_hash(key) }
}

fn keep(records: &HotRecords, pool: &BufferPool, at: RecordKey<'_>, value: &[u8]) {
    // The ring may be full, so that only the second read counts.
    for _ in 0..2 {
        records.note_read((pool, true), at, (7, EntryKind::Value, value), BLOCK);
    }
}

fn value_of(record: Option<HotRecord>) -> Option<Vec<u8>> {
    record.map(|record| {
        assert_eq!((record.seq, record.kind), (7, EntryKind::Value));
        record.value.to_vec()
    })
}

#[test]
fn a_record_belongs_to_a_key_and_a_table() {
    let (pool, _table) = full_pool(20_000);
    let records = HotRecords::new(CAPACITY as u64);
    assert!(records.get(at(1, b"key")).is_none());
    keep(&records, &pool, at(1, b"key"), b"one");
    assert_eq!(value_of(records.get(at(1, b"key"))), Some(b"one".to_vec()));
    assert!(records.get(at(2, b"key")).is_none());
    assert!(records.get(at(1, b"kez")).is_none());
    // A compaction has written the key to another table.
    keep(&records, &pool, at(2, b"key"), b"two");
    assert_eq!(value_of(records.get(at(2, b"key"))), Some(b"two".to_vec()));
    assert!(records.get(at(1, b"key")).is_none());
    // Another key with the same hash.
    let other = RecordKey { key: b"other", ..at(2, b"key") };
    assert!(records.get(other).is_none());
    keep(&records, &pool, other, b"three");
    assert_eq!(value_of(records.get(other)), Some(b"three".to_vec()));
    assert_eq!(value_of(records.get(at(2, b"key"))), Some(b"two".to_vec()));
}

#[test]
fn compactions_carry_records_over() {
    let (pool, _table) = full_pool(20_000);
    let records = HotRecords::new(CAPACITY as u64);
    let version = |value: &'static [u8]| (7, EntryKind::Value, value);
    let found = |table: u64, key: &[u8]| value_of(records.get(at(table, key)));
    let some = |value: &[u8]| Some(value.to_vec());
    let carry = |from: &[u64], at: RecordKey<'_>, version: (u64, EntryKind, &[u8])| {
        let mut carried = Carried::new(&from.into());
        carried.add(&records, at, version);
        carried.apply(&records, at.table);
    };
    keep(&records, &pool, at(2, b"key"), b"one");
    assert!(!records.are_carried(), "the records have their least share");
    // Table 2 is no input of this one.
    carry(&[1, 3], at(9, b"key"), version(b"one"));
    assert_eq!((found(9, b"key"), found(2, b"key")), (None, some(b"one")));
    // Lookups find the record in both tables, because the compaction may fail.
    carry(&[1, 2, 3], at(10, b"key"), version(b"one"));
    assert_eq!((found(10, b"key"), found(2, b"key")), (some(b"one"), some(b"one")));
    // The next one.
    carry(&[10], at(11, b"key"), version(b"one"));
    assert_eq!((found(11, b"key"), found(10, b"key")), (some(b"one"), some(b"one")));
    assert_eq!(found(2, b"key"), None);
    // Its input was another one; the first has failed, or its table was read again.
    carry(&[10], at(12, b"key"), version(b"one"));
    assert_eq!((found(12, b"key"), found(10, b"key")), (some(b"one"), some(b"one")));
    // The job has moved the value.
    carry(&[12], at(13, b"key"), version(b"two"));
    assert_eq!((found(13, b"key"), found(12, b"key")), (None, some(b"one")));
    // A lookup has read the same version in another table.
    keep(&records, &pool, at(13, b"key"), b"one");
    assert_eq!((found(13, b"key"), found(12, b"key")), (some(b"one"), some(b"one")));
    // A newer version of another input, and one that needs more room.
    carry(&[1, 12], at(14, b"key"), (8, EntryKind::Tombstone, b"two"));
    let newer = records.get(at(14, b"key")).map(|it| (it.seq, it.kind, it.value.to_vec()));
    assert_eq!(newer, Some((8, EntryKind::Tombstone, b"two".to_vec())));
    assert_eq!((found(13, b"key"), found(12, b"key")), (None, None));
    carry(&[14], at(15, b"key"), (9, EntryKind::Value, &[4; 90]));
    assert!(records.get(at(14, b"key")).is_none() && records.get(at(15, b"key")).is_none());
    // A key without a record.
    carry(&[1, 2], at(10, b"kez"), version(b"one"));
    assert_eq!(found(10, b"kez"), None);
    // A table number that a record cannot store.
    keep(&records, &pool, at(16, b"key"), b"one");
    carry(&[16], at(1 << 32, b"key"), version(b"one"));
    assert_eq!((found(1 << 32, b"key"), found(16, b"key")), (None, None));
    keep(&records, &pool, at(1 << 32, b"key"), b"one");
    assert_eq!(found(1 << 32, b"key"), None);
}

#[test]
fn nothing_is_kept_without_need() {
    let kept = |capacity: usize, is_slow: bool, len: usize, pool: &BufferPool| {
        let records = HotRecords::new(capacity as u64);
        let value = vec![1; len];
        for _ in 0..3 {
            records.note_read((pool, is_slow), at(1, b"key"), (7, EntryKind::Value, &value), BLOCK);
        }
        assert_eq!(records.get(at(1, b"key")).is_some(), records.bytes() > 0);
        records.bytes() > 0
    };
    let (pool, _table) = full_pool(20_000);
    assert!(kept(CAPACITY, true, 100, &pool));
    assert!(!kept(CAPACITY, false, 100, &pool), "reads do not wait");
    assert!(!kept(CAPACITY - 1, true, 100, &pool), "the pool is small");
    assert!(!kept(CAPACITY, true, 2100, &pool), "the record is half of its block");
    let empty = BufferPool::new(CAPACITY as u64);
    assert!(!kept(CAPACITY, true, 100, &empty), "everything fits");
}

/// Whatever is kept, leaves, moves or is lost, a record that is found is right; and the memory is that
/// of the pool.
#[test]
fn records_are_right_through_changes_of_the_capacity() {
    let (pool, _table) = full_pool(20_000);
    let records = HotRecords::new(CAPACITY as u64);
    let mut random = Random(1);
    let (mut found, mut lost) = (0, 0);
    let value = |table: u64, key: usize| vec![(key + table as usize) as u8; key * 7 % 1500];
    let mut noted = HashMap::new();
    for step in 0..150_000 {
        let key = random.skewed(100_000);
        let table = 1 + random.next() % 3;
        let name = format!("key{key}");
        let place = at(table, name.as_bytes());
        match value_of(records.get(place)) {
            Some(record) => {
                assert_eq!(record, value(table, key));
                assert!(noted.contains_key(&(table, key)));
                found += 1;
            }
            None => {
                lost += usize::from(noted.insert((table, key), ()).is_some());
                let version = (7, EntryKind::Value, &*value(table, key));
                records.note_read((&pool, true), place, version, BLOCK);
            }
        }
        if step % 20_000 == 19_999 {
            let capacity = [CAPACITY / 2, CAPACITY, 4 * CAPACITY, CAPACITY + 1][step / 20_000 % 4];
            records.set_capacity(&pool, capacity as u64);
            assert!(records.bytes() == 0 || capacity >= CAPACITY);
            assert!(records.bytes() <= capacity, "{} of {capacity}", records.bytes());
        }
        if step % 5000 == 0 {
            assert!(pool.bytes().pinned >= records.bytes());
            assert!(pool.bytes().pinned - records.bytes() < SEGMENT_BYTES);
        }
    }
    assert!(found > 20_000 && lost > 10_000, "{found} found, {lost} lost");
    records.set_capacity(&pool, 0);
    assert_eq!((records.bytes(), pool.bytes().pinned), (0, 0));
}

#[test]
fn a_pool_that_shrinks_gets_the_memory_back() {
    for (capacity, most) in [(300 << 20, 100 << 20), (200 << 20, 0), (8 << 20, 0)] {
        let (pool, _table) = full_pool(20_000);
        let records = HotRecords::new(1 << 30);
        for number in 0..20_000 {
            keep(&records, &pool, at(1, format!("key{number}").as_bytes()), &[1; 100]);
        }
        let before = records.bytes();
        // The index, the recent keys, and at least a segment for each of the 16 parts.
        assert!(before > 40 << 20 && pool.bytes().pinned >= before, "{before}");
        records.set_capacity(&pool, capacity);
        let bytes = pool.bytes();
        assert!(records.bytes() <= most, "{} of {capacity}", records.bytes());
        assert!(bytes.allocated as u64 <= capacity, "{bytes:?} of {capacity}");
        // The records begin again, with what suits the new capacity.
        for number in 0..100 {
            keep(&records, &pool, at(1, format!("new{number}").as_bytes()), &[1; 100]);
        }
        assert!(records.bytes() <= most && pool.bytes().pinned <= most + SEGMENT_BYTES);
    }
}

#[test]
fn records_leave_once_reads_are_quick() {
    let (pool, _table) = full_pool(20_000);
    let records = HotRecords::new(CAPACITY as u64);
    keep(&records, &pool, at(1, b"key"), &[1; 100]);
    let note = |is_slow: bool, count: usize| {
        for _ in 0..count {
            let version = (7, EntryKind::Value, &[1; 3000][..]);
            records.note_read((&pool, is_slow), at(1, b"large"), version, BLOCK);
        }
    };
    note(false, 10_000);
    note(true, 1);
    note(false, 10_000);
    assert!(records.get(at(1, b"key")).is_some(), "some reads are slow");
    note(false, 10_000);
    assert!(records.get(at(1, b"key")).is_none());
    assert_eq!((records.bytes(), pool.bytes().pinned), (0, 0));
}

/// Scans do not look for records, but need the memory of those that earlier lookups have left.
#[test]
fn blocks_that_others_read_get_memory_back() {
    let (pool, table) = full_pool(20_000);
    let records = HotRecords::new(CAPACITY as u64);
    (0..300).for_each(|_| records.share.note_use(0, SEGMENT_BYTES));
    for number in 0..200_000 {
        keep(&records, &pool, at(1, format!("key{number}").as_bytes()), &[1; 100]);
    }
    let before = records.bytes();
    assert!(before > CAPACITY / 2, "{before}");
    // Twice as many blocks as fit next to the records.
    let slots = (CAPACITY - before) / BLOCK * 2;
    let mut random = Random(5);
    for _ in 0..200_000 {
        let slot = random.below(slots);
        if !read(&pool, &table, slot) {
            records.yield_to_blocks(&pool);
        }
    }
    let after = records.bytes();
    assert!(after < before * 9 / 10, "{after} of {before}");
    let misses = (0..slots).filter(|slot| !read(&pool, &table, *slot)).count();
    assert!(misses < slots / 10, "{misses} of {slots}");
}

#[test]
fn used_records_stay_and_others_leave() {
    let (pool, _table) = full_pool(20_000);
    let records = HotRecords::new(CAPACITY as u64);
    let value = [1; 100];
    keep(&records, &pool, at(1, b"used"), &value);
    keep(&records, &pool, at(1, b"unused"), &value);
    // Several times what the ring has room for.
    for number in 0..8 * SEGMENTS_MIN * SEGMENT_BYTES / 160 {
        keep(&records, &pool, at(1, format!("key{number}").as_bytes()), &value);
        if number % 100 == 0 {
            assert!(records.get(at(1, b"used")).is_some(), "lost after {number}");
        }
    }
    assert!(records.get(at(1, b"unused")).is_none());
    assert!(records.get(at(1, b"key0")).is_none());
}

/// Reads records from blocks of 32 and returns the blocks read during the second half, and the records' target.
fn misses(choose: impl Fn(&mut Random, usize) -> usize, keeps: bool) -> (usize, usize) {
    const PER_BLOCK: usize = 32;
    const BLOCKS: usize = 20_000;
    const LOOKUPS: usize = 400_000;
    let (pool, table) = full_pool(BLOCKS);
    let records = HotRecords::new(CAPACITY as u64);
    let (mut random, mut missed) = (Random(3), 0);
    for lookup in 0..LOOKUPS {
        // Popular keys are spread over all blocks, by the golden ratio.
        let key = choose(&mut random, BLOCKS * PER_BLOCK) * 395_537 % (BLOCKS * PER_BLOCK);
        let name = format!("key{key:010}");
        let place = at(1, name.as_bytes());
        if table.get(key / PER_BLOCK, &pin()).is_some() || records.get(place).is_some() {
            continue;
        }
        read(&pool, &table, key / PER_BLOCK);
        missed += usize::from(lookup >= LOOKUPS / 2);
        if keeps {
            records.note_read((&pool, true), place, (7, EntryKind::Value, &[1; 100]), BLOCK);
        }
    }
    let bytes = pool.bytes();
    assert!(bytes.allocated <= CAPACITY + CAPACITY / 16, "{bytes:?}");
    (missed, records.share.limits().segments * SEGMENT_BYTES)
}

#[test]
fn skewed_lookups_read_fewer_blocks() {
    let (without, _) = misses(Random::skewed, false);
    let (with, target) = misses(Random::skewed, true);
    assert!(with * 20 < without * 17, "{with} instead of {without}");
    assert!(target > CAPACITY / 4, "{target}");
}

#[test]
fn uniform_lookups_keep_their_blocks() {
    let (without, _) = misses(Random::below, false);
    let (with, target) = misses(Random::below, true);
    assert!(with * 100 < without * 105, "{with} instead of {without}");
    assert!(target <= CAPACITY / 10, "{target}");
}
