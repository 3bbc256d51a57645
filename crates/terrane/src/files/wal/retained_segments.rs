//! Segments that no tree needs, retained for readers of changes.
//!
//! 1. They are older than all other segments, and have no gaps between them, because the oldest is
//!    freed first.
//! 2. Their records are durable, or become durable with the next sync of the log: a flush syncs the
//!    log before its segments may be freed, and [`super::LogSync`] forgets only freed segments.
//! 3. A freed file may be reused while a reader of changes has it open. The new segment has another
//!    nonce, so the reader accepts none of its records, and then finds that its own segment is
//!    gone.

use std::collections::VecDeque;
use std::path::PathBuf;

use super::writer::{FullSegment, LogWriter};
use crate::base::types::Lsn;

/// How much of the log is retained after no tree needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogRetention {
    /// The maximum total size of the files in bytes.
    pub(crate) bytes_max: u64,
    /// The age at which a segment is freed, counted from its end.
    pub(crate) age_max_micros: u64,
}

/// A segment of the log as a reader of changes sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogPart {
    pub(crate) path: PathBuf,
    /// The number of the segment.
    pub(crate) segment: u64,
    pub(crate) base: Lsn,
    /// The end of the segment; `None` for the current one.
    pub(crate) end: Option<Lsn>,
}

/// The retained segments, oldest first.
pub(super) struct RetainedSegments {
    retention: Option<LogRetention>,
    segments: VecDeque<FullSegment>,
    bytes: u64,
}

impl RetainedSegments {
    pub(super) fn new(retention: Option<LogRetention>) -> Self {
        Self { retention, segments: VecDeque::new(), bytes: 0 }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &FullSegment> {
        self.segments.iter()
    }

    pub(super) fn push(&mut self, segment: FullSegment) {
        self.bytes += segment.file_bytes;
        self.segments.push_back(segment);
    }

    /// Removes and returns the segments that exceed the retention, oldest first.
    pub(super) fn take_expired(&mut self, now_micros: u64) -> Vec<FullSegment> {
        let mut expired = Vec::new();
        while self.is_oldest_expired(now_micros)
            && let Some(segment) = self.segments.pop_front()
        {
            self.bytes = self.bytes.saturating_sub(segment.file_bytes);
            expired.push(segment);
        }
        expired
    }

    fn is_oldest_expired(&self, now_micros: u64) -> bool {
        let Some(retention) = self.retention else { return false };
        self.bytes > retention.bytes_max || self.micros_left(now_micros) == Some(0)
    }

    /// Returns the time until the oldest segment exceeds the maximum age.
    fn micros_left(&self, now_micros: u64) -> Option<u64> {
        let age_max = self.retention?.age_max_micros;
        if age_max == u64::MAX {
            return None;
        }
        let age = now_micros.saturating_sub(self.segments.front()?.ended_micros);
        Some(age_max.saturating_sub(age))
    }
}

impl LogWriter {
    /// Returns the bytes of the files that are retained although no tree needs them.
    pub(crate) fn retained_bytes(&self) -> u64 {
        self.retained.bytes
    }

    /// Returns the time, in microseconds, until the oldest retained segment exceeds the maximum
    /// age.
    pub(crate) fn retention_micros_left(&self) -> Option<u64> {
        self.retained.micros_left(self.environment.clock.now_micros())
    }

    /// Returns all segments, oldest first.
    pub(crate) fn parts(&self) -> Vec<LogPart> {
        let ended = self.retained.iter().chain(&self.full);
        let ended = ended.filter(|segment| segment.base >= self.changes_from).map(part_of);
        ended.chain([self.current_part()]).collect()
    }

    /// Returns the oldest segment with this number or a higher one.
    pub(crate) fn part_from(&self, segment: u64) -> Option<LogPart> {
        let retained = self.retained.segments.partition_point(|one| one.number < segment);
        let full = self.full.partition_point(|one| one.number < segment);
        let ended = self.retained.segments.get(retained).or_else(|| self.full.get(full));
        let current = || Some(self.current_part()).filter(|part| part.segment >= segment);
        ended.map(part_of).or_else(current)
    }

    fn current_part(&self) -> LogPart {
        let (header, path) = (&self.current.header, self.current.path.clone());
        LogPart { path, segment: header.segment, base: header.base, end: None }
    }
}

fn part_of(segment: &FullSegment) -> LogPart {
    let FullSegment { path, number, base, end, .. } = segment;
    LogPart { path: path.clone(), segment: *number, base: *base, end: Some(*end) }
}
