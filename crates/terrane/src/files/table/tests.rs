//! Tests whole tables: writes them, reads them in both directions through all read paths, and
//! damages them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use terrane_memtable::Fragment;
use terrane_policy::Compression;
use terrane_testkit::{Rng, seed_from_env};

use super::*;
use crate::base::error::{Error, Result};
use crate::base::fork::Owner;
use crate::base::memory_ledger::MemoryLedger;
use crate::base::stats::{Counter, Counters};
use crate::base::types::{EntryKind, SeqNo};
use crate::files::buffer::BufferPool;
use crate::files::io_rings::IoRings;
use crate::files::io_threads::IoThreads;
use crate::files::storage::{Access, MemoryStorage, Storage};
use crate::files::value_pointer::ValuePointer;

pub(super) type Entries = BTreeMap<(Vec<u8>, Reverse<SeqNo>), (EntryKind, Vec<u8>)>;

const ID: TableFileId = TableFileId { number: 5, writer: 0xabc };

const READ_PATHS: [Access; 2] = [Access::Buffered, Access::Direct];

fn random_entries(rng: &mut Rng) -> Entries {
    let mut entries = Entries::new();
    let alphabet: &[u8] = rng.pick::<&[u8]>(&[&b"ab"[..], b"0123456789", b"\0\xff"]);
    let (keys, versions) = (rng.between(1, 400), rng.between(1, 30));
    for _ in 0..keys {
        let key: Vec<u8> = (0..rng.index(9)).map(|_| *rng.pick(alphabet)).collect();
        for _ in 0..if rng.percent(10) { versions } else { 1 } {
            let kind = if rng.percent(20) { EntryKind::Tombstone } else { EntryKind::Value };
            if rng.percent(10) {
                let (file, offset, checksum) = (rng.below(3), rng.bits() >> 8, rng.bits());
                let mut pointer = Vec::new();
                ValuePointer { file, offset, len: 1000, checksum }.encode(&mut pointer);
                let seq = Reverse(1 + rng.below(1000));
                entries.insert((key.clone(), seq), (EntryKind::Separated, pointer));
                continue;
            }
            let len = if rng.percent(1) { 70_000 } else { rng.index(60) };
            let value = vec![rng.bits() as u8; len];
            entries.insert((key.clone(), Reverse(1 + rng.below(1000))), (kind, value));
        }
    }
    entries
}

const COMPRESSIONS: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd];

pub(super) fn config(rng: &mut Rng) -> TableConfig {
    TableConfig {
        block_bytes: *rng.pick(&[1, 64, 300, 4096]),
        filter_bits: *rng.pick(&[0.0, 0.5, 10.0]),
        filter_probes: None,
        compression: *rng.pick(&COMPRESSIONS),
        keyspace: 3,
        sync_bytes: 0,
        access: Access::Buffered,
    }
}

pub(super) fn write(
    storage: &MemoryStorage,
    entries: &Entries,
    config: TableConfig,
) -> FinishedTable {
    let path = Path::new(".").join(ID.file_name());
    let mut writer = TableWriter::create(storage, &path, ID, config).unwrap();
    for ((key, seq), (kind, value)) in entries {
        writer.add(key, seq.0, *kind, value).unwrap();
    }
    writer.finish(77, None).unwrap()
}

fn open(storage: &MemoryStorage, access: Access, finished: &FinishedTable) -> Arc<Table> {
    open_in(storage, access, finished, BufferPool::new(1 << 20))
}

pub(super) fn open_in(
    storage: &MemoryStorage,
    access: Access,
    finished: &FinishedTable,
    buffer: BufferPool,
) -> Arc<Table> {
    let environment = Arc::new(TableEnvironment {
        owner: Owner::this_process(),
        storage: Arc::new(storage.clone()),
        access,
        buffer,
        hot_records: crate::files::hot_records::HotRecords::new(0),
        warm: WarmSlots::default(),
        io_threads: IoThreads::new(2),
        io_rings: IoRings::default(),
        open_files: OpenFiles::new(None),
        ledger: Arc::new(MemoryLedger::default()),
        standalone_bytes_max: usize::MAX,
        counters: Arc::new(Counters::default()),
        clock: Arc::new(crate::base::clock::SystemClock),
        counts_accesses: std::sync::atomic::AtomicBool::new(false),
        discard: |environment, path| environment.storage.remove(path).unwrap(),
        not_removed: std::sync::Mutex::default(),
        opening_readers: crate::files::storage::OpeningReaders::default(),
        damage: std::sync::Mutex::default(),
    });
    Table::new(finished.id, Arc::clone(&finished.info), Path::new("."), &environment)
}

