//! Tests of what scans learn and read.

use std::cmp::Reverse;
use std::time::Duration;

use terrane_policy::Compression;
use terrane_testkit::Rng;

use super::super::cursor::TableCursor;
use super::super::tests::{config, long_table, open_in, write};
use super::super::together::read_for_seek;
use super::super::writer::TableConfig;
use super::*;
use crate::base::types::{EntryKind, MAX_SEQ};
use crate::files::buffer::BufferPool;
use crate::files::storage::{Access, MemoryStorage};

/// A table with hundreds of blocks of about 500 bytes, whose reads appear to be slow.
fn slow_table() -> Arc<Table> {
    let storage = MemoryStorage::new(1);
    long_table(&storage, Compression::None, Access::Buffered, 0).2
}

/// Makes reads appear to be slow.
fn slow_down(table: &Table) {
    (0..8).for_each(|_| {
        table.io_threads().read_alone(|| std::thread::sleep(Duration::from_micros(30)));
    });
}

/// Repeats scans until later ones have learned their lengths.
fn learn(table: &Table, scan: impl Fn(&mut ScanWindow)) {
    for _ in 0..128 {
        slow_down(table);
        scan(&mut ScanWindow::default());
    }
}

fn read(window: &mut ScanWindow, table: &Arc<Table>, blocks: Range<usize>) {
    for number in blocks {
        window.block(table, number, Toward::End).unwrap();
    }
}

/// Reads blocks as a scan does, and returns the blocks that it read with the first one.
fn scan(table: &Arc<Table>, blocks: Range<usize>, toward: Toward) -> Range<usize> {
    slow_down(table);
    let mut window = ScanWindow::default();
    let mut first = None;
    let numbers: Vec<_> = match toward {
        Toward::End => blocks.collect(),
        Toward::Start => blocks.rev().collect(),
    };
    for number in numbers {
        let block = window.block(table, number, toward).unwrap();
        assert_eq!(block[..], table.block(number).unwrap()[..]);
        let read = window.current.as_ref().map(|blocks| blocks.numbers.clone());
        first.get_or_insert(read.unwrap_or(number..number + 1));
    }
    first.unwrap()
}

#[test]
fn scans_read_at_once_what_scans_before_them_needed() {
    let table = slow_table();
    let bytes = |blocks: Range<usize>| {
        let [start, end] = [blocks.start, blocks.end - 1].map(|n| table.block_place(n).unwrap());
        end.end - start.start
    };
    for toward in [Toward::End, Toward::Start] {
        for (needed, least, most) in
            [(90, 44 << 10, 49 << 10), (1, 0, 5 << 10), (20, 9 << 10, 13 << 10)]
        {
            for start in 0..128 {
                scan(&table, start..start + needed, toward);
            }
            let blocks = scan(&table, 200..200 + needed, toward);
            assert!(blocks.start == 200 || blocks.end == 200 + needed, "{blocks:?}");
            let read = bytes(blocks);
            assert!((least..=most).contains(&read), "{read} bytes for {needed} blocks");
        }
    }
}

#[test]
fn the_length_of_a_scan_does_not_end_with_its_table() {
    let (first, second) = (slow_table(), slow_table());
    first.enter(0, &Arc::default());
    second.enter(0, first.file.scan_lengths());
    let count = first.block_count().unwrap();
    learn(&first, |window| {
        slow_down(&second);
        read(window, &first, count - 30..count);
        let pace = window.take_pace(count).unwrap();
        read(&mut ScanWindow::continuing(&second, pace).unwrap(), &second, 0..60);
    });
    // 90 blocks in all, of which 60 are in the second table.
    let found = scan(&first, 0..1, Toward::End).len();
    assert!((90..120).contains(&found), "{found} blocks");
}

/// A few blocks in memory are read across, because a new read would cost more; many end the run.
#[test]
fn a_run_ends_at_a_wide_gap() {
    for (gap, least, most) in [(20, 60, 80), (200, 1, 9)] {
        let table = slow_table();
        learn(&table, |window| {
            for start in [0, 8 + gap, 2 * (8 + gap)] {
                read(window, &table, start..start + 8);
            }
        });
        let found = scan(&table, 0..1, Toward::End).len();
        assert!((least..=most).contains(&found), "{found} blocks with gaps of {gap}");
    }
}

/// A scan that came to the end of its run used to be forgotten.
#[test]
fn a_scan_to_the_end_of_the_last_table_counts() {
    let table = slow_table();
    let count = table.block_count().unwrap();
    learn(&table, |window| {
        read(window, &table, count - 90..count);
        drop(window.take_pace(count).unwrap());
    });
    let found = scan(&table, 0..1, Toward::End).len();
    assert!((90..120).contains(&found), "{found} blocks");
}

