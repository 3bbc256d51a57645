//! What the manifest remembers of compactions and deletes.

use std::path::Path;

use super::log::{SegmentReport, log};
use crate::error::{Error, Result};
use crate::manifest::{JobRecord, ManifestState, load, replay};
use crate::storage::DiskStorage;
use crate::types::KeyspaceId;

/// A compaction that was done.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JobReport {
    /// The keyspace.
    pub keyspace: String,
    /// When it ended, in microseconds since the Unix epoch.
    pub ended_micros: u64,
    /// How long it took, in microseconds.
    pub took_micros: u64,
    /// What it took and where that went.
    pub what: String,
    /// Why: the trigger with what was measured and its threshold, and how tables were chosen.
    pub why: String,
    /// Tables that were merged into others, or dropped.
    pub tables_rewritten: u64,
    /// Tables that only changed place.
    pub tables_moved: u64,
    /// Bytes that it was going to read, and at most to write.
    pub predicted_bytes: u64,
    /// Bytes of the tables that it read.
    pub read_bytes: u64,
    /// Bytes of the tables that it wrote.
    pub written_bytes: u64,
    /// How old the oldest tombstone was, if the job ended all of those that it read.
    pub persisted_micros: Option<u64>,
}

/// The bytes that one compaction reads, and writes again, in a second, by those that are remembered;
/// `None` if none of them merged anything.
pub fn compaction_rate(jobs: &[JobReport]) -> Option<f64> {
    let merges = jobs.iter().filter(|job| job.read_bytes > 0);
    let (bytes, micros) = merges.fold((0.0, 0.0), |(bytes, micros), job| {
        (bytes + job.read_bytes as f64, micros + job.took_micros as f64)
    });
    (micros > 0.0).then_some(bytes * 1e6 / micros)
}

/// How deletes fare in a database.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeletesReport {
    /// The time within which deletes are to be persistent, in microseconds, if there is one.
    pub threshold_micros: Option<u64>,
    /// The longest that it took, as far back as jobs are remembered, in microseconds.
    pub worst_micros: Option<u64>,
    /// Each keyspace.
    pub keyspaces: Vec<KeyspaceDeletes>,
    /// The files of the log that hold writes, oldest first: what they hold is there, whatever became
    /// of it in tables.
    pub log: Vec<LogFile>,
}

/// A file of the log with what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogFile {
    /// Its name.
    pub name: String,
    /// Batches in it.
    pub batches: u64,
    /// Deletes of keys and of ranges among their operations.
    pub deletes: u64,
    /// When it was begun, in microseconds since the Unix epoch: nothing in it is older.
    pub begun_micros: u64,
    /// When the next one was begun: nothing in it is younger. `None` for the one that is written.
    pub ended_micros: Option<u64>,
}

/// The deletes of a keyspace that are in tables and not persistent yet.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct KeyspaceDeletes {
    /// The name.
    pub keyspace: String,
    /// Tables with tombstones, as the number, the level and the time of the oldest in microseconds
    /// since the Unix epoch; the oldest first.
    pub tables: Vec<(u64, usize, u64)>,
    /// Tombstones of keys.
    pub tombstones: u64,
    /// Tombstones of ranges.
    pub range_tombstones: u64,
}

impl DeletesReport {
    /// Tables whose oldest tombstone is older than it may be at `now_micros`, and files of the log of
    /// which all is.
    pub fn violations(&self, now_micros: u64) -> usize {
        let Some(threshold) = self.threshold_micros else { return 0 };
        let tables = self.keyspaces.iter().flat_map(|keyspace| &keyspace.tables);
        let oldest = tables.map(|(_, _, since)| *since);
        let youngest = self.log.iter().filter_map(|file| file.ended_micros);
        let all = oldest.chain(youngest);
        all.filter(|since| now_micros.saturating_sub(*since) > threshold).count()
    }
}

/// The compactions that are remembered, oldest first.
///
/// # Errors
/// There is no database, or its manifest is damaged.
pub fn jobs(dir: impl AsRef<Path>) -> Result<Vec<JobReport>> {
    let state = state(dir.as_ref())?;
    Ok(state.jobs.iter().map(|job| report(&state, job)).collect())
}

/// The deletes that are not persistent yet, and how long it took those that are.
///
/// # Errors
/// There is no database, or its manifest is damaged.
pub fn deletes(dir: impl AsRef<Path>) -> Result<DeletesReport> {
    let state = state(dir.as_ref())?;
    let option = state.options.get("delete_persistence");
    let threshold = option.and_then(|text| terrane_policy::units::parse_micros(text).ok());
    let keyspaces = state.keyspaces.values().map(|keyspace| {
        let with = keyspace.shape.places().filter_map(|place| {
            let since = place.table.oldest_tombstone_micros?;
            Some((place.table.id.0, place.level, since))
        });
        let mut tables: Vec<_> = with.collect();
        tables.sort_by_key(|(_, _, since)| *since);
        KeyspaceDeletes {
            keyspace: keyspace.name.clone(),
            tables,
            tombstones: keyspace.shape.tables().map(|table| table.tombstones).sum(),
            range_tombstones: keyspace.shape.tables().map(|table| table.range_tombstones).sum(),
        }
    });
    Ok(DeletesReport {
        threshold_micros: threshold,
        worst_micros: state.jobs.iter().filter_map(|job| job.persisted_micros).max(),
        keyspaces: keyspaces.collect(),
        log: log_files(dir.as_ref())?,
    })
}

/// All files of the log that hold batches, those that wait to be written again among them.
fn log_files(dir: &Path) -> Result<Vec<LogFile>> {
    let segments = log(dir)?.segments;
    let begun: Vec<u64> = segments.iter().map(|segment| segment.created_micros).collect();
    let of = |(index, segment): (usize, &SegmentReport)| {
        let batches = segment.records.iter().filter(|record| record.kind == "batch");
        let operations = batches.clone().flat_map(|record| &record.operations);
        LogFile {
            name: segment.path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            batches: batches.count() as u64,
            deletes: operations.filter(|operation| operation.kind != "put").count() as u64,
            begun_micros: segment.created_micros,
            ended_micros: begun.get(index + 1).copied(),
        }
    };
    let files = segments.iter().enumerate().map(of);
    Ok(files.filter(|file| file.batches > 0).collect())
}

pub(super) fn state(dir: &Path) -> Result<ManifestState> {
    let loaded = load(&DiskStorage, dir)?;
    if loaded.edits.is_empty() {
        let found = format!("missing in {}", dir.display());
        return Err(Error::invalid("database", found, "there to be looked at"));
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
