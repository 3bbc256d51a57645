//! A hot set that takes most of the buffer does not fill a FloDB memtable permanently, whatever the
//! sizes of its values, even while a snapshot is held.
#![cfg(not(any(loom, miri)))]
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::ops::Range;
use std::sync::Arc;

use terrane_memtable::{
    Config, DrainInsert, EntryKind, FloDbConfig, LowerLevel, Memtable, Pool, Readers, SeqBounds,
    SeqNo, Update,
};
use terrane_testkit::{Rng, seed_from_env};

const BUFFER_BYTES: usize = 4 << 20;

/// Buckets for a quarter of the buffer, as the engine divides it if the entries are unknown.
const BUCKETS: usize = BUFFER_BYTES / 4 / 200 * 3 / 2 / 6;

/// From this size on, a writer takes a step of a pass with each portion of the free space, and a few once the
/// memtable is full, as in the engine.
const ALMOST_FULL_BYTES: usize = BUFFER_BYTES / 8 * 7;
const STEPS_IF_FULL: usize = 3;
const PORTIONS_MIN: usize = 16;

/// A memtable is full if a pass leaves less than this share of it free, as in the engine.
const FREE_SHARE_MIN: usize = 128;

/// Readers at the newest visible number and at one that is held.
#[derive(Clone, Copy)]
struct Held(SeqNo, Option<SeqNo>);

impl Readers for Held {
    fn bounds(&self) -> SeqBounds {
        let (oldest, newest) = (self.1.unwrap_or(SeqNo::MAX), self.1.unwrap_or(0));
        SeqBounds { visible: self.0, oldest, newest }
    }

    fn hold_any(&self, seqs: Range<SeqNo>) -> bool {
        self.1.is_some_and(|seq| seqs.contains(&seq))
    }
}

/// Whether partitions of the Membuffer are drained as they become due, as by a drain thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Draining {
    WhenDue,
    WhenFull,
}

struct Writer {
    memtable: Arc<Memtable>,
    seq: SeqNo,
    held: Option<SeqNo>,
    rng: Rng,
    sizes: (u64, u64),
    draining: Draining,
    /// The size at which the writer measures again.
    measured_at: usize,
}

impl Writer {
    fn new(buckets: usize, sizes: (u64, u64), draining: Draining) -> Self {
        let (lower, insert, update) = (LowerLevel::BTree, DrainInsert::Multi, Update::InPlace);
        let config = FloDbConfig { buckets, partition_bits: 4, lower, insert, update };
        let memtable = Memtable::new(Config::FloDb(config), &Pool::new(0));
        let rng = Rng::new(seed_from_env(75));
        Self { memtable, seq: 0, held: None, rng, sizes, draining, measured_at: 0 }
    }

    /// Returns whether the memtable must be flushed after this put.
    fn put(&mut self, number: u64) -> bool {
        self.seq += 1;
        let (seq, memtable) = (self.seq, &self.memtable);
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let value = vec![7; self.rng.between(self.sizes.0, self.sizes.1) as usize];
        let readers = Held(seq - 1, self.held);
        let added = memtable.update(&key, seq, EntryKind::Value, &value, readers);
        if added.needs_reclaim {
            memtable.reclaim_hidden(&key, seq, Held(seq, self.held));
        }
        let front = memtable.front_level().unwrap();
        if self.draining == Draining::WhenDue && added.needs_drain && seq % 64 == 0 {
            front.drain();
        }
        self.is_full()
    }

    fn is_full(&mut self) -> bool {
        let mut filled = self.memtable.filled_bytes();
        if filled < self.measured_at.max(ALMOST_FULL_BYTES) {
            return false;
        }
        let front = self.memtable.front_level().unwrap();
        let has_pass = front.begin_reclaiming(BUFFER_BYTES.saturating_sub(filled)) > 0;
        for _ in 0..STEPS_IF_FULL {
            front.reclaim_step(&Held(self.seq, self.held));
            filled = self.memtable.filled_bytes();
            if filled < BUFFER_BYTES {
                break;
            }
        }
        let steps = front.reclaiming_steps();
        let portions = steps.max(PORTIONS_MIN);
        self.measured_at = filled + BUFFER_BYTES.saturating_sub(filled) / portions;
        let freed_little = filled > BUFFER_BYTES - BUFFER_BYTES / FREE_SHARE_MIN;
        filled >= BUFFER_BYTES || has_pass && steps == 0 && freed_little
    }

    /// Returns the number of keys that fill the buffer.
    fn capacity(mut self) -> u64 {
        (0..).find(|key| self.put(*key)).unwrap()
    }
}

/// Overwrites `percent` of the keys that fill the buffer.
fn assert_not_flushed(buckets: usize, sizes: (u64, u64), percent: u64, is_held: bool) {
    for draining in [Draining::WhenDue, Draining::WhenFull] {
        // Undrained versions take no room in leaves, so this is the largest capacity.
        let keys = Writer::new(buckets, sizes, Draining::WhenFull).capacity() * percent / 100;
        let mut writer = Writer::new(buckets, sizes, draining);
        assert!((0..keys).all(|key| !writer.put(key)));
        writer.held = is_held.then_some(writer.seq);
        for put in 0..60_000 {
            let key = writer.rng.below(keys);
            let is_full = writer.put(key);
            assert!(!is_full, "{buckets} {sizes:?} {percent} % {is_held} {draining:?}: put {put}");
        }
    }
}

const SIZES: [(u64, u64); 3] = [(256, 256), (16, 1000), (100, 4000)];

#[test]
fn a_hot_set_of_ninety_percent_of_the_buffer_is_not_flushed() {
    for (buckets, sizes) in [BUCKETS, 0].into_iter().flat_map(|buckets| SIZES.map(|s| (buckets, s)))
    {
        assert_not_flushed(buckets, sizes, 90, false);
    }
}

/// Each key has two versions that readers see.
#[test]
fn a_hot_set_under_a_snapshot_is_not_flushed() {
    for (buckets, sizes) in [BUCKETS, 0].into_iter().flat_map(|buckets| SIZES.map(|s| (buckets, s)))
    {
        assert_not_flushed(buckets, sizes, 45, true);
    }
}
