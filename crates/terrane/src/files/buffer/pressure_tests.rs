//! Under pressure, only cold blocks are evicted: while a reader is preempted, while the pool is full
//! of used blocks, and while it shrinks.

use std::sync::{Barrier, PoisonError};

use super::epoch::tests::BARRIER_FAILS;
use super::tests::{
    BLOCK, FRAME, LONG_PINS, MIB, count, holds, is_share, resize, until_within, without_long_pins,
};
use super::*;

const CAPACITY: usize = 70 * MIB;

fn fill(pool: &BufferPool, slots: &Slots, block: usize, len: usize) {
    drop(slots.fill(block, pool.allocate(len).freeze(), Priority::Data));
}

fn use_blocks(slots: &Slots, blocks: std::ops::Range<usize>, times: usize) {
    for _ in 0..times {
        blocks.clone().for_each(|block| {
            slots.get(block, &pin());
        });
    }
}

fn resident(slots: &Slots, blocks: std::ops::Range<usize>) -> usize {
    blocks.filter(|block| slots.is_resident(*block)).count()
}

/// Fills a pool. The first `hot` blocks, all but the last tenth, are used.
fn hot_pool(slots_count: usize) -> (BufferPool, Slots, usize, usize) {
    let pool = BufferPool::new(CAPACITY as u64);
    let slots = Slots::new(&pool, slots_count);
    let blocks = CAPACITY / FRAME - count(1100);
    let hot = blocks * 9 / 10;
    for block in 0..blocks {
        fill(&pool, &slots, block, BLOCK);
        if block < hot {
            use_blocks(&slots, block..block + 1, 2);
        }
    }
    assert!(is_share(resident(&slots, 0..blocks), blocks, 1000));
    use_blocks(&slots, 0..hot, 3);
    (pool, slots, hot, blocks)
}

#[test]
fn a_reader_that_lost_its_processor_does_not_drain_the_pool() {
    let _alone = LONG_PINS.write().unwrap_or_else(PoisonError::into_inner);
    let (pool, slots, hot, blocks) = hot_pool(count(40_000));
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let guard = pin();
            barrier.wait();
            barrier.wait();
            drop(guard);
        });
        barrier.wait();
        let full = (pool.bytes().capacity - pool.bytes().allocated) / FRAME;
        // The pool may exceed its capacity by a sixteenth, which is enough for these.
        for block in blocks..blocks + full + count(500) {
            fill(&pool, &slots, block, BLOCK);
        }
        assert!(is_share(resident(&slots, 0..hot), hot, 999), "{}", resident(&slots, 0..hot));
        let bytes = pool.bytes();
        assert!(is_share(bytes.cached + MIB, blocks * 4096, 1000), "{bytes:?}");
        barrier.wait();
    });
    // Once the reader is gone, the pool returns to its capacity.
    for block in count(30_000)..count(32_000) {
        fill(&pool, &slots, block, BLOCK);
    }
    until_within(&pool, CAPACITY, || fill(&pool, &slots, count(30_000), BLOCK));
    assert!(is_share(resident(&slots, 0..hot), hot, 980), "{}", resident(&slots, 0..hot));
}

#[test]
fn a_pool_that_shrinks_a_little_evicts_only_what_is_cold() {
    let _pins = without_long_pins();
    let (pool, slots, hot, blocks) = hot_pool(count(40_000));
    let allocated = pool.bytes().allocated;
    for bytes in [1, 3 * MIB / 10, 6 * MIB / 10] {
        resize(&pool, allocated - bytes);
        // Blocks that were on probation until now have no uses left.
        assert!(is_share(resident(&slots, 0..hot), hot, 990), "{}", resident(&slots, 0..hot));
    }
    let cold = resident(&slots, hot..blocks);
    assert!(holds((blocks - hot - cold) * FRAME <= 5 * MIB), "{cold} of {}", blocks - hot);
}

#[test]
fn a_new_size_takes_only_what_is_cold() {
    let _pins = without_long_pins();
    let (pool, slots, hot, _) = hot_pool(count(40_000));
    for block in count(30_000)..count(30_600) {
        fill(&pool, &slots, block, 9 * BLOCK / 4);
    }
    assert!(is_share(resident(&slots, 0..hot), hot, 990), "{}", resident(&slots, 0..hot));
    until_within(&pool, CAPACITY, || fill(&pool, &slots, count(30_000), 9 * BLOCK / 4));
    let new = resident(&slots, count(30_000)..count(30_600));
    assert!(is_share(new, count(600), 501), "{new}");
}

#[test]
fn readers_that_keep_blocks_do_not_make_a_smaller_pool_evict_the_others() {
    let _pins = without_long_pins();
    let (pool, slots, hot, _) = hot_pool(count(40_000));
    // One block of each chunk, so no chunk can be released.
    let held: Vec<BlockRef> = (0..hot)
        .step_by(if cfg!(miri) { 7 } else { 100 })
        .filter_map(|block| Some(slots.get(block, &pin())?.share()))
        .collect();
    assert!(held.len() >= count(hot / 100), "{}", held.len());
    use_blocks(&slots, 0..hot, 2);
    pool.set_capacity((CAPACITY - 8 * MIB) as u64);
    assert!(is_share(resident(&slots, 0..hot), hot, 750), "{}", resident(&slots, 0..hot));
    drop(held);
    resize(&pool, CAPACITY - 8 * MIB);
    assert!(is_share(resident(&slots, 0..hot), hot, 750), "{}", resident(&slots, 0..hot));
}

/// The allocator keeps much of the memory of freed frames, so a capacity that goes up and down would add up both.
#[test]
fn a_pool_that_was_large_enough_for_chunks_keeps_to_them() {
    let _pins = without_long_pins();
    let pool = BufferPool::new(MIB as u64);
    let slots = Slots::new(&pool, count(10_000));
    pool.set_capacity(8 * MIB as u64);
    pool.set_capacity(7 * MIB as u64);
    (count(3000)..count(6000)).for_each(|block| fill(&pool, &slots, block, BLOCK));
    let single: usize = pool.shared().lock().single_bytes.iter().sum();
    // While readers of other tests are preempted, a sixteenth may be beyond the capacity.
    assert!(single < 2 * MIB, "{single} bytes are in frames with their own memory");
    assert!(holds(pool.bytes().cached > 6 * MIB), "{:?}", pool.bytes());
}

#[test]
fn a_pool_whose_barriers_fail_stays_within_its_capacity_and_can_be_dropped() {
    let _pins = without_long_pins();
    let pool = BufferPool::new(9 * MIB as u64);
    let slots = Slots::new(&pool, count(10_000));
    (0..count(3000)).for_each(|block| fill(&pool, &slots, block, BLOCK));
    BARRIER_FAILS.set(true);
    (count(3000)..count(9000)).for_each(|block| fill(&pool, &slots, block, BLOCK));
    let bytes = pool.bytes();
    assert!(holds(bytes.allocated <= bytes.capacity + bytes.capacity / 16), "{bytes:?}");
    assert_eq!(bytes.standalone, 0);
    assert!(holds(resident(&slots, 0..count(9000)) > 1500));
    pool.set_capacity(MIB as u64);
    // Blocks have their own memory from now on.
    let block = pool.allocate(BLOCK).freeze();
    assert!(pool.bytes().standalone > BLOCK);
    drop((block, slots, pool));
    BARRIER_FAILS.set(false);
}
