//! Blocks keep their contents while they are evicted, moved, pinned and dropped; the pool stays
//! within its capacity; and used blocks stay in memory.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{LazyLock, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use terrane_testkit::{Rng, seed_from_env};

use super::pool::PoolBytes;
use super::*;

/// The unit of sizes, a fraction of it under Miri.
pub(super) const MIB: usize = if cfg!(miri) { 1 << 10 } else { 1 << 20 };

/// The length of most blocks, and the size of their frames.
pub(super) const BLOCK: usize = if cfg!(miri) { 500 } else { 4000 };
pub(super) const FRAME: usize = if cfg!(miri) { 576 } else { 4160 };

/// Divides a number of blocks under Miri, as [`MIB`] and [`BLOCK`] divide bytes.
pub(super) const fn count(blocks: usize) -> usize {
    if cfg!(miri) { blocks / 128 } else { blocks }
}

/// Divides a number of steps under Miri.
const fn steps(number: usize) -> usize {
    if cfg!(miri) { number / 256 } else { number }
}

/// Returns `is_right`, a relation of sizes, or true under Miri, whose pools have too few blocks for it.
pub(super) fn holds(is_right: bool) -> bool {
    cfg!(miri) || is_right
}

/// Returns true if `part` is at least `permille` of `whole`, or under Miri.
pub(super) fn is_share(part: usize, whole: usize, permille: usize) -> bool {
    holds(part * 1000 >= whole * permille)
}

/// Locked for writing by a test that pins a thread for a long time, which delays all pools.
pub(super) static LONG_PINS: RwLock<()> = RwLock::new(());

pub(super) fn without_long_pins() -> RwLockReadGuard<'static, ()> {
    LONG_PINS.read().unwrap_or_else(PoisonError::into_inner)
}

/// Repeats `step`, which evicts, until `settled` returns true. Pinned readers of other tests delay
/// this, for a long time if they are preempted.
fn until(pool: &BufferPool, settled: impl Fn(PoolBytes) -> bool, step: impl Fn()) {
    let deadline = Instant::now() + Duration::from_secs(if cfg!(miri) { 600 } else { 10 });
    while !settled(pool.bytes()) {
        assert!(Instant::now() < deadline, "{:?}", pool.bytes());
        std::thread::yield_now();
        step();
    }
}

pub(super) fn until_within(pool: &BufferPool, capacity: usize, step: impl Fn()) {
    until(pool, |bytes| bytes.allocated <= capacity, step);
}

pub(super) fn resize(pool: &BufferPool, capacity: usize) {
    pool.set_capacity(capacity as u64);
    until_within(pool, capacity, || pool.set_capacity(capacity as u64));
}

/// The length of the longest block.
const LONGEST: usize = if cfg!(miri) { 150_000 / 32 } else { 150_000 };

/// The bytes of a block.
fn contents(file: usize, block: usize, len: usize) -> &'static [u8] {
    static BYTES: LazyLock<Vec<u8>> =
        LazyLock::new(|| (0..256 + LONGEST).map(|at| at as u8).collect());
    &BYTES[(file * 31 + block * 7) % 256..][..len]
}

fn len_of(file: usize, block: usize) -> usize {
    match (file + block) % 11 {
        0 => 100 + block % 400,
        1 => {
            if cfg!(miri) {
                20_000 / 32
            } else {
                20_000
            }
        }
        2 if block.is_multiple_of(5) => LONGEST,
        _ => BLOCK + block % 90,
    }
}

fn read(pool: &BufferPool, slots: &Slots, file: usize, block: usize) -> BlockRef {
    if let Some(found) = slots.get(block, &pin()) {
        return found.share();
    }
    let priority = if block < 2 { Priority::Meta } else { Priority::Data };
    let loaded = slots.load_once(block, priority, || -> Result<BlockRef, Infallible> {
        let mut new = pool.allocate(len_of(file, block));
        let bytes = contents(file, block, new.len());
        new.copy_from_slice(bytes);
        Ok(new.freeze())
    });
    loaded.unwrap_or_else(|never| match never {})
}

fn check(found: &[u8], file: usize, block: usize) {
    assert_eq!(found.len(), len_of(file, block));
    assert!(found == contents(file, block, found.len()), "{file} {block}");
}

