//! Under pressure, only cold blocks are evicted: while a reader is preempted, while the pool is full
//! of used blocks, and while it shrinks.

use std::sync::{Barrier, PoisonError};

use super::epoch::tests::BARRIER_FAILS;
use super::tests::{LONG_PINS, resize, until_within, without_long_pins};
use super::*;

const CAPACITY: usize = 70 << 20;
const BLOCK: usize = 4000;

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
    let count = CAPACITY / 4160 - 1100;
    let hot = count * 9 / 10;
    for block in 0..count {
        fill(&pool, &slots, block, BLOCK);
        if block < hot {
            use_blocks(&slots, block..block + 1, 2);
        }
    }
    assert_eq!(resident(&slots, 0..count), count);
    use_blocks(&slots, 0..hot, 3);
    (pool, slots, hot, count)
}

#[test]
fn a_reader_that_lost_its_processor_does_not_drain_the_pool() {
    let _alone = LONG_PINS.write().unwrap_or_else(PoisonError::into_inner);
    let (pool, slots, hot, count) = hot_pool(40_000);
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let guard = pin();
            barrier.wait();
            barrier.wait();
            drop(guard);
        });
        barrier.wait();
        let full = (pool.bytes().capacity - pool.bytes().allocated) / 4160;
        // The pool may exceed its capacity by a sixteenth, which is enough for these.
        for block in count..count + full + 500 {
            fill(&pool, &slots, block, BLOCK);
        }
        assert!(resident(&slots, 0..hot) * 1000 >= hot * 999, "{}", resident(&slots, 0..hot));
        let bytes = pool.bytes();
        assert!(bytes.cached + (1 << 20) >= count * 4096, "{bytes:?}");
        barrier.wait();
    });
    // Once the reader is gone, the pool returns to its capacity.
    for block in 30_000..32_000 {
        fill(&pool, &slots, block, BLOCK);
    }
    until_within(&pool, CAPACITY, || fill(&pool, &slots, 30_000, BLOCK));
    assert!(resident(&slots, 0..hot) * 100 >= hot * 98, "{}", resident(&slots, 0..hot));
}

#[test]
fn a_pool_that_shrinks_a_little_evicts_only_what_is_cold() {
    let _pins = without_long_pins();
    let (pool, slots, hot, count) = hot_pool(40_000);
    let allocated = pool.bytes().allocated;
    for bytes in [1, 300 << 10, 600 << 10] {
        resize(&pool, allocated - bytes);
        // Blocks that were on probation until now have no uses left.
        assert!(resident(&slots, 0..hot) * 100 >= hot * 99, "{}", resident(&slots, 0..hot));
    }
    let cold = resident(&slots, hot..count);
    assert!((count - hot - cold) * 4160 <= 5 << 20, "{cold} of {}", count - hot);
}

#[test]
fn a_new_size_takes_only_what_is_cold() {
    let _pins = without_long_pins();
    let (pool, slots, hot, _) = hot_pool(40_000);
    for block in 30_000..30_600 {
        fill(&pool, &slots, block, 9000);
    }
    assert!(resident(&slots, 0..hot) * 100 >= hot * 99, "{}", resident(&slots, 0..hot));
    until_within(&pool, CAPACITY, || fill(&pool, &slots, 30_000, 9000));
    assert!(resident(&slots, 30_000..30_600) > 300, "{}", resident(&slots, 30_000..30_600));
}

#[test]
fn readers_that_keep_blocks_do_not_make_a_smaller_pool_evict_the_others() {
    let _pins = without_long_pins();
    let (pool, slots, hot, _) = hot_pool(40_000);
    // One block of each chunk, so no chunk can be released.
    let held: Vec<BlockRef> =
        (0..hot).step_by(100).map(|block| slots.get(block, &pin()).unwrap().share()).collect();
    use_blocks(&slots, 0..hot, 2);
    pool.set_capacity((CAPACITY - (8 << 20)) as u64);
    assert!(resident(&slots, 0..hot) * 100 >= hot * 75, "{}", resident(&slots, 0..hot));
    drop(held);
    resize(&pool, CAPACITY - (8 << 20));
    assert!(resident(&slots, 0..hot) * 100 >= hot * 75, "{}", resident(&slots, 0..hot));
}

#[test]
fn a_pool_whose_barriers_fail_stays_within_its_capacity_and_can_be_dropped() {
    let _pins = without_long_pins();
    let pool = BufferPool::new(9 << 20);
    let slots = Slots::new(&pool, 10_000);
    (0..3000).for_each(|block| fill(&pool, &slots, block, BLOCK));
    BARRIER_FAILS.set(true);
    (3000..9000).for_each(|block| fill(&pool, &slots, block, BLOCK));
    let bytes = pool.bytes();
    assert!(bytes.allocated <= bytes.capacity + bytes.capacity / 16, "{bytes:?}");
    assert_eq!(bytes.standalone, 0);
    assert!(resident(&slots, 0..9000) > 1500);
    pool.set_capacity(1 << 20);
    // Blocks have their own memory from now on.
    let block = pool.allocate(BLOCK).freeze();
    assert!(pool.bytes().standalone > BLOCK);
    drop((block, slots, pool));
    BARRIER_FAILS.set(false);
}
