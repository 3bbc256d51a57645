//! Runs threads on memtables without a database: immutable memtables are discarded, and one more
//! thread drains.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use terrane::memtable::{self, EntryKind, FrontLevel, MAX_SEQ, Memtable};
use terrane_policy::MemtableKind;
use terrane_policy::random::SplitMix64;

use super::sizes::{FloDbSizes, VALUE_BYTES, random_numbers, spread};

const VALUE: [u8; VALUE_BYTES] = [7; VALUE_BYTES];

/// Operations between two checks of the clock.
const STEPS: u64 = 256;

/// A version may be reclaimed once there are this many newer versions, so a reader may lag by this
/// many versions.
const BEHIND: u64 = 64;

/// State that the threads of a run share.
struct SharedRun<'a> {
    sizes: &'a FloDbSizes,
    kind: MemtableKind,
    bytes: u64,
    active: RwLock<Arc<Memtable>>,
    next_seq: AtomicU64,
    is_over: AtomicBool,
    operations: AtomicU64,
    in_membuffer: AtomicU64,
}

impl SharedRun<'_> {
    fn active(&self) -> Arc<Memtable> {
        Arc::clone(&self.active.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn drain(&self) {
        while !self.is_over.load(Ordering::Relaxed) {
            let memtable = self.active();
            let front = memtable.front_level().filter(|front| front.needs_drain());
            if front.map_or(0, FrontLevel::drain) == 0 {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    }

    fn write(&self, keys: u64, mut random: SplitMix64) {
        let (mut operations, mut in_membuffer) = (0, 0);
        while !self.is_over.load(Ordering::Relaxed) {
            let memtable = self.active();
            for _ in 0..STEPS {
                let key = spread(random.below(keys));
                let seq = self.next_seq.fetch_add(1, Ordering::Relaxed);
                let horizon = || seq.saturating_sub(BEHIND);
                let inserted = memtable.update(&key, seq, EntryKind::Value, &VALUE, horizon);
                in_membuffer += u64::from(inserted.is_in_membuffer);
            }
            operations += STEPS;
            if memtable.filled_bytes() as u64 >= self.bytes {
                self.replace(&memtable);
            }
        }
        self.operations.fetch_add(operations, Ordering::Relaxed);
        self.in_membuffer.fetch_add(in_membuffer, Ordering::Relaxed);
    }

    fn replace(&self, full: &Arc<Memtable>) {
        let mut active = self.active.write().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&active, full) {
            *active = memtable::new_after(full, self.kind, self.bytes, &self.sizes.pool);
        }
    }
}

/// Returns the rate of writes of new keys in millions per second, and the share of these writes
/// that completed in the Membuffer.
pub(super) fn write(sizes: &FloDbSizes, kind: MemtableKind, bytes: u64, threads: u32) -> [f64; 2] {
    const KEYS: u64 = 1 << 40;
    let run = SharedRun {
        sizes,
        kind,
        bytes,
        active: RwLock::new(memtable::new(kind, bytes, &sizes.pool)),
        next_seq: AtomicU64::new(1),
        is_over: AtomicBool::new(false),
        operations: AtomicU64::new(0),
        in_membuffer: AtomicU64::new(0),
    };
    let start = Instant::now();
    std::thread::scope(|scope| {
        if matches!(kind, MemtableKind::FloDb(flodb) if flodb.membuffer_percent > 0) {
            scope.spawn(|| run.drain());
        }
        for thread in 0..threads {
            let run = &run;
            let random = random_numbers(sizes.seed + u64::from(thread));
            scope.spawn(move || run.write(KEYS, random));
        }
        std::thread::sleep(sizes.duration());
        run.is_over.store(true, Ordering::Relaxed);
    });
    let operations = run.operations.into_inner() as f64;
    let mops = operations / start.elapsed().as_secs_f64() / 1e6;
    [mops, run.in_membuffer.into_inner() as f64 / operations.max(1.0)]
}

/// Returns the rates of operations in millions per second, half updates and half lookups, on a
/// structure of `entries` entries, by number of threads.
pub(super) fn mix(
    sizes: &FloDbSizes,
    kind: MemtableKind,
    entries: u64,
    threads: &[u32],
) -> Vec<f64> {
    const SMALL: [u8; 8] = [7; 8];
    let memtable = memtable::new(kind, entries * 300, &sizes.pool);
    for number in 0..entries {
        memtable.update(&spread(number), number + 1, EntryKind::Value, &SMALL, || number);
    }
    let next_seq = AtomicU64::new(entries + 1);
    let client = |is_over: &AtomicBool, mut random: SplitMix64| {
        let mut operations: u64 = 0;
        while !is_over.load(Ordering::Relaxed) {
            for _ in 0..STEPS / 2 {
                black_box(memtable.look_up(&spread(random.below(entries)), MAX_SEQ));
                let seq = next_seq.fetch_add(1, Ordering::Relaxed);
                let key = spread(random.below(entries));
                let horizon = || seq.saturating_sub(BEHIND);
                memtable.update(&key, seq, EntryKind::Value, &SMALL, horizon);
            }
            operations += STEPS;
        }
        operations
    };
    let random = |thread| random_numbers(sizes.seed + u64::from(thread));
    let rate = |threads: u32| {
        let (is_over, start) = (AtomicBool::new(false), Instant::now());
        let operations: u64 = std::thread::scope(|scope| {
            let (client, is_over) = (&client, &is_over);
            let start = |thread| scope.spawn(move || client(is_over, random(thread)));
            let clients: Vec<_> = (0..threads).map(start).collect();
            std::thread::sleep(sizes.duration() / 2);
            is_over.store(true, Ordering::Relaxed);
            clients.into_iter().filter_map(|client| client.join().ok()).sum()
        });
        operations as f64 / start.elapsed().as_secs_f64() / 1e6
    };
    threads.iter().map(|threads| rate(*threads)).collect()
}
