//! The child process: it measures one engine on one row, once.
//!
//! Loads what the row needs and settles it, unmeasured; runs the workload; settles what it wrote.
//! A separate process, so that memory, CPU time and written bytes belong to this engine and row only,
//! and no engine inherits the allocator state or page tables of another.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use rustix::fs::{Advice, fadvise, sync};
use terrane_workload::{
    Direction, Progress, Report, RunOptions, Silent, Store, StoreCounters, Workload, run,
};

use crate::engines::{self, Engine};
use crate::job::{Job, Measurement};
use crate::memory_limit;
use crate::process::{
    MemorySampler, cpu_seconds, storage_bytes_read, storage_bytes_written,
    system_call_bytes_written,
};
use crate::rows::{self, CacheState, Row};

/// Carries out `job`.
pub(crate) fn measure(job: &Job, progress: &dyn Progress) -> Result<Measurement> {
    let engine = engines::by_name(&job.engine)
        .ok_or_else(|| anyhow!("no engine '{}' in this build", job.engine))?;
    let row = rows::by_name(&job.row).ok_or_else(|| anyhow!("no row '{}'", job.row))?;
    let workload = row.workload()?;
    if let Some(entrance) = &job.memory_group {
        memory_limit::enter(entrance)?;
    }
    let mut options = row.options(job.num, job.reads, job.threads, job.seed);
    let begin = Instant::now();
    let store = loaded(engine, row, workload, job, &options)?;
    let load_seconds = begin.elapsed().as_secs_f64();
    options.distribution = job.distribution.as_deref().map(str::parse).transpose()?;

    let sampler = MemorySampler::start();
    let before = Reading::take();
    let report = run(&*store, workload, &options, progress)?;
    let timed = Reading::take();
    let counters_before_settling = store.counters();
    if workload.writes() {
        store.settle()?;
    }
    let settled = Reading::take();
    let (peak_anonymous_bytes, peak_resident_bytes) = sampler.stop();
    let settling = store.counters().since(&counters_before_settling);

    let disk_bytes = disk_bytes(&job.dir)?;
    let (live_entries, live_bytes) = live(&*store)?;
    let latency = report.latency.summary();
    Ok(Measurement {
        workload: workload.to_string(),
        distribution: report.distribution.map(|distribution| distribution.to_string()),
        num: options.num,
        key_bytes: options.key_size_bytes,
        value_bytes: options.value_size.max_bytes(),
        operations: report.operations,
        seconds: report.seconds,
        operations_per_second: report.operations_per_second(),
        operations_per_sample: report.operations_per_sample,
        mean_micros: latency.mean,
        p50_micros: latency.p50,
        p90_micros: latency.p90,
        p99_micros: latency.p99,
        p99_9_micros: latency.p99_9,
        max_micros: latency.max,
        slowest_second_share: report.slowest_second_share,
        writer_operations_per_second: report
            .writer
            .as_ref()
            .map(terrane_workload::WriterReport::operations_per_second),
        failures: report.failures(),
        user_bytes_written: report.user_bytes_written,
        load_seconds,
        settle_seconds: (settled.at - timed.at).as_secs_f64(),
        cpu_seconds: timed.cpu_seconds - before.cpu_seconds,
        settle_cpu_seconds: settled.cpu_seconds - timed.cpu_seconds,
        storage_bytes_written: settled.storage_bytes_written - before.storage_bytes_written,
        system_call_bytes_written: settled.system_call_bytes - before.system_call_bytes,
        storage_bytes_read: settled.storage_bytes_read - before.storage_bytes_read,
        engine_bytes_written: engine_bytes_written(&report, &settling),
        engine_stall_micros: report.counters.stall_micros,
        peak_anonymous_bytes,
        peak_resident_bytes,
        disk_bytes,
        live_bytes,
        live_entries,
    })
}

/// Returns the engine, settled and with the data that `workload` needs.
fn loaded(
    engine: &Engine,
    row: &Row,
    workload: Workload,
    job: &Job,
    options: &RunOptions,
) -> Result<Box<dyn Store>> {
    let open = || (engine.open)(&job.dir, &job.settings).context(engine.name);
    let store = open()?;
    let Some(load) = workload.loaded_by() else {
        return Ok(store);
    };
    run(&*store, load, options, &Silent)?;
    store.settle()?;
    // Write dirty pages back first: writeback would compete with the measured workload, and dirty
    // pages cannot be dropped from the cache.
    sync();
    match row.cache {
        CacheState::AsLoaded => return Ok(store),
        CacheState::Warm => {
            live(&*store)?;
            return Ok(store);
        }
        CacheState::Cold => {}
    }
    drop(store);
    for file in files(&job.dir)? {
        fadvise(File::open(&file)?, 0, None, Advice::DontNeed)?;
    }
    open()
}

