//! Threads on a database, with the paper's mixes of operations.

use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use terrane::{Db, Design, Durability, Options};
use terrane_policy::MemtableKind;
use terrane_policy::random::SplitMix64;
use terrane_workload::Latency;

use super::sizes::{FloDbSizes, VALUE_BYTES, random_numbers, spread};

const VALUE: [u8; VALUE_BYTES] = [7; VALUE_BYTES];

/// The width of a scan in keys, of which every second one exists (§5.2).
pub(super) const SCAN_KEYS: u64 = 100;

/// One in this many operations is timed, so that reading the clock takes little time.
const TIMED: u64 = 16;

/// Skewed: 98 of 100 operations are on 2 of 100 keys (§5.4).
const HOT_OPERATIONS: u64 = 98;
const HOT_KEYS: u64 = 2;

/// The number of each kind of operation in 100 operations; the rest are lookups.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OperationMix {
    pub(super) puts: u64,
    pub(super) deletes: u64,
    pub(super) scans: u64,
    /// The width of a scan in keys.
    pub(super) scan_keys: u64,
    /// Whether some keys are hot.
    pub(super) is_skewed: bool,
    /// True if the first thread writes and the other threads read.
    pub(super) one_writer: bool,
}

impl OperationMix {
    /// Returns the mean bytes of key and value that a write adds.
    fn mean_entry_bytes(self) -> f64 {
        8.0 + (VALUE_BYTES as u64 * self.puts) as f64 / (self.puts + self.deletes) as f64
    }
}

/// Rates and shares of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThreadedRun {
    /// Operations in thousands per second.
    pub(super) operations: f64,
    /// Keys that scans, lookups and writes access, in thousands per second.
    pub(super) keys: f64,
    /// Of 1000 scans, the number that restarted, the number that stopped writers, and the number
    /// that shared another scan's snapshot.
    pub(super) restarts: f64,
    pub(super) fallbacks: f64,
    pub(super) shared: f64,
    /// Of 100 writes, the number that completed in a Membuffer.
    pub(super) in_membuffer: f64,
    /// The processor time of flushes and merges, and of draining threads, in percent of one
    /// processor.
    pub(super) background: f64,
    pub(super) draining: f64,
    /// The time for which writers stalled, in percent of the time of all threads.
    pub(super) stalled: f64,
    /// Latencies of writes and of lookups in microseconds; NaN if there were none.
    pub(super) write_p50: f64,
    pub(super) write_p99: f64,
    pub(super) get_p50: f64,
    pub(super) get_p99: f64,
    /// Entries that flushes write while they run, in thousands per second: the line of Fig. 9. NaN
    /// without flushes.
    pub(super) persisted: f64,
}

/// Opens a database like the paper's: no log, leveling, and the given buffer size.
pub(super) fn open(dir: &Path, memtable: MemtableKind, buffer_bytes: u64) -> Result<Db> {
    let mut design: Design = "leveling".parse()?;
    design.memtable = memtable;
    design.buffer_bytes = buffer_bytes;
    design.table_bytes = buffer_bytes.min(design.table_bytes);
    design.validate()?;
    let budget = (512 << 20).max(4 * buffer_bytes);
    let options = Options::new().design(design).durability(Durability::None).memory_budget(budget);
    Ok(options.open(dir)?)
}

/// Returns the key for a number. Hot keys are neighbours, as in the published implementation, so
/// that they fall into few partitions by their first bits.
fn key_of(mix: OperationMix, number: u64, keys: u64) -> [u8; 8] {
    if mix.is_skewed { (number * (u64::MAX / keys)).to_be_bytes() } else { spread(number) }
}

/// Puts every second key in a pseudo-random order, and waits until the tree settles.
pub(super) fn load(db: &Db, mix: OperationMix, keys: u64) -> Result<()> {
    for number in (0..keys).step_by(2) {
        db.put(key_of(mix, number.wrapping_mul(0x9e37_79b1) % keys, keys), VALUE)?;
    }
    db.flush()?;
    db.wait_for_compactions()?;
    Ok(())
}

/// Puts every second key in ascending order, and waits until the tree settles.
pub(super) fn load_in_order(db: &Db, keys: u64) -> Result<()> {
    let mut all: Vec<[u8; 8]> = (0..keys).step_by(2).map(spread).collect();
    all.sort_unstable();
    all.into_iter().try_for_each(|key| db.put(key, VALUE))?;
    db.flush()?;
    db.wait_for_compactions()?;
    Ok(())
}

/// The counts and the latencies that one thread collects.
#[derive(Default)]
struct ThreadCounts {
    operations: u64,
    keys: u64,
    writes: Latency,
    gets: Latency,
}

impl ThreadCounts {
    fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.keys += other.keys;
        self.writes.add(&other.writes);
        self.gets.add(&other.gets);
    }
}