/// An entry of [`Entries`].
type Expected<'a> = (&'a (Vec<u8>, Reverse<SeqNo>), &'a (EntryKind, Vec<u8>));

fn assert_at(cursor: &TableCursor, expected: Option<Expected<'_>>) {
    assert_eq!(cursor.is_valid(), expected.is_some());
    if let Some(((key, seq), (kind, value))) = expected {
        assert_eq!((cursor.key(), cursor.seq(), cursor.kind()), (&key[..], seq.0, *kind));
        assert_eq!(cursor.value(), value);
        assert_eq!(cursor.pin_value(), *value);
    }
}

#[test]
fn tables_read_back_on_every_read_path() {
    let seed = seed_from_env(41);
    for round in 0..60 {
        let mut rng = Rng::new(seed + round);
        let (entries, config) = (random_entries(&mut rng), config(&mut rng));
        let storage = MemoryStorage::new(1);
        let finished = write(&storage, &entries, config);
        assert_eq!(finished.info.entries, entries.len() as u64);
        for access in READ_PATHS {
            let table = open(&storage, access, &finished);
            table.verify().unwrap();
            check_walks(&table, &entries);
            check_lookups(&table, &entries, &mut rng);
        }
    }
}

#[test]
fn blocks_of_small_entries_begin_with_pages_and_waste_little() {
    let seed = seed_from_env(47);
    for (block_bytes, value_len) in [(4096, 100), (4096, 20), (8192, 150), (4096, 700), (4000, 100)]
    {
        let mut rng = Rng::new(seed);
        let mut entries = Entries::new();
        for number in 0..3000u64 {
            let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec();
            let value = (0..value_len).map(|_| rng.bits() as u8).collect();
            entries.insert((key, Reverse(1 + rng.below(1 << 30))), (EntryKind::Value, value));
        }
        let config =
            TableConfig { block_bytes, compression: Compression::None, ..config(&mut rng) };
        let storage = MemoryStorage::new(1);
        let finished = write(&storage, &entries, config);
        let table = open(&storage, Access::Buffered, &finished);
        table.verify().unwrap();
        check_lookups(&table, &entries, &mut rng);
        let count = table.block_count().unwrap();
        let places: Vec<_> = (0..count).map(|number| table.block_place(number).unwrap()).collect();
        let aligned = places.iter().filter(|place| place.start % 4096 == 0).count();
        let data_bytes = places.last().unwrap().end;
        let waste = |used: u64| data_bytes as f64 / used as f64;
        let is_paged = block_bytes % 4096 == 0;
        if is_paged && value_len < 200 {
            assert_eq!(aligned, count, "{block_bytes} {value_len}");
            assert!(places.iter().all(|place| place.end - place.start <= block_bytes as u64));
        }
        if !is_paged {
            assert!(aligned < count / 10, "{aligned} of {count}");
        }
        // The entry, its place in the arrays, and the lengths; and, for each page, half of an
        // entry.
        let used = entries.len() as u64 * (8 + value_len as u64 + 9);
        assert!(waste(used) < 1.05, "{block_bytes} {value_len}: {}", waste(used));
    }
}

