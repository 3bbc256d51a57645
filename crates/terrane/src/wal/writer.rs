//! The end of the log, where records are added, one writer at a time.

use std::path::PathBuf;
use std::sync::Arc;

use super::ahead::Ahead;
use super::format::{HEADER_BYTES, NOTE_OFFSET, RecordKind, encode_note};
use super::segment::{Current, Place, begin, create_file};
use super::segment_file_number;
use super::{LogSync, Replayed, ReplayedFile};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::stats::Counters;
use crate::storage::Storage;
use crate::types::Lsn;

/// How the log is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogConfig {
    /// The length of a segment, unless a record needs more.
    pub(crate) segment_bytes: u64,
    /// Files that are freed are written again, which spares the disk some work. Until then they
    /// hold what they held.
    pub(crate) reuses_files: bool,
}

/// The first segment of a log is this short: a small database should not take much room, and a
/// large one soon has others. Each further one is four times as long, up to the usual length.
pub(super) const FIRST_SEGMENT_BYTES: u64 = 4 << 20;
pub(super) const GROWTH: u64 = 4;

/// What a log is part of.
pub(crate) struct LogEnvironment {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) dir: PathBuf,
    pub(crate) database: u64,
}

/// A file of the log, and how much of it holds records.
#[derive(Debug, Clone)]
pub(crate) struct LogCopy {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

/// The end of the log, where records are added.
pub(crate) struct LogWriter {
    pub(super) environment: LogEnvironment,
    pub(super) config: LogConfig,
    pub(super) sync: Arc<LogSync>,
    pub(super) current: Current,
    /// Segments that are full, oldest first, with the positions at which they end.
    pub(super) full: Vec<FullSegment>,
    pub(super) spares: Vec<PathBuf>,
    /// Segments that will be spares when they are clean.
    pub(super) being_cleaned: usize,
    /// What was noted of the manifest last.
    pub(super) manifest_version: u64,
    /// Holders that need the files as they are.
    pub(super) pins: usize,
    /// Someone is making a spare.
    pub(super) spare_is_wanted: bool,
    pub(super) next_file: u64,
    /// The newest number of a segment, also of one that was not begun after all.
    pub(super) newest_segment: u64,
    pub(super) scratch: Vec<u8>,
    pub(super) encoded: Vec<u8>,
    /// A record that is written together with the next one.
    pub(super) before: Vec<u8>,
    /// What the log last said is durable.
    pub(super) said_synced: Lsn,
}

pub(super) struct FullSegment {
    pub(super) path: PathBuf,
    pub(super) end: Lsn,
    /// Bytes of the file up to its end.
    pub(super) bytes: u64,
}

impl LogWriter {
    /// Begins a new segment after what was replayed, and makes the chain durable up to it. All
    /// positions before `flushed` belong to records that are in tables, of some keyspace at least.
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
        let next_file =
            names.iter().filter_map(|name| segment_file_number(name)).max().unwrap_or(0) + 1;
        let mut full = Vec::new();
        for ReplayedFile { path, end, bytes } in &replayed.files {
            // What was replayed is the past of everything that will be promised from now on. Where
            // nothing was, all of it is in tables; but the newest header may not be durable.
            if replayed.batches > 0 || !replayed.was_closed {
                let segment =
                    storage.open_segment(path).map_err(|error| Error::io("open", path, error))?;
                segment.syncer().sync().map_err(|error| Error::io("sync", path, error))?;
            }
            full.push(FullSegment { path: path.clone(), end: *end, bytes: *bytes });
        }
        let place = Place {
            segment: newest_segment + 1,
            previous: replayed.last_segment,
            previous_end: replayed.last_end,
            base: replayed.end.max(flushed),
        };
        let len = FIRST_SEGMENT_BYTES.min(config.segment_bytes);
        let (path, segment) = create_file(&environment, next_file, len)?;
        let current = begin(&environment, path, segment, place)?;
        sync.sync_header(&current.header_sync)?;
        sync.begin_segment(current.path.clone(), current.segment.syncer(), place.base);
        Ok(Self {
            environment,
            config,
            sync,
            current,
            full,
            spares: Vec::new(),
            being_cleaned: 0,
            manifest_version: 0,
            pins: 0,
            spare_is_wanted: false,
            next_file: next_file + 1,
            newest_segment: place.segment,
            scratch: Vec::new(),
            encoded: Vec::new(),
            before: Vec::new(),
            said_synced: place.base,
        })
    }

    /// The number of the segment that is being written.
    pub(crate) fn segment(&self) -> u64 {
        self.current.header.segment
    }

    /// The position after the last record.
    #[inline]
    pub(crate) fn end(&self) -> Lsn {
        Lsn(self.current.header.base.0 + (self.current.offset - HEADER_BYTES))
    }

    /// The files that hold records, oldest first.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let full = self.full.iter().map(|segment| segment.path.clone());
        full.chain([self.current.path.clone()]).collect()
    }

    /// The files that hold records, with what of them does.
    pub(crate) fn copies(&self) -> Vec<LogCopy> {
        let full =
            self.full.iter().map(|full| LogCopy { path: full.path.clone(), bytes: full.bytes });
        let current = LogCopy { path: self.current.path.clone(), bytes: self.current.offset };
        full.chain([current]).collect()
    }

    /// Records come into the segment from now on, if none has before.
    #[inline]
    pub(crate) fn note_record(&mut self, now_micros: impl FnOnce() -> u64) {
        self.current.since_micros.get_or_insert_with(now_micros);
    }

    /// Since when the segment that is written has held records, in microseconds since the Unix
    /// epoch, where that is noted.
    pub(crate) fn holds_since(&self) -> Option<u64> {
        self.current.since_micros
    }

    /// Where the oldest segment that is full ends.
    pub(crate) fn oldest_end(&self) -> Option<Lsn> {
        self.full.first().map(|segment| segment.end)
    }

    /// While the log is pinned, by any number of holders, no file of it is freed.
    pub(crate) fn pin(&mut self, is_pinned: bool) {
        self.pins = if is_pinned { self.pins + 1 } else { self.pins.saturating_sub(1) };
    }

    /// What is to be done for the segment before it is written further, if it is time to.
    #[inline]
    pub(crate) fn wanted_ahead(&mut self) -> Option<Ahead> {
        self.current.wanted_ahead()
    }

    /// Notes that the manifest holds all edits up to `version`.
    pub(crate) fn note_manifest(&mut self, version: u64) -> Result<()> {
        self.manifest_version = self.manifest_version.max(version);
        let version = self.manifest_version;
        let Current { header, segment, path, .. } = &mut self.current;
        let note = encode_note(header.nonce, version);
        segment.write(NOTE_OFFSET, &note).map_err(|error| Error::io("write", path, error))
    }

    /// Ends the log in order: everything in it is durable, and says so.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.sync.sync(self.end())?;
        let end = self.end();
        self.write_record(RecordKind::Closed, 0, &[&end.0.to_le_bytes()], true)?;
        self.sync.sync(self.end())
    }
}

impl std::fmt::Debug for LogWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LogWriter(segment {}, position {})", self.segment(), self.end())
    }
}
