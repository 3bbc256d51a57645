//! What a memtable says of its memory is what the allocator gave it.
#![cfg(not(any(loom, miri)))]
#![allow(missing_docs, reason = "tests")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use terrane_memtable::{Config, EntryKind, HashView, MAX_SEQ, Memtable, Pool, VectorQuery};
use terrane_testkit::Rng;

/// The allocator of the system, with the bytes that are in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const KINDS: &[(&str, Config)] = &[
    ("skiplist", Config::SkipList { branching: 4, height: 12 }),
    ("btree", Config::BTree),
    ("vector", Config::Vector { prealloc_bytes: 0, query: VectorQuery::Resort }),
    ("vector that copies", Config::Vector { prealloc_bytes: 0, query: VectorQuery::Copy }),
    (
        "preallocated vector",
        Config::Vector { prealloc_bytes: 3_000_000, query: VectorQuery::Resort },
    ),
    ("vector that scans", Config::Vector { prealloc_bytes: 0, query: VectorQuery::Scan }),
    (
        "preallocated vector that scans",
        Config::Vector { prealloc_bytes: 3_000_000, query: VectorQuery::Scan },
    ),
    ("hash vector", Config::HashVector { prefix: 255, buckets: 20_000, view: HashView::Kept }),
    (
        "hash vector of long chains",
        Config::HashVector { prefix: 2, buckets: 5, view: HashView::Kept },
    ),
    ("hash skip-list", hash_skip_list(6, 20_000)),
    ("hash skip-list of one bucket", hash_skip_list(0, 1)),
    (
        "hash linked-list",
        Config::HashLinkedList { prefix: 4, buckets: 5000, threshold: 20, view: HashView::Kept },
    ),
];

const fn hash_skip_list(prefix: usize, buckets: usize) -> Config {
    Config::HashSkipList { prefix, buckets, height: 12, view: HashView::Kept }
}

/// Beside the share of an error, what is not worth counting: the lists of chunks.
const SLACK_BYTES: usize = 512;

fn check(kind: &str, when: &str, memtable: &Memtable, before: usize, data_bytes: usize) {
    let taken = IN_USE.load(Ordering::Relaxed) - before;
    let memory = memtable.memory();
    assert_eq!(memory.data_bytes, data_bytes, "{kind} {when}");
    assert_eq!(
        memory.total_bytes(),
        memory.data_bytes + memory.metadata_bytes + memory.unused_bytes
    );
    let off = memory.total_bytes().abs_diff(taken);
    assert!(
        off <= taken / 50 + SLACK_BYTES,
        "{kind} {when}: says {} of {taken} bytes, {memory:?}",
        memory.total_bytes()
    );
}

fn check_kind(kind: &str, config: Config) {
    let pool = Pool::new(0);
    let before = IN_USE.load(Ordering::Relaxed);
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
    let left = IN_USE.load(Ordering::Relaxed) - before;
    assert!(left <= SLACK_BYTES, "{kind} leaves {left} bytes");
}

/// One test, for the allocator is shared by all threads.
#[test]
fn memory_is_what_the_allocator_gave() {
    for (kind, config) in KINDS {
        check_kind(kind, *config);
    }
}
