//! The reported memory of a memtable is the memory that the allocator gave it.
#![cfg(not(any(loom, miri)))]
#![allow(missing_docs, reason = "tests")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use terrane_memtable::{
    BTreeConfig, Config, EntryKind, FrontLevel, HashVectorConfig, HashView, MAX_SEQ, Memtable,
    Pages, Pool, VectorConfig, VectorQuery,
};
use terrane_testkit::Rng;

/// The system allocator, with the bytes in use and the number of allocations.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static ASKED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all calls go to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        ASKED.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of the system allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of the system allocator.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the bytes in use, with those that come from the system directly.
fn in_use() -> usize {
    IN_USE.load(Ordering::Relaxed) + Pages::total_bytes()
}

/// Bytes that are not counted, in addition to the relative error: the lists of chunks, and
/// allocations of the test's thread.
const SLACK_BYTES: usize = 4096;

fn check(kind: &str, when: &str, memtable: &Memtable, before: usize, data_bytes: usize) {
    let taken = in_use() - before;
    let memory = memtable.memory();
    assert_eq!(memory.data_bytes, data_bytes, "{kind} {when}");
    assert_eq!(
        memory.total_bytes(),
        memory.data_bytes + memory.metadata_bytes + memory.unused_bytes
    );
    let off = memory.total_bytes().abs_diff(taken);
    assert!(
        off <= taken / 50 + SLACK_BYTES,
        "{kind} {when}: reports {} of {taken} bytes, {memory:?}",
        memory.total_bytes()
    );
}

fn check_kind(kind: &str, config: Config) {
    let pool = Pool::new(0);
    let before = in_use();
    let memtable = Memtable::new(config, &pool);
    check(kind, "when empty", &memtable, before, 0);
    let mut rng = Rng::new(1);
    let mut data_bytes = 0;
    for seq in 1..=60_000u64 {
        let key = (rng.bits() % 4_000_000_000).to_string();
        let len = if rng.percent(1) { rng.index(5000) } else { rng.index(80) };
        memtable.insert(key.as_bytes(), seq, EntryKind::Value, &[7; 5000][..len]);
        data_bytes += key.len() + len;
        if seq.is_power_of_two() || seq % 20_000 == 0 {
            check(kind, "while it is filled", &memtable, before, data_bytes);
            memtable.get(key.as_bytes(), MAX_SEQ);
            check(kind, "after a lookup", &memtable, before, data_bytes);
        }
    }
    let mut cursor = memtable.cursor();
    cursor.seek_first();
    check(kind, "while it is read in order", &memtable, before, data_bytes);
    drop(cursor);
    check(kind, "after it was read in order", &memtable, before, data_bytes);
    memtable.freeze();
    check(kind, "when frozen", &memtable, before, data_bytes);
    assert_eq!(Arc::strong_count(&memtable), 1);
    drop(memtable);
    // The thread that runs the tests may have freed a little since.
    let left = in_use().saturating_sub(before);
    assert!(left <= SLACK_BYTES, "{kind} leaves {left} bytes");
}

/// Threads insert while another reads the reported memory, which lies between the allocator's
/// numbers before and after, except for allocations that a thread has not counted yet.
fn check_threads(kind: &str, config: Config) {
    const THREADS: u64 = 3;
    const EACH: u64 = 20_000;
    /// Large, so that uncounted allocations are a small share.
    const VALUE_BYTES: usize = 2000;
    /// One uncounted chunk for each thread, and the threads themselves.
    const ON_THE_WAY_BYTES: usize = (THREADS as usize + 1) << 20;
    let pool = Pool::new(0);
    let before = in_use();
    let memtable = Memtable::new(config, &pool);
    let inserted = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (memtable, inserted) = (&memtable, &inserted);
            scope.spawn(move || {
                let mut rng = Rng::new(thread);
                for step in 0..EACH {
                    // Some keys are written repeatedly.
                    let keys = if rng.percent(20) { 100 } else { 40_000_000 };
                    let key = rng.below(keys).to_string();
                    let len = rng.index(VALUE_BYTES);
                    let seq = 1 + step * THREADS + thread;
                    let horizon = || seq.saturating_sub(1000);
                    memtable.update(
                        key.as_bytes(),
                        seq,
                        EntryKind::Value,
                        &[7; VALUE_BYTES][..len],
                        horizon,
                    );
                    if step % 512 == 0 {
                        memtable.front_level().map(FrontLevel::drain);
                    }
                }
                inserted.fetch_add(1, Ordering::Relaxed);
            });
        }
        while inserted.load(Ordering::Relaxed) < THREADS as usize {
            let least = in_use() - before;
            let said = memtable.memory().total_bytes();
            let most = in_use() - before;
            let is_between = said + least / 50 + ON_THE_WAY_BYTES >= least
                && said <= most + most / 50 + ON_THE_WAY_BYTES;
            assert!(is_between, "{kind}: reports {said}, but has {least} to {most}");
            memtable.get(b"7", MAX_SEQ);
            // Copies are slow, and the other check counts them.
            if !kind.contains("copies") {
                let mut cursor = memtable.cursor();
                cursor.seek(b"9", MAX_SEQ);
            }
        }
    });
    for when in ["after threads", "frozen after threads"] {
        let taken = in_use() - before;
        let said = memtable.memory().total_bytes();
        let off = said.abs_diff(taken);
        assert!(off <= taken / 50 + SLACK_BYTES, "{kind} {when}: reports {said} of {taken}");
        memtable.freeze();
    }
}