#[test]
fn blocks_keep_their_bytes_while_others_come_and_go() {
    let _pins = without_long_pins();
    const FILES: usize = 6;
    const BLOCKS: usize = if cfg!(miri) { 60 } else { 300 };
    let seed = seed_from_env(71);
    for capacity in [MIB / 5, 3 * MIB, 12 * MIB, 70 * MIB] {
        let mut rng = Rng::new(seed + capacity as u64);
        let pool = BufferPool::new(capacity as u64);
        let mut files: Vec<Slots> = (0..FILES).map(|_| Slots::new(&pool, BLOCKS)).collect();
        let mut held: Vec<(usize, usize, BlockRef)> = Vec::new();
        for step in 0..steps(20_000) {
            let (file, block) = (rng.index(FILES), rng.index(BLOCKS));
            match rng.below(1000) {
                0 => files[file] = Slots::new(&pool, BLOCKS),
                1 => pool.set_capacity(capacity as u64 / rng.between(1, 4)),
                2..20 if held.len() < 12 => {
                    held.push((file, block, read(&pool, &files[file], file, block)));
                }
                20..40 if !held.is_empty() => {
                    let (file, block, found) = held.swap_remove(rng.index(held.len()));
                    check(&found, file, block);
                }
                _ => check(&read(&pool, &files[file], file, block), file, block),
            }
            let bytes = pool.bytes();
            let pinned = bytes.pinned + held.iter().map(|held| held.2.len()).sum::<usize>();
            assert!(
                holds(bytes.allocated <= bytes.capacity.max(capacity / 4) + pinned + 4 * MIB),
                "step {step}: {bytes:?}"
            );
        }
        drop(files);
        held.iter().for_each(|(file, block, found)| check(found, *file, *block));
        assert_eq!(pool.bytes().cached, 0);
        // The pool lives as long as any of its blocks.
        drop(pool);
        held.iter().for_each(|(file, block, found)| check(found, *file, *block));
    }
}

#[test]
fn threads_share_blocks_and_the_pool_stays_within_its_capacity() {
    let _pins = without_long_pins();
    const CAPACITY: usize = 9 * MIB;
    const BLOCKS: usize = if cfg!(miri) { 400 } else { 4000 };
    let seed = seed_from_env(72);
    let pool = BufferPool::new(CAPACITY as u64);
    let slots = Slots::new(&pool, BLOCKS);
    let (stop, highest) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..4)
            .map(|thread| {
                let (pool, slots) = (&pool, &slots);
                scope.spawn(move || {
                    let mut rng = Rng::new(seed + thread);
                    let mut held = Vec::new();
                    for _ in 0..steps(8000) {
                        let block = rng.index(BLOCKS);
                        let found = read(pool, slots, 0, block);
                        check(&found, 0, block);
                        let guard = pin();
                        if let Some(view) = slots.get(block, &guard) {
                            check(&view, 0, block);
                        }
                        drop(guard);
                        held.push((block, found));
                        if held.len() > 8 {
                            let (block, found) = held.swap_remove(rng.index(8));
                            check(&found, 0, block);
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                highest.fetch_max(pool.bytes().allocated as u64, Ordering::Relaxed);
                std::thread::yield_now();
            }
        });
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        stop.store(true, Ordering::Relaxed);
    });
    let highest = highest.load(Ordering::Relaxed) as usize;
    // Each thread holds up to nine blocks, some of them large.
    let most = CAPACITY + CAPACITY / 8 + 4 * 9 * (LONGEST + 10_000);
    assert!(holds(highest <= most), "{highest}");
}

/// Reads blocks of [`BLOCK`] bytes and counts those that were in memory.
fn hits(pool: &BufferPool, slots: &Slots, blocks: impl Iterator<Item = usize>) -> (u64, u64) {
    let (mut hits, mut reads) = (0, 0);
    for block in blocks {
        reads += 1;
        hits += u64::from(slots.get(block, &pin()).is_some());
        if !slots.is_resident(block) {
            drop(slots.fill(block, pool.allocate(BLOCK).freeze(), Priority::Data));
        }
    }
    (hits, reads)
}

#[test]
fn a_long_scan_does_not_evict_what_is_used() {
    let _pins = without_long_pins();
    let pool = BufferPool::new(16 * MIB as u64);
    let in_memory = 16 * MIB / FRAME;
    let slots = Slots::new(&pool, in_memory * 12);
    let hot = in_memory / 2;
    let meta = in_memory * 12 - 1;
    drop(slots.fill(meta, pool.allocate(BLOCK).freeze(), Priority::Meta));
    for _ in 0..4 {
        hits(&pool, &slots, 0..hot);
    }
    // Between two steps of the scan a hot block is read, each one about five times in total.
    let mut rng = Rng::new(seed_from_env(73));
    let scan = (hot..in_memory * 10).flat_map(|block| [block, rng.index(hot)]);
    hits(&pool, &slots, scan);
    let stayed = (0..hot).filter(|block| slots.is_resident(*block)).count();
    assert!(is_share(stayed, hot, 980), "{stayed} of {hot}");
    assert!(holds(slots.is_resident(meta)));
    // A scan alone: blocks used before it are still in memory after it.
    hits(&pool, &slots, in_memory..in_memory * 11);
    let stayed = (0..hot).filter(|block| slots.is_resident(*block)).count();
    assert!(is_share(stayed, hot, 600), "{stayed} of {hot}");
}

