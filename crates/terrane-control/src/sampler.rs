//! Takes samples of a database.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use terrane::{
    CurrentStall, Db, ErrorKind, JobView, Keyspace, Maintenance, OperationCounts, Stats,
};

use crate::sample::{Io, Job, Latency, Level, Memory, Rates, SCHEMA, Sample, Stall, Tree};

/// Takes samples of a database, each of the activity since the previous one.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let db = terrane::Db::open(dir.path())?;
/// let mut sampler = terrane_control::Sampler::new(&db);
/// db.put("key", "value")?;
/// let sample = sampler.sample();
/// assert_eq!(sample.operations.writes, 1);
/// assert_eq!(sample.health, "ok");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Sampler {
    db: Db,
    maintenance: Maintenance,
    before: Before,
}

/// The counters at the previous sample.
#[derive(Debug)]
struct Before {
    at: Instant,
    stats: Stats,
    operations: OperationCounts,
    jobs: Vec<JobView>,
}

impl Before {
    fn now(db: &Db, maintenance: &Maintenance) -> Self {
        Self {
            at: Instant::now(),
            stats: db.stats(),
            operations: db.operations(),
            jobs: maintenance.jobs(),
        }
    }
}

/// Returns the present time in microseconds since the Unix epoch.
pub(crate) fn now_micros() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    micros(now)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Sampler {
    /// Begins the first interval.
    pub fn new(db: &Db) -> Self {
        let maintenance = Maintenance::of(db);
        Self { db: db.clone(), before: Before::now(db, &maintenance), maintenance }
    }

    /// Ends an interval, and begins the next one. Takes about as long as a few hundred lookups.
    pub fn sample(&mut self) -> Sample {
        let now = Before::now(&self.db, &self.maintenance);
        let before = std::mem::replace(&mut self.before, now);
        let now = &self.before;
        let elapsed = now.at.duration_since(before.at);
        let seconds = elapsed.as_secs_f64().max(1e-6);
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let (stats, earlier) = (&now.stats, &before.stats);
        let (health, error) = self.health(stats);
        Sample {
            schema: SCHEMA,
            at_micros: now_micros(),
            interval_micros: micros(elapsed),
            health: health.to_owned(),
            error,
            operations: now.operations,
            per_second: rates(&now.operations.since(&before.operations), seconds),
            latencies: latencies(stats, earlier),
            stalls: stats.stalls.now.iter().map(stall).collect(),
            stalled_share: rate(stats.stalls.total_micros(), earlier.stalls.total_micros()) / 1e6,
            jobs: now.jobs.iter().map(|job| with_speed(job, &before.jobs, seconds)).collect(),
            memory: memory(stats),
            io: Io {
                log_written: rate(stats.log_bytes_written, earlier.log_bytes_written),
                flush_written: rate(stats.flush_bytes_written, earlier.flush_bytes_written),
                compaction_read: rate(stats.compaction_bytes_read, earlier.compaction_bytes_read),
                compaction_written: rate(
                    stats.compaction_bytes_written,
                    earlier.compaction_bytes_written,
                ),
                table_read: rate(stats.table_bytes_read, earlier.table_bytes_read),
            },
            write_amplification: stats.write_amplification(),
            cache_hits: cache_hits(stats, earlier),
            snapshots: stats.snapshots as u64,
            trees: keyspaces(&self.db).iter().map(tree).collect(),
        }
    }

    fn health(&self, stats: &Stats) -> (&'static str, Option<String>) {
        match self.maintenance.check_writable() {
            Err(error) if error.kind() == ErrorKind::Invalid => ("read-only", None),
            Err(error) => ("failed", Some(error.to_string())),
            Ok(()) => {
                let error = stats.error.as_ref().map(ToString::to_string);
                let stalls = &stats.stalls.now;
                let health = match stalls.iter().any(|stall| stall.stops) {
                    _ if error.is_some() => "failed",
                    true => "stopped",
                    false if stalls.is_empty() => "ok",
                    false => "delayed",
                };
                (health, error)
            }
        }
    }
}

/// Returns the keyspaces of a database.
pub(crate) fn keyspaces(db: &Db) -> Vec<Keyspace> {
    Maintenance::of(db).keyspaces()
}

/// Returns a keyspace; `None` if it does not exist. It is not created, even if it is dropped meanwhile.
pub(crate) fn existing(db: &Db, name: &str) -> Option<Keyspace> {
    keyspaces(db).into_iter().find(|known| known.name() == name)
}