/// If no view is kept, a lookup in a chain creates none, however long the chain is.
fn check_lookups_that_copy() {
    let config =
        Config::HashVector(HashVectorConfig { prefix: 0, buckets: 1, view: HashView::Copy });
    let memtable = Memtable::new(config, &Pool::new(0));
    for seq in 1..=2000_u64 {
        memtable.insert(&seq.to_be_bytes(), seq, EntryKind::Value, b"value");
    }
    let before = ASKED.load(Ordering::Relaxed);
    for seq in [1, 1000, 2000_u64] {
        assert_eq!(memtable.get(&seq.to_be_bytes(), MAX_SEQ).map(|entry| entry.seq), Some(seq));
    }
    assert_eq!(memtable.get(b"none", MAX_SEQ), None);
    assert_eq!(ASKED.load(Ordering::Relaxed), before, "lookups took memory");
}

/// Freezing sorts unsorted entries, and later reads do not sort them again.
fn check_sorting() {
    let config = Config::Vector(VectorConfig { prealloc_bytes: 0, query: VectorQuery::Resort });
    let memtable = Memtable::new(config, &Pool::new(0));
    for seq in 1..=20_000_u64 {
        let key = seq.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        memtable.insert(&key, seq, EntryKind::Value, b"value");
    }
    let filled = memtable.memory().used_bytes();
    memtable.freeze();
    let frozen = memtable.memory().used_bytes();
    // A view takes more per entry than a pointer.
    assert!(frozen >= filled + 20_000 * size_of::<u64>(), "{filled} and {frozen}");
    let mut cursor = memtable.cursor();
    cursor.seek_first();
    assert_eq!(memtable.memory().used_bytes(), frozen);
}

/// Deleted ranges, with keys of several lengths. The overhead of their map depends on the order of
/// inserts, so the estimate is only roughly right.
fn check_range_tombstones() {
    for (key_len, count) in [(8, 10_000_u64), (40, 3000), (1000, 500)] {
        for is_ordered in [true, false] {
            let pool = Pool::new(0);
            let before = in_use();
            let memtable = Memtable::new(Config::BTree(BTreeConfig), &pool);
            for seq in 1..=count {
                let place =
                    if is_ordered { seq } else { seq.wrapping_mul(0x9e37_79b9) % (1 << 32) };
                let mut start = vec![0; key_len];
                start[..8].copy_from_slice(&(place << 8).to_be_bytes());
                let mut end = start.clone();
                end[7] = 1;
                memtable.insert_range_tombstone(&start, Some(&end), seq, seq);
            }
            let taken = in_use() - before;
            let said = memtable.memory().total_bytes();
            let off = said.abs_diff(taken);
            assert!(off <= taken / 8, "{key_len}: reports {said} of {taken}");
        }
    }
}

/// One test, because all threads share the allocator.
#[test]
fn memory_is_what_the_allocator_gave() {
    // Linear searches of this many entries take minutes.
    let is_linear =
        |kind: &str| ["of height 1", "that stays linked"].iter().any(|name| kind.contains(name));
    for (kind, config) in Config::examples().filter(|(kind, _)| !is_linear(kind)) {
        check_kind(&kind, config);
        check_threads(&kind, config);
    }
    check_lookups_that_copy();
    check_sorting();
    check_range_tombstones();
}
