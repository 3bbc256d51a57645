//! Measures the costs of entries with the engine, and the device.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use terrane::storage::MemoryStorage;
use terrane::{Background, Db, Design, Durability, Options, Stats};
use terrane_policy::Values;
use terrane_policy::cost::POINTER_BYTES;
use terrane_sim::{MachineCosts, MachineModel};

use super::device;
use crate::host::scratch::Scratch;

/// A prime: its multiples modulo a count that it does not divide are a pseudo-random permutation.
const SCATTER: u64 = 2_654_435_761;

/// The segment size for databases in memory, where whole segments are allocated and a few spares
/// are kept.
pub const LOG_SEGMENT_BYTES: u64 = 4 << 20;

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;

/// Returns the `number`-th of `count` keys, which are spread evenly over the key space.
pub fn key(number: u64, count: u64) -> [u8; KEY_BYTES] {
    let place = number * (u64::MAX / count.max(1));
    let mut key = [b'-'; KEY_BYTES];
    key[..8].copy_from_slice(&place.to_be_bytes());
    key
}

/// Returns the `number`-th number of a pseudo-random permutation of the numbers below `count`.
pub fn scattered(number: u64, count: u64) -> u64 {
    let place = u128::from(number) * u128::from(SCATTER) % u128::from(count.max(1));
    u64::try_from(place).unwrap_or(number)
}

/// The number of tombstones whose mean size is measured.
const TOMBSTONES_MAX: u64 = 20_000;

/// The durations of a round of writes, flushes and one full merge.
struct CalibrationRound {
    put_seconds: f64,
    stats: Stats,
    /// Entries of the first immutable memtable.
    buffer_entries: f64,
    buffer_bytes: f64,
    /// The mean bytes of a tombstone in a table.
    tombstone_bytes: f64,
}

/// Measures the constants of this machine, and the device of `dir`.
pub fn measure(count: u64, record_bytes: usize, dir: Option<&Path>) -> Result<MachineModel> {
    let scratch = match dir {
        Some(dir) => {
            let made = tempfile::Builder::new().prefix("terrane-calibrate-").tempdir_in(dir);
            let made =
                made.with_context(|| format!("cannot create a directory in {}", dir.display()))?;
            Scratch::of(made.keep())
        }
        None => Scratch::temporary("terrane-calibrate-")?,
    };
    let device = device::measure(scratch.path())?;
    if !device.is_direct {
        let _ = writeln!(
            std::io::stderr(),
            "note: the file system refuses direct I/O, so reads may come from memory"
        );
    }
    let inline = Values::Inline;
    let on_disk = round(count, record_bytes, inline, Some(&scratch.path().join("db")))?;
    let put_seconds = on_disk.put_seconds / on_disk.stats.writes.max(1) as f64;
    let costs = MachineCosts { write_seconds: put_seconds, ..costs(count, record_bytes, inline)? };
    Ok(MachineModel { device: device.device, costs, ..MachineModel::default() })
}

/// Measures the costs of entries in memory, for a design with this `values` setting.
pub fn costs(count: u64, record_bytes: usize, values: Values) -> Result<MachineCosts> {
    let in_memory = round(count, record_bytes, values, None)?;
    let CalibrationRound { stats, .. } = &in_memory;
    let entries = stats.writes.max(1) as f64;
    let flush_seconds = stats.flush_micros as f64 / 1e6 / entries;
    let merge_seconds = stats.latencies.compaction.sum_micros() as f64 / 1e6 / entries;
    let record = record_bytes as f64;
    let is_separated = values.is_separated(record_bytes.saturating_sub(KEY_BYTES) as u64);
    let in_table = if is_separated { KEY_BYTES as f64 + POINTER_BYTES } else { record };
    Ok(MachineCosts {
        write_seconds: in_memory.put_seconds / entries,
        flush_seconds,
        merge_seconds,
        memtable_entry_bytes: (in_memory.buffer_bytes / in_memory.buffer_entries - record).max(0.0),
        table_entry_bytes: (stats.table_bytes as f64 / stats.table_entries.max(1) as f64
            - in_table),
        table_tombstone_bytes: in_memory.tombstone_bytes - KEY_BYTES as f64,
    })
}

/// Writes every record once and merges all runs, in memory unless `dir` is given.
fn round(
    count: u64,
    record_bytes: usize,
    values: Values,
    dir: Option<&Path>,
) -> Result<CalibrationRound> {
    let buffer_bytes = (count * record_bytes as u64 / 8).clamp(64 << 10, 16 << 20);
    let text = format!("tiering T=64; delay=never; stop=never; buffers=64; buffer={buffer_bytes}");
    let mut design: Design = text.parse()?;
    design.values = values;
    let db = open(design, dir, 16 << 30, Durability::Process)?;
    let value = vec![b'v'; record_bytes.saturating_sub(KEY_BYTES)];
    let mut put_seconds = 0.0;
    for number in 0..count {
        let start = Instant::now();
        db.put(key(scattered(number, count), count), &value)?;
        put_seconds += start.elapsed().as_secs_f64();
        if number % 64 == 63 {
            while db.run_background_job()? {}
        }
    }
    let oldest: u64 = db
        .tree()
        .shape
        .level(0)
        .runs
        .last()
        .map_or(1, |run| run.tables.iter().map(|table| table.entries).sum());
    db.flush()?;
    db.compact_range(..)?;
    let stats = db.stats();
    let tombstone_bytes = tombstone_bytes(&db, count.min(TOMBSTONES_MAX), count)?;
    db.close()?;
    let buffer_entries = oldest.max(1) as f64;
    let buffer_bytes = buffer_bytes as f64;
    Ok(CalibrationRound { put_seconds, stats, buffer_entries, buffer_bytes, tombstone_bytes })
}

/// Deletes some keys, and returns the mean bytes of their tombstones in the flushed tables.
fn tombstone_bytes(db: &Db, deletes: u64, count: u64) -> Result<f64> {
    let before = db.stats().flush_bytes_written;
    for number in 0..deletes {
        db.delete(key(scattered(number, count), count))?;
        if number % 64 == 63 {
            while db.run_background_job()? {}
        }
    }
    db.flush()?;
    let written = db.stats().flush_bytes_written - before;
    Ok(written as f64 / deletes.max(1) as f64)
}

/// Opens a database without background threads.
pub fn open(design: Design, dir: Option<&Path>, memory: u64, durability: Durability) -> Result<Db> {
    let options = Options::new()
        .design(design)
        .memory_budget(memory)
        .durability(durability)
        .background(Background::Inline);
    Ok(match dir {
        Some(dir) => options.open(dir)?,
        None => {
            let options = options.log_segment_bytes(LOG_SEGMENT_BYTES);
            options.storage(Arc::new(MemoryStorage::new(1))).open("/simulated")?
        }
    })
}