fn rates(counts: &OperationCounts, seconds: f64) -> Rates {
    let rate = |count: u64| count as f64 / seconds;
    Rates {
        writes: rate(counts.writes),
        deletes: rate(counts.deletes),
        gets: rate(counts.gets),
        scans: rate(counts.scans),
        scan_entries: rate(counts.scan_entries),
        written_bytes: rate(counts.written_bytes),
    }
}

fn latencies(stats: &Stats, earlier: &Stats) -> Vec<Latency> {
    let since = stats.latencies.since(&earlier.latencies);
    let measured = since.all();
    // A kind without durations in the interval has no percentiles, and is left out.
    let summary = measured.iter().filter_map(|latency| {
        Some(Latency {
            name: latency.name.to_owned(),
            count: latency.times.count(),
            p50_micros: latency.times.percentile_micros(50.0)?,
            p99_micros: latency.times.percentile_micros(99.0)?,
            p999_micros: latency.times.percentile_micros(99.9)?,
            max_micros: latency.times.max_micros()?,
        })
    });
    summary.collect()
}

fn stall(stall: &CurrentStall) -> Stall {
    let CurrentStall { keyspace, stops, pressure, since, .. } = stall;
    Stall {
        keyspace: keyspace.to_string(),
        stops: *stops,
        cause: pressure.cause.to_string(),
        measured: pressure.measured.into(),
        delay_at: pressure.threshold.into(),
        stop_at: pressure.stop_at.into(),
        until: pressure.until(),
        micros: micros(*since),
        text: stall.to_string(),
    }
}

/// Adds the speed of a job, computed from the previous sample if the job was in it.
fn with_speed(view: &JobView, before: &[JobView], seconds: f64) -> Job {
    let speed = || {
        let remaining = view.remaining_bytes?;
        let earlier = before.iter().find(|job| job.id.is_some() && job.id == view.id);
        let (done, time) = match earlier.and_then(|job| job.remaining_bytes) {
            Some(earlier) => (earlier.saturating_sub(remaining), seconds),
            None => {
                let running = view.running_micros? as f64 / 1e6;
                (view.total_bytes.saturating_sub(remaining), running)
            }
        };
        (time > 0.0).then(|| done as f64 / time)
    };
    let bytes_per_second = speed();
    let left =
        |speed: f64| (speed > 0.0).then(|| view.remaining_bytes.map(|left| left as f64 / speed));
    Job {
        view: view.clone(),
        bytes_per_second,
        seconds_left: bytes_per_second.and_then(left).flatten(),
    }
}

fn memory(stats: &Stats) -> Memory {
    let memory = &stats.memory;
    Memory {
        budget: memory.budget_bytes,
        memtables: memory.memtable_bytes + memory.kept_memtable_bytes,
        cache: memory.cache_bytes,
        pinned: memory.pinned_bytes + memory.transaction_bytes,
        open_tables: memory.open_table_bytes,
        jobs: memory.job_bytes,
    }
}

fn cache_hits(stats: &Stats, earlier: &Stats) -> Option<f64> {
    let counts = |stats: &Stats| {
        let cache = &stats.cache;
        let hits = cache.data_hits + cache.index_hits + cache.filter_hits;
        (hits, hits + cache.data_misses + cache.index_misses + cache.filter_misses)
    };
    let ((hits, all), (hits_before, all_before)) = (counts(stats), counts(earlier));
    let (hits, all) = (hits.saturating_sub(hits_before), all.saturating_sub(all_before));
    (all > 0).then(|| (hits as f64 / all as f64).min(1.0))
}

fn tree(keyspace: &Keyspace) -> Tree {
    let view = keyspace.tree();
    let (shape, design) = (&view.shape, &view.design);
    let last = shape.last_level();
    let is_sized = design.strategy.size_tiered().is_some();
    let level = |(number, level): (usize, &terrane::policy::Level)| Level {
        runs: level.runs.len() as u64,
        tables: level.table_count() as u64,
        bytes: level.size_bytes(),
        capacity: (!is_sized).then(|| design.capacity_bytes(number, last)),
    };
    Tree {
        keyspace: view.keyspace.clone(),
        design: design.to_string(),
        memtable_bytes: view.memtable_bytes,
        memtable_capacity: design.buffer_bytes,
        immutable_memtables: view.immutable_memtables as u64,
        levels: shape.levels.iter().enumerate().map(level).collect(),
    }
}
