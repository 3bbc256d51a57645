#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests damage files behind the back of the storage"
)]

use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use terrane_policy::Compression;
use terrane_testkit::Rng;

use super::super::tests::{Entries, config, write};
use super::super::writer::TableConfig;
use super::super::{Table, TableEnvironment};
use super::*;
use crate::base::error::ErrorKind;
use crate::base::types::{EntryKind, MAX_SEQ};
use crate::files::buffer::{BufferPool, pin};
use crate::files::io_rings::IoRings;
use crate::files::io_threads::IoThreads;
use crate::files::storage::{Access, DiskStorage, MemoryStorage};

fn key(number: u32) -> Vec<u8> {
    format!("{number:06}").into_bytes()
}

/// A table with hundreds of blocks on a disk, none of which is in memory.
struct OnDisk {
    table: Arc<Table>,
    path: PathBuf,
    _dir: TempDir,
}

fn on_disk(compression: Compression, access: Access) -> OnDisk {
    with_rings(compression, access, IoRings::default())
}

fn with_rings(compression: Compression, access: Access, io_rings: IoRings) -> OnDisk {
    let mut entries = Entries::new();
    for number in 0..4000u32 {
        let value = format!("{number}").repeat(10).into_bytes();
        entries.insert((key(number), Reverse(7)), (EntryKind::Value, value));
    }
    let config = TableConfig { block_bytes: 500, compression, ..config(&mut Rng::new(1)) };
    let storage = MemoryStorage::new(1);
    let finished = write(&storage, &entries, config);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(finished.id.file_name());
    fs::write(&path, storage.read(&Path::new(".").join(finished.id.file_name())).unwrap()).unwrap();
    let alone = TableEnvironment::alone(Arc::new(DiskStorage), access, BufferPool::new(1 << 20));
    let io_threads = IoThreads::new(2);
    let environment = Arc::new(TableEnvironment { io_threads, io_rings, ..alone });
    let table = Table::new(finished.id, Arc::clone(&finished.info), dir.path(), &environment);
    OnDisk { table, path, _dir: dir }
}

impl OnDisk {
    fn has_rings(&self) -> bool {
        self.table.file.environment.io_rings.lease().is_some()
    }

    /// Changes a byte of a block in the file.
    fn damage(&self, number: usize) {
        let place = self.table.block_place(number).unwrap();
        let mut bytes = fs::read(&self.path).unwrap();
        bytes[place.start as usize + 3] ^= 1;
        fs::write(&self.path, bytes).unwrap();
    }

    fn load(&self, numbers: &[usize]) -> Vec<BlockRef> {
        load_together(numbers.iter().map(|number| (&self.table, *number))).unwrap()
    }
}

#[test]
fn blocks_that_are_read_together_are_those_that_are_read_individually() {
    for compression in [Compression::None, Compression::Lz4] {
        for access in [Access::Buffered, Access::Direct] {
            let disk = on_disk(compression, access);
            if !disk.has_rings() {
                return;
            }
            let numbers: Vec<usize> = (0..200).map(|number| number * 7 % 311).collect();
            let loaded = disk.load(&numbers);
            assert_eq!(loaded.len(), numbers.len());
            let (opened, other) = (disk.table.opened().unwrap(), on_disk(compression, access));
            for (number, block) in numbers.iter().zip(&loaded) {
                assert!(block[..] == other.table.block(*number).unwrap()[..], "{number}");
                assert!(opened.slots.get(data_slot(*number), &pin()).is_some(), "{number}");
            }
            // They are in memory now.
            assert_eq!(disk.load(&numbers).len(), 0);
        }
    }
}

#[test]
fn what_cannot_be_read_is_left_to_whoever_needs_it() {
    let disk = on_disk(Compression::None, Access::Buffered);
    if !disk.has_rings() {
        return;
    }
    disk.damage(5);
    let opened = disk.table.opened().unwrap();
    let by_another = opened.slots.begin_load(data_slot(9)).unwrap();
    assert!(opened.slots.begin_load(data_slot(9)).is_none());
    assert_eq!(disk.load(&[4, 5, 6, 9, 4, 1 << 20]).len(), 2);
    drop(by_another);
    assert_eq!(disk.load(&[9]).len(), 1);
    let error = disk.table.block(5).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    // Nobody waits for the damaged block, and the file ends within the last one.
    let (last, len) = (disk.table.block_count().unwrap() - 1, disk.table.block_place(300).unwrap());
    let file = fs::OpenOptions::new().write(true).open(&disk.path).unwrap();
    file.set_len(len.start + 10).unwrap();
    assert_eq!(disk.load(&[5, 299, 300, last]).len(), 1);
    // Block 5 was read three times. What was not read is not damaged.
    assert_eq!(disk.table.counters().get(Counter::DamagedReads), 3);
    assert_eq!(disk.table.block(300).unwrap_err().kind(), ErrorKind::Io);
}

/// Seeks as a cursor with several sources does.
fn seek(disks: &[OnDisk], key: &[u8]) -> Vec<Vec<u8>> {
    let cursor = |disk: &OnDisk| TableCursor::new(Arc::clone(&disk.table));
    let mut cursors: Vec<TableCursor> = disks.iter().map(cursor).collect();
    cursors.iter_mut().for_each(|cursor| cursor.prefetch_index(key).unwrap());
    cursors.iter_mut().for_each(|cursor| cursor.prefetch_block(key).unwrap());
    read_for_seek(cursors.iter_mut());
    cursors.iter_mut().for_each(|cursor| cursor.prefetch_entry(key).unwrap());
    let found = cursors.iter_mut().map(|cursor| {
        cursor.seek(key, MAX_SEQ).unwrap();
        let mut found = cursor.key().to_vec();
        cursor.next().unwrap();
        found.extend_from_slice(cursor.key());
        found
    });
    found.collect()
}

#[test]
fn seeks_that_read_together_find_their_entries() {
    // One cursor reads alone; without rings, threads read.
    for count in [1, 2, 5] {
        let counted = [IoRings::default, IoRings::none].map(|rings| {
            let disk = |_| with_rings(Compression::None, Access::Buffered, rings());
            let disks: Vec<OnDisk> = (0..count).map(disk).collect();
            for number in [17, 2000, 3998, 5, 2001] {
                let expected = [key(number), key(number + 1)].concat();
                assert_eq!(seek(&disks, &key(number)), vec![expected; count]);
            }
            let counters = [Counter::DataUses, Counter::TableBytesRead];
            counters.map(|counter| {
                disks.iter().map(|disk| disk.table.counters().get(counter)).sum::<u64>()
            })
        });
        assert_eq!(counted[0], counted[1]);
    }
}
