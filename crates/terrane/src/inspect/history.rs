//! The history of compactions and deletes in the manifest.

use std::path::Path;

use super::log::{SegmentReport, log};
use crate::base::clock::{Clock, SystemClock};
use crate::base::error::{Error, Result};
use crate::base::types::KeyspaceId;
use crate::files::manifest::{JobRecord, ManifestState, load_shared, replay};
use crate::files::shared_read::read_shared;
use crate::files::storage::DiskStorage;

/// A completed compaction.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JobReport {
    /// The keyspace.
    pub keyspace: String,
    /// The end time, in microseconds since the Unix epoch.
    pub ended_micros: u64,
    /// The duration, in microseconds.
    pub took_micros: u64,
    /// The inputs and the output.
    pub what: String,
    /// The reason: the trigger with the measured value and its threshold, and the movement rule.
    pub why: String,
    /// Tables that were rewritten or dropped.
    pub tables_rewritten: u64,
    /// Tables that were moved without being rewritten.
    pub tables_moved: u64,
    /// The prediction: bytes to read plus the maximum number of bytes to write.
    pub predicted_bytes: u64,
    /// Bytes of the tables read.
    pub read_bytes: u64,
    /// Bytes of the tables written.
    pub written_bytes: u64,
    /// The age of the oldest tombstone, if the compaction dropped all tombstones that it read, or
    /// of the oldest dead value in the value files that it removed.
    pub persisted_micros: Option<u64>,
}

/// Returns how many bytes per second a compaction reads and rewrites, averaged over `jobs`; `None`
/// if none of the jobs merged anything. Values that move between value files and tables also count,
/// as they do in forecasts.
pub fn compaction_rate(jobs: &[JobReport]) -> Option<f64> {
    let merges = jobs.iter().filter(|job| job.read_bytes > 0);
    let (bytes, micros) = merges.fold((0.0, 0.0), |(bytes, micros), job| {
        // A job reads the keys of separated values from tables, and writes the values that it
        // moves.
        let moved = job.read_bytes.max(job.written_bytes);
        (bytes + moved as f64, micros + job.took_micros as f64)
    });
    (micros > 0.0).then_some(bytes * 1e6 / micros)
}

/// The state of delete persistence in a database.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeletesReport {
    /// The option `delete_persistence` in microseconds, if set.
    pub threshold_micros: Option<u64>,
    /// The longest time that a delete took to become persistent in the recorded job history, in
    /// microseconds.
    pub worst_micros: Option<u64>,
    /// The keyspaces.
    pub keyspaces: Vec<KeyspaceDeletes>,
    /// The log files that contain writes, oldest first. They contain deleted values even if tables
    /// no longer do.
    pub log: Vec<LogFile>,
}

/// A log file that contains writes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogFile {
    /// The file name.
    pub name: String,
    /// The number of batches.
    pub batches: u64,
    /// The number of deletes and range deletes in the batches.
    pub deletes: u64,
    /// The creation time of the segment, in microseconds since the Unix epoch; all of its writes are
    /// newer.
    pub begun_micros: u64,
    /// The creation time of the next segment, which follows all writes in this one; `None` for the
    /// current segment.
    pub ended_micros: Option<u64>,
}

/// The deletes of a keyspace that are in tables and not yet persistent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct KeyspaceDeletes {
    /// The name of the keyspace.
    pub keyspace: String,
    /// Tables with tombstones, oldest tombstone first: table number, level, and flush time of the
    /// oldest tombstone in microseconds since the Unix epoch.
    pub tables: Vec<(u64, usize, u64)>,
    /// Point tombstones.
    pub tombstones: u64,
    /// Range tombstones.
    pub range_tombstones: u64,
    /// Value files with dead values next to live ones, oldest dead value first: file number, and
    /// time of the oldest delete that may have deleted one of its values, in microseconds since the
    /// Unix epoch.
    pub value_files: Vec<(u64, u64)>,
}

impl DeletesReport {
    /// Counts violations of the threshold at `now_micros`: tables whose oldest tombstone, value
    /// files whose oldest dead value, and log files whose newest possible write is older than the
    /// threshold.
    pub fn violations(&self, now_micros: u64) -> usize {
        let Some(threshold) = self.threshold_micros else { return 0 };
        let tables = self.keyspaces.iter().flat_map(|keyspace| &keyspace.tables);
        let oldest = tables.map(|(_, _, since)| *since);
        let values = self.keyspaces.iter().flat_map(|keyspace| &keyspace.value_files);
        let oldest = oldest.chain(values.map(|(_, since)| *since));
        let youngest = self.log.iter().filter_map(|file| file.ended_micros);
        let all = oldest.chain(youngest);
        all.filter(|since| now_micros.saturating_sub(*since) > threshold).count()
    }
}