fn client(
    db: &Db,
    mix: OperationMix,
    keys: u64,
    is_over: &AtomicBool,
    mut random: SplitMix64,
) -> terrane::Result<ThreadCounts> {
    let mut done = ThreadCounts::default();
    while !is_over.load(Ordering::Relaxed) {
        let is_hot = mix.is_skewed && random.below(100) < HOT_OPERATIONS;
        let number = if is_hot {
            keys / 2 + random.below(keys * HOT_KEYS / 100)
        } else {
            random.below(keys)
        };
        let (key, choice) = (key_of(mix, number, keys), random.below(100));
        done.operations += 1;
        done.keys += 1;
        let start = done.operations.is_multiple_of(TIMED).then(Instant::now);
        let latency = if choice < mix.puts {
            db.put(key, VALUE)?;
            &mut done.writes
        } else if choice < mix.puts + mix.deletes {
            db.delete(key)?;
            &mut done.writes
        } else if choice < mix.puts + mix.deletes + mix.scans {
            done.keys += scan(db, key, keys, mix.scan_keys)?.saturating_sub(1);
            continue;
        } else {
            black_box(db.get(key)?);
            &mut done.gets
        };
        if let Some(start) = start {
            latency.record(start.elapsed());
        }
    }
    Ok(done)
}

/// Reads a range of `width` keys from `start` on; returns how many of them exist.
fn scan(db: &Db, start: [u8; 8], keys: u64, width: u64) -> terrane::Result<u64> {
    let width = (u64::MAX / keys).saturating_mul(width);
    let end = u64::from_be_bytes(start).saturating_add(width).to_be_bytes();
    let mut count = 0;
    for entry in db.range(start..end)? {
        black_box(entry?);
        count += 1;
    }
    Ok(count)
}

fn percentile(latency: &Latency, percent: f64) -> f64 {
    if latency.samples() == 0 { f64::NAN } else { latency.percentile_micros(percent) }
}

/// Runs `threads` threads for `time`.
pub(super) fn run(
    sizes: &FloDbSizes,
    db: &Db,
    mix: OperationMix,
    threads: u32,
    time: Duration,
) -> Result<ThreadedRun> {
    let (keys, before) = (sizes.keys(), db.stats());
    let is_over = AtomicBool::new(false);
    let start = Instant::now();
    let done: Vec<terrane::Result<ThreadCounts>> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..threads)
            .map(|thread| {
                let (is_over, mut mix) = (&is_over, mix);
                if mix.one_writer && thread > 0 {
                    (mix.puts, mix.deletes) = (0, 0);
                }
                let random = random_numbers(sizes.seed + u64::from(thread));
                scope.spawn(move || client(db, mix, keys, is_over, random))
            })
            .collect();
        std::thread::sleep(time);
        is_over.store(true, Ordering::Relaxed);
        clients.into_iter().filter_map(|client| client.join().ok()).collect()
    });
    let seconds = start.elapsed().as_secs_f64();
    let mut sum = ThreadCounts::default();
    for done in done {
        sum.add(&done?);
    }
    let after = db.stats();
    let scans = (after.scans - before.scans).max(1) as f64;
    let of_scans = |after: u64, before: u64| (after - before) as f64 * 1e3 / scans;
    let writes = (after.writes - before.writes).max(1) as f64;
    let percent = |after: u64, before: u64| (after - before) as f64 / seconds / 1e4;
    let background = |stats: &terrane::Stats| stats.flush_micros + stats.compaction_cpu_micros;
    let (front, front_before) = (after.membuffer, before.membuffer);
    let flushed =
        (after.flush_bytes_written - before.flush_bytes_written) as f64 / mix.mean_entry_bytes();
    let flush_millis = (after.flush_micros - before.flush_micros) as f64 / 1e3;
    Ok(ThreadedRun {
        shared: of_scans(front.scan_piggybacks, front_before.scan_piggybacks),
        in_membuffer: (front.writes - front_before.writes) as f64 * 100.0 / writes,
        background: percent(background(&after), background(&before)),
        draining: percent(front.drain_micros, front_before.drain_micros),
        stalled: percent(after.stalls.total_micros(), before.stalls.total_micros())
            / f64::from(threads),
        operations: sum.operations as f64 / seconds / 1e3,
        keys: sum.keys as f64 / seconds / 1e3,
        restarts: of_scans(after.membuffer.scan_restarts, before.membuffer.scan_restarts),
        fallbacks: of_scans(after.membuffer.scan_fallbacks, before.membuffer.scan_fallbacks),
        write_p50: percentile(&sum.writes, 50.0),
        write_p99: percentile(&sum.writes, 99.0),
        get_p50: percentile(&sum.gets, 50.0),
        get_p99: percentile(&sum.gets, 99.0),
        persisted: flushed / flush_millis,
    })
}