fn check_walks(table: &Arc<Table>, entries: &Entries) {
    let mut cursor = TableCursor::new(Arc::clone(table));
    cursor.seek_first().unwrap();
    for entry in entries {
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
}

fn check_lookups(table: &Arc<Table>, entries: &Entries, rng: &mut Rng) {
    let keys: Vec<_> = entries.keys().collect();
    let mut cursor = TableCursor::new(Arc::clone(table));
    for _ in 0..100 {
        let mut key = rng.pick(&keys).0.clone();
        match rng.below(3) {
            0 => key.push(0),
            1 => drop(key.pop()),
            _ => {}
        }
        let place = (key.clone(), Reverse(rng.below(1002)));
        let at = entries.range(place.clone()..).next();
        cursor.seek(&key, place.1.0).unwrap();
        assert_at(&cursor, at);
        cursor.seek_before(&key, place.1.0).unwrap();
        assert_at(&cursor, entries.range(..place.clone()).next_back());
        let expected = at.filter(|((found, _), _)| *found == key);
        let found = table.get(&key, place.1.0).unwrap();
        assert_eq!(found.as_ref().map(|found| found.seq), expected.map(|((_, seq), _)| seq.0));
        assert_eq!(
            found.map(|found| found.value.to_vec()),
            expected.map(|(_, (_, value))| value.clone())
        );
        assert!(expected.is_none() || table.may_contain(filter_hash(&key)).unwrap());
    }
}

#[test]
fn range_tombstones_are_part_of_the_table_and_its_range() {
    let storage = MemoryStorage::new(1);
    let path = Path::new(".").join(ID.file_name());
    let config = TableConfig {
        block_bytes: 4096,
        filter_bits: 10.0,
        filter_probes: None,
        compression: Compression::None,
        keyspace: 0,
        sync_bytes: 0,
        access: Access::Buffered,
    };
    let mut writer = TableWriter::create(&storage, &path, ID, config).unwrap();
    writer.add(b"m", 5, EntryKind::Value, b"x").unwrap();
    let fragment = |start: &[u8], end: Option<&[u8]>, seq| Fragment {
        start: start.into(),
        end: end.map(Into::into),
        seqs: vec![seq],
    };
    let fragments = [fragment(b"c", Some(b"d"), 9), fragment(b"x", None, 2)];
    fragments.iter().for_each(|fragment| writer.add_range_tombstone(fragment.clone()));
    let finished = writer.finish(77, Some(33)).unwrap();
    assert_eq!(finished.info.range.to_string(), "[c, ∞)");
    assert_eq!((finished.info.smallest_seq, finished.info.largest_seq), (2, 9));
    assert_eq!(finished.info.oldest_tombstone_micros, Some(33));
    let table = open(&storage, Access::Buffered, &finished);
    assert_eq!(table.fragments().unwrap()[..], fragments);
    assert_eq!(table.properties().unwrap().range_tombstones, 2);
    table.verify().unwrap();
}

/// A prefetched seek did not happen, because another source's seek failed. Its prefetched block
/// then misled a later seek for another key.
#[test]
fn a_key_that_is_approached_and_not_sought_leads_no_other_seek_astray() {
    let storage = MemoryStorage::new(1);
    let mut entries = Entries::new();
    for number in 0..100u64 {
        let key = format!("key{number:02}").into_bytes();
        entries.insert((key, Reverse(1)), (EntryKind::Value, vec![b'x'; 30]));
    }
    let config = TableConfig {
        block_bytes: 64,
        filter_bits: 0.0,
        filter_probes: None,
        compression: Compression::None,
        keyspace: 0,
        sync_bytes: 0,
        access: Access::Buffered,
    };
    let finished = write(&storage, &entries, config);
    let mut cursor = TableCursor::new(open(&storage, Access::Buffered, &finished));
    /// Runs the first `steps` of the three prefetch steps.
    fn prefetch(cursor: &mut TableCursor, key: &[u8], steps: usize) -> Result<()> {
        cursor.prefetch_index(key)?;
        if steps > 1 {
            cursor.prefetch_block(key)?;
        }
        if steps > 2 {
            cursor.prefetch_entry(key)?;
        }
        Ok(())
    }
    let between: [fn(&mut TableCursor) -> Result<()>; 7] = [
        |cursor| cursor.seek_first(),
        |cursor| cursor.seek_last(),
        |cursor| cursor.seek_before(b"key50", 1),
        |cursor| prefetch(cursor, b"key10", 1),
        |cursor| prefetch(cursor, b"key10", 2),
        |cursor| prefetch(cursor, b"key10", 3),
        |cursor| {
            cursor.forget_prefetch();
            Ok(())
        },
    ];
    for (step, steps) in between.iter().flat_map(|step| (1..=3).map(move |steps| (step, steps))) {
        prefetch(&mut cursor, b"key90", steps).unwrap();
        step(&mut cursor).unwrap();
        cursor.seek(b"key10", 1).unwrap();
        assert_eq!(cursor.key(), b"key10");
        prefetch(&mut cursor, b"key90", steps).unwrap();
        cursor.seek(b"key90", 1).unwrap();
        assert_eq!(cursor.key(), b"key90");
    }
}

#[test]
fn obsolete_tables_are_discarded_with_their_last_user() {
    let storage = MemoryStorage::new(1);
    let entries = random_entries(&mut Rng::new(1));
    let finished = write(&storage, &entries, config(&mut Rng::new(1)));
    let table = open(&storage, Access::Buffered, &finished);
    let mut cursor = TableCursor::new(Arc::clone(&table));
    cursor.seek_first().unwrap();
    table.make_obsolete();
    drop(table);
    assert_eq!(storage.list(Path::new(".")).unwrap().len(), 1);
    drop(cursor);
    assert!(storage.list(Path::new(".")).unwrap().is_empty());
}

#[test]
fn damage_of_parts_that_are_in_memory_is_found() {
    let storage = MemoryStorage::new(1);
    let path = Path::new(".").join(ID.file_name());
    let entries = random_entries(&mut Rng::new(2));
    let config = TableConfig { filter_bits: 10.0, ..config(&mut Rng::new(2)) };
    let finished = write(&storage, &entries, config);
    let table = open(&storage, Access::Buffered, &finished);
    table.verify().unwrap();
    let good = storage.read(&path).unwrap();
    let footer = table.opened().unwrap().footer;
    for handle in [footer.filter, footer.index, footer.properties] {
        let mut bad = good.clone();
        bad[handle.offset as usize + handle.len as usize / 2] ^= 1;
        storage.overwrite(&path, &bad).unwrap();
        let error = table.verify().unwrap_err();
        assert!(matches!(error, Error::Corruption(_)), "{error}");
    }
    storage.overwrite(&path, &good).unwrap();
    table.verify().unwrap();
}

#[test]
fn open_tables_take_their_memory_from_the_pool() {
    let storage = MemoryStorage::new(1);
    let entry = |number: u32| {
        ((number.to_be_bytes().to_vec(), Reverse(1)), (EntryKind::Value, vec![7; 50]))
    };
    let entries: Entries = (0..5000).map(entry).collect();
    let config = TableConfig { block_bytes: 1, ..config(&mut Rng::new(2)) };
    let finished = write(&storage, &entries, config);
    let table = open(&storage, Access::Buffered, &finished);
    table.properties().unwrap();
    let environment = &table.file.environment;
    let open = environment.ledger.tables.load(std::sync::atomic::Ordering::Relaxed);
    let capacity = environment.buffer.bytes().capacity;
    assert!(open > 40_000 && capacity + open <= 1 << 20, "{open} {capacity}");
}

/// A key, its sequence number and its value.
type Read = (Vec<u8>, SeqNo, Vec<u8>);

/// Reads all entries through every read path.
fn read_all(table: &Arc<Table>) -> Result<Vec<Read>> {
    let mut cursor = TableCursor::new(Arc::clone(table));
    let mut all = Vec::new();
    cursor.seek_first()?;
    while cursor.is_valid() {
        all.push((cursor.key().to_vec(), cursor.seq(), cursor.value().to_vec()));
        cursor.next()?;
    }
    for (key, seq, value) in &all {
        let found = table.may_contain(filter_hash(key))?;
        assert!(found, "the filter lost a key");
        assert_eq!(table.get(key, *seq)?.map(|found| found.value.to_vec()).as_ref(), Some(value));
    }
    table.fragments()?;
    Ok(all)
}

#[test]
fn flipped_and_cut_tables_give_right_answers_or_errors() {
    let storage = MemoryStorage::new(1);
    let mut rng = Rng::new(3);
    let mut entries = Entries::new();
    for number in 0..40u64 {
        let value = vec![rng.bits() as u8; rng.index(20)];
        entries.insert(
            (format!("key{number:03}").into_bytes(), Reverse(number)),
            (EntryKind::Value, value),
        );
    }
    for compression in COMPRESSIONS {
        let config = TableConfig {
            block_bytes: 200,
            filter_bits: 10.0,
            filter_probes: None,
            compression,
            keyspace: 0,
            sync_bytes: 0,
            access: Access::Buffered,
        };
        let finished = write(&storage, &entries, config);
        let path = Path::new(".").join(ID.file_name());
        let good = storage.read(&path).unwrap();
        let expected = read_all(&open(&storage, Access::Buffered, &finished)).unwrap();
        let mut refused = 0;
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            storage.overwrite(&path, &bad).unwrap();
            for access in READ_PATHS {
                match read_all(&open(&storage, access, &finished)) {
                    Ok(all) => assert_eq!(all, expected, "byte {at}"),
                    Err(error) => {
                        assert_eq!(
                            error.kind(),
                            crate::ErrorKind::Corruption,
                            "byte {at}: {error}"
                        );
                        refused += 1;
                    }
                }
            }
        }
        // Only the padding before the filter may go undetected.
        assert!(refused >= 2 * (good.len() - 64), "{refused} of {}", 2 * good.len());
        for len in 0..good.len() {
            storage.overwrite(&path, &good[..len]).unwrap();
            assert!(read_all(&open(&storage, Access::Buffered, &finished)).is_err());
        }
        storage.remove(&path).unwrap();
    }
}

