//! The end of the log, where one writer at a time appends records.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::format::{HEADER_BYTES, RecordKind};
use super::notes::{NOTES_OFFSET, Notes};
use super::refusal::Refusal;
use super::requests::SegmentRequests;
use super::retained_segments::RetainedSegments;
use super::segment::{ChainLink, CurrentSegment, FreeSegment, begin, create_file};
use super::segment_file_number;
use super::{LogRetention, LogSync, Replayed, ReplayedFile, SegmentDirectory};
use crate::base::clock::Clock;
use crate::base::error::{Error, Result};
use crate::base::stats::{Counter, Counters};
use crate::base::types::Lsn;
use crate::files::storage::{DirectoryLock, Segment, Storage};

/// Settings of the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogConfig {
    /// The length of a segment, unless a record needs more.
    pub(crate) segment_bytes: u64,
    /// True if freed files are reused, which avoids allocations in the file system. A reused file
    /// keeps its old records until they are overwritten.
    pub(crate) reuses_files: bool,
    /// True if files of an earlier opening may have second names as value files.
    pub(crate) may_be_linked: bool,
    /// How long segments are retained after no tree needs them; `None` if they are freed at once.
    pub(crate) retention: Option<LogRetention>,
    /// The earliest position for readers of changes, if an earlier opening began to retain segments.
    /// Parts of earlier segments may never have been synced. With `None`, readers begin with this
    /// opening.
    pub(crate) retained_from: Option<Lsn>,
}

/// The length of a log's first segment. It is short so that a small database takes little space. Each
/// further segment is [`GROWTH`] times as long as the previous one, up to the configured length.
pub(super) const FIRST_SEGMENT_BYTES: u64 = 4 << 20;
pub(super) const GROWTH: u64 = 4;

/// The length of a log's first segment if segments are retained. It is shorter because every opening
/// begins a segment.
const FIRST_KEPT_SEGMENT_BYTES: u64 = 64 << 10;

/// The length of a segment while the disk is full, for hundreds of deletes.
pub(super) const SHORT_SEGMENT_BYTES: u64 = 16 << 10;

/// The maximum number of free segments.
pub(super) const FREE_SEGMENTS_MAX: usize = 2;

/// The database around a log.
pub(crate) struct LogEnvironment {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) dir: PathBuf,
    /// Lists the segments for threads without the lock of the log.
    pub(crate) segments: Arc<SegmentDirectory>,
    pub(crate) database: u64,
    /// True if records are written through a map, where the storage offers one.
    pub(crate) is_mapped: bool,
    /// The lock of the directory, checked before a segment begins; `None` if no other process can use
    /// the directory.
    pub(crate) lock: Option<DirectoryLock>,
}

impl LogEnvironment {
    /// Does something for which writers wait, and counts the time.
    pub(super) fn timing_wait<T>(&self, work: impl FnOnce() -> T) -> T {
        let begin = self.clock.now_micros();
        let done = work();
        let waited = self.clock.now_micros().saturating_sub(begin);
        self.counters.add(Counter::LogWaitMicros, waited);
        done
    }
}