/// Returns the job history of a database, oldest first.
///
/// # Errors
/// Fails if the directory contains no database or the manifest is corrupt.
pub fn jobs(dir: impl AsRef<Path>) -> Result<Vec<JobReport>> {
    let dir = dir.as_ref();
    let state = read_shared(&DiskStorage, dir, || state(dir))?;
    Ok(state.jobs.iter().map(|job| report(&state, job)).collect())
}

/// Returns the deletes that are not yet persistent, and the longest time that a past delete took
/// to become persistent.
///
/// # Errors
/// Fails if the directory contains no database or the manifest is corrupt.
pub fn deletes(dir: impl AsRef<Path>) -> Result<DeletesReport> {
    let dir = dir.as_ref();
    let state = read_shared(&DiskStorage, dir, || state(dir))?;
    let option = state.options.get("delete_persistence");
    let now = SystemClock.now_micros();
    let threshold = option.and_then(|text| terrane_policy::units::parse_micros(text).ok());
    let keyspaces = state.keyspaces.values().map(|keyspace| {
        let with = keyspace.shape.places().filter_map(|place| {
            let since = place.table.dead_since(None).filter(|&since| since <= now)?;
            Some((place.table.id.0, place.level, since))
        });
        let mut tables: Vec<_> = with.collect();
        tables.sort_by_key(|(_, _, since)| *since);
        let files = keyspace.shape.value_files.iter();
        let mut value_files: Vec<_> =
            files.filter_map(|file| Some((file.id.0, file.oldest_dead_micros?))).collect();
        value_files.sort_by_key(|(_, since)| *since);
        KeyspaceDeletes {
            keyspace: keyspace.name.clone(),
            tables,
            tombstones: keyspace.shape.tables().map(|table| table.tombstones).sum(),
            range_tombstones: keyspace.shape.tables().map(|table| table.range_tombstones).sum(),
            value_files,
        }
    });
    Ok(DeletesReport {
        threshold_micros: threshold,
        worst_micros: state.jobs.iter().filter_map(|job| job.persisted_micros).max(),
        keyspaces: keyspaces.collect(),
        log: log_files(dir)?,
    })
}

/// Returns all log files that contain batches, including recycled files that await reuse.
fn log_files(dir: &Path) -> Result<Vec<LogFile>> {
    let segments = log(dir)?.segments;
    let begun: Vec<u64> = segments.iter().map(|segment| segment.created_micros).collect();
    let of = |(index, segment): (usize, &SegmentReport)| {
        let batches = segment.records.iter().filter(|record| record.kind == "batch");
        let operations = batches.clone().flat_map(|record| &record.operations);
        LogFile {
            name: segment.path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            batches: batches.count() as u64,
            deletes: operations.filter(|operation| operation.kind.starts_with("delete")).count()
                as u64,
            begun_micros: segment.created_micros,
            ended_micros: begun.get(index + 1).copied(),
        }
    };
    let files = segments.iter().enumerate().map(of);
    Ok(files.filter(|file| file.batches > 0).collect())
}

pub(super) fn state(dir: &Path) -> Result<ManifestState> {
    let loaded = load_shared(&DiskStorage, dir)?;
    if loaded.edits.is_empty() {
        return Err(Error::NoDatabase { path: dir.into() });
    }
    Ok(replay(&loaded, dir)?.state)
}

fn report(state: &ManifestState, job: &JobRecord) -> JobReport {
    JobReport {
        keyspace: name_of(state, job.keyspace),
        ended_micros: job.ended_micros,
        took_micros: job.took_micros,
        what: job.what.clone(),
        why: job.why.clone(),
        tables_rewritten: job.tables_rewritten,
        tables_moved: job.tables_moved,
        predicted_bytes: job.predicted_bytes,
        read_bytes: job.read_bytes,
        written_bytes: job.written_bytes,
        persisted_micros: job.persisted_micros,
    }
}

pub(super) fn name_of(state: &ManifestState, id: KeyspaceId) -> String {
    let keyspace = state.keyspaces.get(&id);
    keyspace.map_or_else(|| format!("number {id}, dropped"), |keyspace| keyspace.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change that moved 78 MiB of values in half a second was predicted to take minutes.
    #[test]
    fn values_that_move_count_in_the_rate() {
        let job = |read_bytes, written_bytes| JobReport {
            keyspace: "default".into(),
            ended_micros: 9_000_000,
            took_micros: 500_000,
            what: String::new(),
            why: String::new(),
            tables_rewritten: 1,
            tables_moved: 0,
            predicted_bytes: 0,
            read_bytes,
            written_bytes,
            persisted_micros: None,
        };
        assert_eq!(compaction_rate(&[job(1000, 800)]), Some(2000.0));
        assert_eq!(compaction_rate(&[job(1000, 50_000)]), Some(100_000.0));
        assert_eq!(compaction_rate(&[job(0, 0)]), None);
    }
}