/// A table of many small blocks, and a pool with memory for `capacity` bytes of them.
pub(super) fn long_table(
    storage: &MemoryStorage,
    compression: Compression,
    access: Access,
    capacity: u64,
) -> (Entries, FinishedTable, Arc<Table>) {
    let entry = |number: u32| {
        let key = (format!("key{number:06}").into_bytes(), Reverse(1));
        (key, (EntryKind::Value, vec![number as u8; 100]))
    };
    let entries: Entries = (0..10_000).map(entry).collect();
    let config = TableConfig { compression, block_bytes: 500, ..config(&mut Rng::new(1)) };
    let finished = write(storage, &entries, config);
    let table = open_in(storage, access, &finished, BufferPool::new(capacity));
    (entries, finished, table)
}

/// Walks from the first entry, and compares with `entries` up to the end or the first error.
fn walk_until_error(table: &Arc<Table>, entries: &Entries) -> (usize, Option<Error>) {
    let mut cursor = TableCursor::new(Arc::clone(table));
    let mut moved = cursor.seek_first();
    for (count, entry) in entries.iter().enumerate() {
        if let Err(error) = moved {
            return (count, Some(error));
        }
        assert_at(&cursor, Some(entry));
        moved = cursor.next_key();
    }
    assert_at(&cursor, None);
    (entries.len(), moved.err())
}