/// A file of the log, and the length of its header and records.
#[derive(Debug, Clone)]
pub(crate) struct LogCopy {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

/// The end of the log. Its lock serializes writers.
pub(crate) struct LogWriter {
    pub(super) environment: LogEnvironment,
    pub(super) config: LogConfig,
    pub(super) sync: Arc<LogSync>,
    pub(super) current: CurrentSegment,
    /// The segments that have ended and that trees may need, oldest first.
    pub(super) full: Vec<FullSegment>,
    /// The older segments, which are retained for readers of changes.
    pub(super) retained: RetainedSegments,
    /// The earliest position for readers of changes.
    pub(super) changes_from: Lsn,
    /// The files of segments that have or may get second names as value files; they are not reused.
    pub(super) linked: BTreeSet<PathBuf>,
    /// The files that can become the next segment.
    pub(super) free_segments: Vec<FreeSegment>,
    /// The number of free segments that are kept.
    pub(super) free_segments_max: usize,
    /// The number of segments that become free once they are synced.
    pub(super) being_cleaned: usize,
    /// The notes in the header of the current segment.
    pub(super) notes: Notes,
    /// The number of users, such as a checkpoint, that need all files of the log.
    pub(super) pins: usize,
    /// True if a thread is creating a free segment.
    pub(super) is_creating_segment: bool,
    /// The offset in the current segment from which a free segment is due again after a failure.
    pub(super) creation_retry_at: u64,
    /// True if new segments are as short as possible, because the disk is full.
    pub(super) is_short: bool,
    /// The last refusal of a new file by a full disk, until a segment begins or is freed.
    pub(super) refusal: Option<Refusal>,
    pub(super) next_file: u64,
    /// The largest segment number used so far, even if that segment failed to begin.
    pub(super) newest_segment: u64,
    pub(super) scratch: Vec<u8>,
    pub(super) encoded: Vec<u8>,
    /// An encoded record to be written together with the next one.
    pub(super) before: Vec<u8>,
    /// The position of the last `Synced` record.
    pub(super) said_synced: Lsn,
    /// True once a refused map was reported.
    is_refusal_reported: bool,
}

/// A segment that has ended.
pub(super) struct FullSegment {
    pub(super) path: PathBuf,
    /// The number of the segment.
    pub(super) number: u64,
    pub(super) base: Lsn,
    pub(super) end: Lsn,
    /// The length of the file up to the last record.
    pub(super) bytes: u64,
    /// The length of the file.
    pub(super) file_bytes: u64,
    /// When the next segment began, in microseconds since the Unix epoch. No record is newer.
    pub(super) ended_micros: u64,
}

impl FullSegment {
    /// Returns a segment of an earlier opening. The last one ends when the current opening begins its
    /// own.
    fn of(file: &ReplayedFile, now_micros: u64) -> Self {
        let ReplayedFile { segment: number, base, end, bytes, file_bytes, ended_micros, .. } =
            *file;
        let ended_micros = ended_micros.unwrap_or(now_micros);
        Self { path: file.path.clone(), number, base, end, bytes, file_bytes, ended_micros }
    }
}

/// Returns the segments of an earlier opening that trees may need, and the segments retained for
/// readers of changes. Makes them durable if `needs_sync`.
fn ended_segments(
    LogEnvironment { storage, clock, .. }: &LogEnvironment,
    LogConfig { retention, retained_from, .. }: LogConfig,
    replayed: &Replayed,
    needs_sync: bool,
) -> Result<(Vec<FullSegment>, RetainedSegments)> {
    let now = clock.now_micros();
    let mut retained = RetainedSegments::new(retention);
    let is_kept = |file: &&ReplayedFile| {
        retention.is_some() && retained_from.is_some_and(|from| file.base >= from)
    };
    for file in replayed.passed.iter().filter(is_kept) {
        if needs_sync && file.end > replayed.durable {
            sync_file(&**storage, &file.path)?;
        }
        retained.push(FullSegment::of(file, now));
    }
    let mut full = Vec::new();
    for file in &replayed.files {
        if needs_sync {
            sync_file(&**storage, &file.path)?;
        }
        full.push(FullSegment::of(file, now));
    }
    Ok((full, retained))
}

/// Creates the file of the first segment. On a full disk it is short, so that something can be deleted.
fn create_first(
    environment: &LogEnvironment,
    config: LogConfig,
    number: u64,
) -> Result<(PathBuf, Box<dyn Segment>)> {
    let len = match config.retention {
        None => FIRST_SEGMENT_BYTES,
        Some(_) => FIRST_KEPT_SEGMENT_BYTES,
    };
    let len = len.min(config.segment_bytes);
    create_file(environment, number, len).or_else(|error| match error {
        Error::DiskFull(_) => create_file(environment, number, SHORT_SEGMENT_BYTES.min(len)),
        error => Err(error),
    })
}

/// Makes a file that receives no more records durable.
fn sync_file(storage: &dyn Storage, path: &Path) -> Result<()> {
    let segment = storage.open_segment(path).map_err(|error| Error::io("open", path, error))?;
    segment.syncer().sync().map_err(|error| Error::io("sync", path, error))
}

impl LogWriter {
    /// Begins a new segment after the replayed records, and makes the chain durable up to it. The new
    /// segment begins at `flushed` or later, because the manifest states that some keyspace has the
    /// records before `flushed` in tables.
    pub(crate) fn begin(
        environment: LogEnvironment,
        config: LogConfig,
        sync: Arc<LogSync>,
        replayed: &Replayed,
        newest_segment: u64,
        flushed: Lsn,
    ) -> Result<Self> {
        let LogEnvironment { storage, dir, .. } = &environment;
        let names = storage.list(dir).map_err(|error| Error::io("list", dir, error))?;
        // A foreign file may have any number. No log reaches this one.
        let numbers = names.iter().filter_map(|name| segment_file_number(name));
        let next_file = numbers.filter(|number| *number < 1 << 62).max().unwrap_or(0) + 1;
        // Later acknowledged writes depend on every replayed record, so all of them must be durable
        // first. A cleanly closed log without batches to replay is durable already.
        let needs_sync = replayed.batches > 0 || !replayed.was_closed;
        let (full, retained) = ended_segments(&environment, config, replayed, needs_sync)?;
        let place = ChainLink {
            segment: newest_segment + 1,
            previous: replayed.last_segment,
            previous_end: replayed.last_end,
            base: replayed.end.max(flushed),
        };
        let (path, segment) = create_first(&environment, config, next_file)?;
        // The note is written only if the records were synced here. If closing the log failed to
        // sync its last record, that record may still be lost.
        let durable = if needs_sync { place.base } else { Lsn(0) };
        let notes = Notes { manifest_version: 0, durable };
        let file = FreeSegment { path: path.clone(), is_new: true };
        let current = begin(&environment, file, segment, place, notes);
        let current = current.inspect_err(|_| {
            // Otherwise every failed opening would leave a file.
            let _ = environment.storage.remove(&path);
        })?;
        sync.sync_header(&current.header_sync)?;
        sync.begin_segment(current.path.clone(), current.segment.syncer(), place.base);
        environment.segments.begin(&current.path, place.base);
        let linked = retained.iter().chain(&full).filter(|_| config.may_be_linked);
        let linked = linked.map(|segment: &FullSegment| segment.path.clone()).collect();
        Ok(Self {
            environment,
            config,
            sync,
            current,
            full,
            retained,
            changes_from: config.retained_from.unwrap_or(place.base),
            linked,
            free_segments: Vec::new(),
            free_segments_max: FREE_SEGMENTS_MAX,
            being_cleaned: 0,
            notes,
            pins: 0,
            is_creating_segment: false,
            creation_retry_at: 0,
            is_short: false,
            refusal: None,
            next_file: next_file + 1,
            newest_segment: place.segment,
            scratch: Vec::new(),
            encoded: Vec::new(),
            before: Vec::new(),
            said_synced: place.base,
            is_refusal_reported: false,
        })
    }