/// Seeks as a cursor with several sources does, and reads up to the first entry of block `end`.
fn seek_and_read(table: &Arc<Table>, blocks: Range<usize>) {
    slow_down(table);
    let [key, end] = [blocks.start, blocks.end].map(|number| table.separator(number).unwrap());
    let mut cursor = TableCursor::new(Arc::clone(table));
    cursor.prefetch_index(&key).unwrap();
    cursor.prefetch_block(&key).unwrap();
    read_for_seek(std::iter::once(&mut cursor));
    cursor.prefetch_entry(&key).unwrap();
    cursor.seek(&key, MAX_SEQ).unwrap();
    while cursor.key() < &end[..] {
        cursor.next().unwrap();
    }
}

/// A block that another thread reads for a seek was not counted, so that scans after seeks never learned.
#[test]
fn scans_after_seeks_learn_their_lengths() {
    let table = slow_table();
    // Single blocks first, so that a seek reads one.
    learn(&table, |window| read(window, &table, 7..8));
    slow_down(&table);
    assert_eq!(ScanWindow::default().plan(&table, 7), Some(7..8));
    for first in 0..128 {
        seek_and_read(&table, first..first + 90);
    }
    let found = scan(&table, 0..1, Toward::End).len();
    assert!((90..120).contains(&found), "{found} blocks");
}

/// Otherwise the few long scans would decide how much every seek reads.
#[test]
fn seeks_that_need_one_block_count() {
    let table = slow_table();
    learn(&table, |window| read(window, &table, 7..8));
    for first in 0..128 {
        (0..8).for_each(|_| seek_and_read(&table, first..first));
        slow_down(&table);
        // Few enough that the quick reads of this storage still count as slow at the end.
        read(&mut ScanWindow::default(), &table, first..first + 40);
        slow_down(&table);
        let planned = ScanWindow::default().plan(&table, first);
        assert_eq!(planned, Some(first..first + 1), "after {first} long scans");
    }
}

#[test]
fn a_seek_to_a_block_that_is_being_read_does_not_read_it_again() {
    let table = slow_table();
    learn(&table, |window| read(window, &table, 0..90));
    let mut window = ScanWindow::default();
    slow_down(&table);
    let planned = window.plan(&table, 100).unwrap();
    assert!(planned.len() > 80, "{planned:?}");
    window.begin(&table, planned);
    assert_eq!(window.plan(&table, 180), None);
    assert!(window.covers(100) && window.coming.len() == 1);
    window.forget_start();
    assert!(window.run.is_none() && window.coming.is_empty());
}

/// Each block was read with those after it, which the scan had read before.
#[test]
fn a_backward_scan_reads_each_block_about_once() {
    let table = slow_table();
    learn(&table, |window| read(window, &table, 0..90));
    let mut cursor = TableCursor::new(Arc::clone(&table));
    let before = table.counters().get(Counter::TableBytesRead);
    cursor.seek_last().unwrap();
    while cursor.is_valid() {
        cursor.previous().unwrap();
    }
    let read = table.counters().get(Counter::TableBytesRead) - before;
    let size = table.info().size_bytes;
    assert!(read < size + size / 4, "{read} bytes of {size}");
}

/// A window extended over a large value that begins near the end of the read.
#[test]
fn large_blocks_are_not_read_with_small_ones() {
    let entry = |number: u32| {
        let value = vec![1; if number == 40 { 1 << 20 } else { 100 }];
        ((format!("key{number:06}").into_bytes(), Reverse(1)), (EntryKind::Value, value))
    };
    let storage = MemoryStorage::new(1);
    let config = TableConfig {
        compression: Compression::None,
        block_bytes: 500,
        ..config(&mut Rng::new(1))
    };
    let finished = write(&storage, &(0..80).map(entry).collect(), config);
    let table = open_in(&storage, Access::Buffered, &finished, BufferPool::new(0));
    let count = table.block_count().unwrap();
    let len = |number| table.block_place(number).map(|place| place.end - place.start).unwrap();
    let large = (0..count).find(|&number| len(number) > 1 << 20).unwrap();
    for bytes in [1, 5_000, 64 << 10] {
        let (before, taken) = table.blocks_within(0, Toward::End, bytes).unwrap();
        assert!(before.end <= large && taken < 20_000, "{before:?} with {taken} bytes");
        let (after, taken) = table.blocks_within(count - 1, Toward::Start, bytes).unwrap();
        assert!(after.start > large && taken < 20_000, "{after:?} with {taken} bytes");
        assert_eq!(table.blocks_within(large, Toward::End, bytes).unwrap().0, large..large + 1);
    }
}