/// The resource usage of the process at a point in time.
struct Reading {
    at: Instant,
    cpu_seconds: f64,
    storage_bytes_written: u64,
    system_call_bytes: u64,
    storage_bytes_read: u64,
}

impl Reading {
    fn take() -> Self {
        Self {
            at: Instant::now(),
            cpu_seconds: cpu_seconds(),
            storage_bytes_written: storage_bytes_written(),
            system_call_bytes: system_call_bytes_written(),
            storage_bytes_read: storage_bytes_read(),
        }
    }
}

/// The engine's counters over the timed part and the settling.
fn engine_bytes_written(report: &Report, settling: &StoreCounters) -> Option<u64> {
    Some(report.counters.storage_bytes_written? + settling.storage_bytes_written?)
}

/// The entries of a store, and the bytes of their keys and values.
fn live(store: &dyn Store) -> Result<(u64, u64)> {
    let mut bytes = 0;
    let entries = store.scan(None, Direction::Forward, usize::MAX, &mut |key, value| {
        bytes += (key.len() + value.len()) as u64;
    })?;
    Ok((entries as u64, bytes))
}

/// Returns the bytes of the blocks allocated to all files under `dir`.
fn disk_bytes(dir: &Path) -> Result<u64> {
    /// The unit of `st_blocks`, which does not depend on the file system.
    const BLOCK_BYTES: u64 = 512;
    let mut bytes = 0;
    for file in files(dir)? {
        // Ignore files that disappear while the directory is being read.
        bytes += fs::metadata(file).map_or(0, |file| file.blocks() * BLOCK_BYTES);
    }
    Ok(bytes)
}

/// Returns all files under `dir`.
fn files(dir: &Path) -> Result<Vec<std::path::PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(_) => found.push(entry.path()),
                Err(_) => {}
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Compression, Durability, Settings};

    fn job(engine: &str, row: &str, dir: &Path) -> Job {
        let settings = Settings {
            memtable_bytes: 1 << 20,
            cache_bytes: 8 << 20,
            block_bytes: 4096,
            filter_bits_per_key: 10,
            background_threads: 2,
            compression: Compression::None,
            durability: Durability::Process,
            budget_bytes_per_second: None,
            memory_limit_bytes: None,
            is_direct: false,
        };
        Job {
            engine: engine.into(),
            row: row.into(),
            dir: dir.into(),
            num: 4000,
            reads: None,
            threads: 1,
            seed: 1,
            distribution: None,
            memory_group: None,
            settings,
        }
    }

    #[test]
    fn every_row_is_measured_on_the_map() {
        for row in &rows::ALL {
            let dir = tempfile::tempdir().unwrap();
            let measured = measure(&job("mem", row.name, dir.path()), &Silent).unwrap();
            // An engine without files has no data after reopening with cold caches.
            let is_lost = row.cache == CacheState::Cold;
            assert_eq!(measured.failures > 0, is_lost, "{}: {measured:?}", row.name);
            assert!(measured.operations > 0 && measured.seconds > 0.0);
            assert_eq!(measured.disk_bytes, 0);
            let entry_bytes = (measured.key_bytes + measured.value_bytes) as u64;
            assert_eq!(measured.live_bytes, measured.live_entries * entry_bytes, "{}", row.name);
        }
    }

    #[cfg(feature = "redb")]
    #[test]
    fn what_an_engine_writes_and_keeps_on_disk_is_measured() {
        let dir = tempfile::tempdir().unwrap();
        let measured = measure(&job("redb", "fillrandom", dir.path()), &Silent).unwrap();
        assert_eq!(measured.user_bytes_written, 4000 * 116);
        assert_eq!(measured.live_bytes, 4000 * 116);
        assert!(measured.disk_bytes >= measured.live_bytes);
        assert!(measured.system_call_bytes_written >= measured.user_bytes_written);
        assert!(measured.space_ratio().unwrap() >= 1.0);
        assert!(measured.cpu_micros_per_operation().unwrap() > 0.0);
        let dir = tempfile::tempdir().unwrap();
        let measured = measure(&job("redb", "readcold", dir.path()), &Silent).unwrap();
        assert_eq!(measured.failures, 0);
        assert_eq!(measured.write_amplification(), None);
    }

    #[test]
    fn unknown_engines_and_rows_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(measure(&job("oracle", "fillseq", dir.path()), &Silent).is_err());
        assert!(measure(&job("mem", "fill", dir.path()), &Silent).is_err());
    }
}