    /// Returns the answer of the operating system if it refused to map the current segment. It is returned
    /// once, because further segments are refused for the same reason.
    pub(crate) fn take_map_refusal(&mut self) -> Option<String> {
        let refusal = self.current.map_refusal.take().filter(|_| !self.is_refusal_reported)?;
        self.is_refusal_reported = true;
        Some(refusal)
    }

    /// Returns the number of the current segment.
    pub(crate) fn segment(&self) -> u64 {
        self.current.header.segment
    }

    /// Returns the earliest position for readers of changes.
    pub(crate) fn changes_from(&self) -> Lsn {
        self.changes_from
    }

    /// Returns the position after the last record.
    #[inline]
    pub(crate) fn end(&self) -> Lsn {
        Lsn(self.current.header.base.0 + (self.current.offset - HEADER_BYTES))
    }

    /// Returns the files that hold records, oldest first.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let ended = self.retained.iter().chain(&self.full).map(|segment| segment.path.clone());
        ended.chain([self.current.path.clone()]).collect()
    }

    /// Returns the files with records that trees may need, oldest first, and the length of the part of
    /// each file to copy.
    pub(crate) fn copies(&self) -> Vec<LogCopy> {
        let full =
            self.full.iter().map(|full| LogCopy { path: full.path.clone(), bytes: full.bytes });
        let current = LogCopy { path: self.current.path.clone(), bytes: self.current.offset };
        full.chain([current]).collect()
    }

    /// Records that a write is about to append to the segment. The age of the segment counts from
    /// the first such write.
    #[inline]
    pub(crate) fn note_record(&mut self, now_micros: impl FnOnce() -> u64) {
        self.current.since_micros.get_or_insert_with(now_micros);
    }

    /// Returns when the current segment received its first record, in microseconds since the Unix
    /// epoch, if that time is recorded.
    pub(crate) fn holds_since(&self) -> Option<u64> {
        self.current.since_micros
    }

    /// Returns the end of the oldest segment that has ended.
    pub(crate) fn oldest_end(&self) -> Option<Lsn> {
        self.full.first().map(|segment| segment.end)
    }

    /// Adds or removes a pin. No file of the log is freed while there are pins.
    pub(crate) fn pin(&mut self, is_pinned: bool) {
        self.pins = if is_pinned { self.pins + 1 } else { self.pins.saturating_sub(1) };
    }

    /// Returns the work due in the segment ahead of the writer, if any.
    #[inline]
    pub(crate) fn due_requests(&mut self) -> Option<SegmentRequests> {
        self.current.due_requests()
    }

    /// Writes the notes that the manifest has all edits up to `version`, and that the log is durable
    /// up to the position that was synced last.
    pub(crate) fn note_manifest(&mut self, version: u64) -> Result<()> {
        self.notes.manifest_version = self.notes.manifest_version.max(version);
        self.notes.durable = self.notes.durable.max(self.sync.synced());
        self.write_notes()
    }

    /// Writes the note that the log is durable up to the position that was synced last, unless the
    /// note says so already. Appending a write after a sync records the same position, so this
    /// matters if no write follows.
    pub(crate) fn note_durable(&mut self) -> Result<()> {
        let synced = self.sync.synced();
        if synced <= self.notes.durable {
            return Ok(());
        }
        self.notes.durable = synced;
        self.write_notes()
    }

    fn write_notes(&mut self) -> Result<()> {
        let CurrentSegment { header, segment, path, .. } = &mut self.current;
        let notes = self.notes.encode(header.nonce);
        segment.write(NOTES_OFFSET, &notes).map_err(|error| Error::io("write", path, error))
    }

    /// Closes the log cleanly: syncs all records, then appends and syncs a `Closed` record.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.sync.sync(self.end(), |_| ())?;
        let end = self.end();
        self.write_record(RecordKind::Closed, 0, &[&end.0.to_le_bytes()], true)?;
        self.sync.sync(self.end(), |_| ())
    }
}

impl std::fmt::Debug for LogWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LogWriter(segment {}, position {})", self.segment(), self.end())
    }
}
