//! The reported memory of a FloDB memtable is the memory that the allocator gave it.
#![cfg(not(any(loom, miri)))]
#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_types, reason = "tests")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

use terrane_memtable::{
    Config, DrainInsert, EntryKind, FloDbConfig, LowerLevel, Memtable, Pages, Pool, Update,
};

struct Counting;

static ALLOCATED: AtomicIsize = AtomicIsize::new(0);

// SAFETY: all calls go to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of the system allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of the system allocator.
        unsafe { System.dealloc(start, layout) };
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocated() -> isize {
    ALLOCATED.load(Ordering::Relaxed) + Pages::total_bytes() as isize
}

#[test]
fn memory_is_what_the_allocator_gave() {
    let pool = Pool::new(0);
    let sizes = [(0, 100), (100, 10), (5000, 256), (20_000, 30)];
    let levels = [LowerLevel::BTree, LowerLevel::SkipList];
    for ((buckets, value_len), lower) in
        sizes.into_iter().flat_map(|size| levels.map(|lower| (size, lower)))
    {
        let before = allocated();
        let insert = DrainInsert::Multi;
        let update = Update::InPlace;
        let config = FloDbConfig { buckets, partition_bits: 4, lower, insert, update };
        let memtable = Memtable::new(Config::FloDb(config), &pool);
        let front = memtable.front_level().unwrap();
        for seq in 1..100_000_u64 {
            // Every key several times, with values that grow and shrink.
            let key = (seq % 20_000).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            let value = vec![7; value_len + (seq % 5) as usize * value_len / 2];
            memtable.update(&key, seq, EntryKind::Value, &value, || seq - 1);
            if seq % 10_000 == 0 {
                front.drain();
            }
            if seq % 25_000 == 0 {
                let given = (allocated() - before) as f64;
                let said = memtable.memory().total_bytes() as f64 + value.len() as f64;
                let is_close = (said / given - 1.0).abs() < 0.02;
                assert!(is_close, "{buckets} buckets at {seq}: reported {said}, allocated {given}");
            }
        }
        drop(memtable);
        let left = allocated() - before;
        assert!(left < 1000, "{left} bytes are left");
    }
}
