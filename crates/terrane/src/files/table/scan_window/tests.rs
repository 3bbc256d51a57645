//! Tests of what scans learn and read.

use std::cmp::Reverse;
use std::time::Duration;

use terrane_policy::Compression;
use terrane_testkit::Rng;

use super::super::tests::{config, long_table, open_in, write};
use super::super::writer::TableConfig;
use super::*;
use crate::base::types::EntryKind;
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
    for _ in 0..128 {
        slow_down(&first);
        slow_down(&second);
        let mut window = ScanWindow::default();
        (count - 30..count)
            .for_each(|number| drop(window.block(&first, number, Toward::End).unwrap()));
        let pace = window.take_pace(count).unwrap();
        let mut window = ScanWindow::continuing(&second, pace).unwrap();
        (0..60).for_each(|number| drop(window.block(&second, number, Toward::End).unwrap()));
    }
    // 90 blocks in all, of which 60 are in the second table.
    let read = scan(&first, 0..1, Toward::End).len();
    assert!((90..120).contains(&read), "{read} blocks");
}

/// Blocks that are in memory need no read, so the lengths on both sides of them count separately.
#[test]
fn a_gap_ends_a_run_of_blocks() {
    let table = slow_table();
    for _ in 0..128 {
        slow_down(&table);
        let mut window = ScanWindow::default();
        for start in [0, 200, 400] {
            (start..start + 8)
                .for_each(|number| drop(window.block(&table, number, Toward::End).unwrap()));
        }
    }
    assert!(scan(&table, 0..1, Toward::End).len() <= 9);
}

/// A scan that came to the end of its run used to be forgotten.
#[test]
fn a_scan_to_the_end_of_the_last_table_counts() {
    let table = slow_table();
    let count = table.block_count().unwrap();
    for _ in 0..128 {
        slow_down(&table);
        let mut window = ScanWindow::default();
        (count - 90..count)
            .for_each(|number| drop(window.block(&table, number, Toward::End).unwrap()));
        drop(window.take_pace(count).unwrap());
    }
    let read = scan(&table, 0..1, Toward::End).len();
    assert!((90..120).contains(&read), "{read} blocks");
}

/// A block that another thread reads for a seek was not counted, so that scans from seeks never learned.
#[test]
fn seeks_learn_from_short_plans_and_keep_what_they_read() {
    let table = slow_table();
    // Single blocks first, so that seeks read one.
    for start in 0..256 {
        scan(&table, start..start + 1, Toward::End);
    }
    for start in 0..256 {
        slow_down(&table);
        let mut window = ScanWindow::default();
        if !window.start(&table, start) {
            // As a cursor does, which gets the block from the thread.
            window.note(&table, start, Toward::End).unwrap();
        }
        (start + 1..start + 90).for_each(|n| drop(window.block(&table, n, Toward::End).unwrap()));
        // Another seek to a block that was read ahead does not read it again.
        if window.covers(start + 89) {
            assert!(window.start(&table, start + 89) && window.covers(start + 89));
        }
    }
    let read = scan(&table, 0..1, Toward::End).len();
    assert!((90..120).contains(&read), "{read} blocks");
    let mut window = ScanWindow::default();
    slow_down(&table);
    assert!(window.start(&table, 500));
    window.forget_start();
    assert!(window.run.is_none() && window.coming.is_empty());
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