#[test]
fn blocks_that_are_read_often_are_found_more_often_than_in_an_lru_cache() {
    let _pins = without_long_pins();
    let blocks = count(20_000);
    let pool = BufferPool::new(16 * MIB as u64);
    let in_memory = 16 * MIB / FRAME;
    let slots = Slots::new(&pool, blocks);
    let mut rng = Rng::new(seed_from_env(74));
    // About half of the reads go to a fiftieth of the blocks, with a long tail.
    let trace: Vec<usize> = (0..steps(300_000))
        .map(|_| {
            let uniform = (rng.bits() >> 11) as f64 / (1u64 << 53) as f64;
            let rank = (blocks as f64).powf(uniform) as usize - 1;
            rank.wrapping_mul(7919) % blocks
        })
        .collect();
    let (found, reads) = hits(&pool, &slots, trace.iter().copied());
    let lru = lru_hits(&trace, in_memory);
    assert!(holds(found * 100 >= lru * 103), "{found} and {lru} of {reads}");
}

/// Returns how many reads an LRU cache of `capacity` blocks would answer.
fn lru_hits(trace: &[usize], capacity: usize) -> u64 {
    let mut last_use = std::collections::HashMap::new();
    let mut by_use = std::collections::BTreeMap::new();
    let mut hits = 0;
    for (now, block) in trace.iter().enumerate() {
        if let Some(before) = last_use.insert(*block, now) {
            by_use.remove(&before);
            hits += 1;
        } else if last_use.len() > capacity
            && let Some((_, evicted)) = by_use.pop_first()
        {
            last_use.remove(&evicted);
        }
        by_use.insert(now, *block);
    }
    hits
}

#[test]
fn a_size_that_is_no_longer_read_gives_its_memory_to_others() {
    let _pins = without_long_pins();
    let pool = BufferPool::new(16 * MIB as u64);
    let (first, all) = (count(20_000), count(30_000));
    let slots = Slots::new(&pool, all);
    let fill = |block: usize, len: usize| {
        drop(slots.fill(block, pool.allocate(len).freeze(), Priority::Data));
    };
    (0..first).for_each(|block| fill(block, BLOCK / 4));
    assert!(holds(slots.is_resident(first - 1)));
    for block in first..all {
        fill(block, 2 * BLOCK);
    }
    let (small, large) = (0..first, first..all);
    let resident =
        |blocks: std::ops::Range<usize>| blocks.filter(|block| slots.is_resident(*block)).count();
    let (small, large) = (resident(small) * BLOCK / 4, resident(large) * 2 * BLOCK);
    assert!(is_share(large, 16 * MIB, 750), "{small} and {large} bytes");
    until_within(&pool, pool.bytes().capacity, || fill(first, 2 * BLOCK));
    resize(&pool, 4 * MIB);
    let bytes = pool.bytes();
    assert!(holds(bytes.cached > 2 * MIB), "{bytes:?}");
}

#[test]
fn a_pool_that_is_mostly_pinned_exceeds_its_capacity_only_by_what_is_pinned() {
    let _pins = without_long_pins();
    let pool = BufferPool::new(9 * MIB as u64);
    let slots = Slots::new(&pool, count(10_000));
    let held: Vec<BlockRef> = (0..count(5000))
        .map(|block| slots.fill(block, pool.allocate(BLOCK).freeze(), Priority::Data))
        .collect();
    let bytes = pool.bytes();
    let held_bytes = held.len() * BLOCK;
    let around = held_bytes..held_bytes + held_bytes / 13;
    assert!(holds(around.contains(&bytes.allocated)), "{bytes:?}");
    drop(held);
    (count(5000)..count(10_000)).for_each(|block| {
        drop(slots.fill(block, pool.allocate(BLOCK).freeze(), Priority::Data));
    });
    let settled = |bytes: PoolBytes| bytes.allocated <= 9 * MIB && bytes.pinned == 0;
    until(&pool, settled, || {
        drop(slots.fill(count(5000), pool.allocate(BLOCK).freeze(), Priority::Data));
    });
}

#[test]
fn slots_grow_and_shrink_with_their_blocks() {
    let _pins = without_long_pins();
    let pool = BufferPool::new(if cfg!(miri) { 32 * MIB } else { MIB } as u64);
    let mut slots = Slots::new(&pool, 2);
    for block in 2..200 {
        slots.grow(block + 1);
        drop(read(&pool, &slots, 3, block));
    }
    let resident = (0..200).filter(|block| slots.is_resident(*block)).count();
    assert!(holds(resident > 10), "{resident}");
    for block in 0..200 {
        check(&read(&pool, &slots, 3, block), 3, block);
    }
    slots.truncate(190);
    assert_eq!(slots.len(), 190);
    for block in 0..190 {
        check(&read(&pool, &slots, 3, block), 3, block);
    }
    let block = read(&pool, &slots, 3, 5);
    drop(slots);
    assert_eq!(pool.bytes().cached, 0);
    check(&block, 3, 5);
    assert!(pool.bytes().pinned > 0);
    drop(block);
    assert_eq!((pool.bytes().pinned, pool.bytes().allocated), (0, 0));
}