#[test]
fn long_scans_read_ahead_whether_or_not_there_is_memory() {
    for (compression, access, capacity) in [
        (Compression::None, Access::Buffered, 0),
        (Compression::Lz4, Access::Buffered, 0),
        (Compression::None, Access::Direct, 64 << 20),
        (Compression::Lz4, Access::Buffered, 64 << 20),
        (Compression::Zstd, Access::Buffered, 0),
        (Compression::Zstd, Access::Buffered, 64 << 20),
    ] {
        let storage = MemoryStorage::new(1);
        let (entries, _, table) = long_table(&storage, compression, access, capacity);
        for _ in 0..2 {
            let (count, error) = walk_until_error(&table, &entries);
            assert!(count == entries.len() && error.is_none(), "{error:?}");
        }
        let blocks = table.block_count().unwrap();
        let resident = (0..blocks).filter(|&block| table.is_block_resident(block)).count();
        // A scan fills free memory, but takes no memory from others.
        assert_eq!(resident == blocks, capacity > 0, "{resident} of {blocks}");
        check_walks(&table, &entries);
        check_lookups(&table, &entries, &mut Rng::new(1));
    }
}

/// Each table of a run began with single blocks, and grew its read-ahead anew.
#[test]
fn a_scan_continues_its_read_ahead_in_the_next_table() {
    let storage = MemoryStorage::new(1);
    let (entries, _, table) = long_table(&storage, Compression::None, Access::Buffered, 0);
    let first_read = |mut pace| {
        let mut cursor = TableCursor::new(Arc::clone(&table));
        let before = table.counters().get(Counter::TableBytesRead);
        cursor.continue_scan(&mut pace);
        cursor.seek_first().unwrap();
        assert_eq!(Some(cursor.key()), entries.keys().next().map(|(key, _)| &**key));
        (table.counters().get(Counter::TableBytesRead) - before, cursor)
    };
    let (one_block, mut cursor) = first_read(None);
    while cursor.is_valid() {
        cursor.next().unwrap();
    }
    let (window, _) = first_read(cursor.take_scan_pace());
    // The first read includes the index.
    assert!(window > one_block + (100 << 10), "{window} bytes after {one_block}");
}

#[test]
fn damage_surfaces_when_a_scan_reaches_it_and_not_when_it_is_read_ahead() {
    for capacity in [0, 64 << 20] {
        let storage = MemoryStorage::new(1);
        let (entries, finished, table) =
            long_table(&storage, Compression::None, Access::Buffered, capacity);
        let path = table.path().to_owned();
        let good = storage.read(&path).unwrap();
        let mut first_keys = Vec::new();
        for number in (0..table.block_count().unwrap()).step_by(171) {
            let key = table.separator(number).unwrap();
            first_keys.push((number, table.block_place(number).unwrap(), key));
        }
        for (number, place, separator) in first_keys {
            let mut bad = good.clone();
            bad[place.start as usize + 40] ^= 1;
            storage.overwrite(&path, &bad).unwrap();
            let pool = BufferPool::new(capacity);
            let table = open_in(&storage, Access::Buffered, &finished, pool);
            let (count, error) = walk_until_error(&table, &entries);
            let before = entries.keys().filter(|(key, _)| *key < separator).count();
            assert_eq!(count, before, "block {number}");
            match error.unwrap() {
                Error::Corruption(error) => {
                    assert_eq!((&*error.path, error.offset), (&*path, Some(place.start)));
                }
                other => panic!("{other}"),
            }
        }
    }
}
