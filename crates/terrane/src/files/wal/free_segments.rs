//! Free segments of the log: files that are preallocated, or freed and reused.

use std::path::PathBuf;

use super::format::HEADER_BYTES;
use super::next_segment::Ending;
use super::refusal::Refusal;
use super::requests::{ReleasedSegments, SegmentCleaning, SegmentCreation};
use super::segment::FreeSegment;
use super::segment_file_name;
use super::writer::{FIRST_SEGMENT_BYTES, FREE_SEGMENTS_MAX, FullSegment, GROWTH, LogWriter};
use crate::base::error::{Error, Result};
use crate::base::types::Lsn;
use crate::files::storage::Segment;

/// After a failed attempt to create a free segment, one part in this many of the current segment is filled
/// before the next attempt.
const RETRY_PARTS: u64 = 8;

impl LogWriter {
    pub(super) fn take_free_segment(
        &mut self,
        needed: u64,
    ) -> Option<(FreeSegment, Box<dyn Segment>)> {
        while let Some(free) = self.free_segments.pop() {
            let path = &free.path;
            let segment = self.environment.storage.open_segment(path);
            match segment {
                Ok(segment) if segment.len() >= needed => return Some((free, segment)),
                // The file is too short or missing, so the next one is tried. If there is
                // none, the caller creates a new file.
                _ => drop(self.environment.storage.remove(path)),
            }
        }
        None
    }

    /// Fails if a full disk has recently refused a new file of at most `bytes` bytes, and there is no free
    /// segment.
    pub(super) fn check_refusal(&self, bytes: u64) -> Result<()> {
        let refusal = self.refusal.as_ref().filter(|_| self.free_segments.is_empty());
        refusal.map_or(Ok(()), |refusal| refusal.check(bytes))
    }

    /// Sets whether the disk is full: new segments are then short, and none is created in advance or kept
    /// for reuse.
    pub(crate) fn set_short(&mut self, is_short: bool) {
        if is_short && !self.is_short {
            // A short segment may fit where the refused one did not.
            self.refusal = None;
            self.free_segments_max = 0;
        }
        self.is_short = is_short;
    }

    /// Makes new segments short, and asks for the next one at once although the disk may just have refused
    /// one: the disk reserve was released.
    pub(crate) fn use_released_space(&mut self) {
        self.set_short(true);
        self.refusal = None;
    }

    /// Notes that a new file of `bytes` bytes could not be created, if the disk was full.
    pub(super) fn note_refusal(&mut self, bytes: u64, error: &Error) {
        self.refusal = Refusal::of(bytes, error).or(self.refusal.take());
    }

    /// Returns a request for a free segment, if one is due. With a free segment, the writer that ends
    /// the current one does not wait for the disk.
    pub(crate) fn due_creation(&mut self) -> Option<SegmentCreation> {
        let is_half_full = self.current.offset > self.current.len / 2;
        let is_usual = self.current.len.saturating_mul(GROWTH) >= self.config.segment_bytes;
        let is_coming = self.is_creating_segment || self.being_cleaned > 0;
        let is_resting = self.is_short
            || self.current.offset < self.creation_retry_at
            || self.check_refusal(self.config.segment_bytes).is_err();
        if !self.free_segments.is_empty() || is_coming || is_resting || !is_half_full || !is_usual {
            return None;
        }
        Some(self.want(self.config.segment_bytes))
    }

    /// Returns a request for a file to become the next segment if the current segment ends early. Returns
    /// `None` if there is a free segment, one is being created, or a full disk has just refused one.
    pub(crate) fn creation_to_end(&mut self, ending: Ending) -> Option<SegmentCreation> {
        let is_there =
            !self.free_segments.is_empty() || self.is_creating_segment || self.being_cleaned > 0;
        let len = self.next_len(ending);
        (!is_there && self.check_refusal(len).is_ok()).then(|| self.want(len))
    }

    /// Returns true if no record is needed, because all are before `needed`, and the log's files take more
    /// than `bytes_max`.
    pub(crate) fn is_oversized(&self, needed: Lsn, bytes_max: u64) -> bool {
        let free_segments = (self.free_segments.len() + self.being_cleaned) as u64
            + u64::from(self.is_creating_segment);
        let full: u64 = self.full.iter().map(|segment| segment.bytes).sum();
        let kept = self.current.len + full + free_segments * self.config.segment_bytes;
        self.end() <= needed && self.pins == 0 && kept > bytes_max
    }

    /// Returns true if the current segment is longer than the first segment of a log, and is in use.
    pub(crate) fn is_long(&self) -> bool {
        self.current.len > FIRST_SEGMENT_BYTES && self.current.offset > HEADER_BYTES
    }

    /// Keeps no free segments until the next segment is full.
    pub(crate) fn keep_no_free_segments(&mut self) {
        self.free_segments_max = 0;
    }

    fn want(&mut self, len: u64) -> SegmentCreation {
        self.is_creating_segment = true;
        self.free_segments_max = FREE_SEGMENTS_MAX;
        let path = self.environment.dir.join(segment_file_name(self.next_file));
        self.next_file += 1;
        SegmentCreation { path, len }
    }

    /// Takes the file created for [`LogWriter::due_creation`] or [`LogWriter::creation_to_end`], or the
    /// reason why it could not be created. Returns the file for removal if the log has since stopped
    /// keeping free segments.
    #[must_use = "the file is not used"]
    pub(crate) fn add_created(&mut self, created: Result<PathBuf>) -> Option<PathBuf> {
        self.is_creating_segment = false;
        let path = match created {
            Ok(path) => path,
            Err(error) => {
                // On a full disk every write would otherwise create a file and remove it again.
                self.creation_retry_at = self.current.offset + self.current.len / RETRY_PARTS;
                // Its length is one that segments usually have, so that the next one would fail as well. A
                // short one may have space.
                if !self.is_short {
                    self.note_refusal(0, &error);
                }
                return None;
            }
        };
        if self.free_segments.len() >= self.free_segments_max {
            return Some(path);
        }
        self.free_segments.push(FreeSegment { path, is_new: true });
        None
    }

    /// Takes a freed file that was synced; `None` if the sync failed. Returns the file for removal if the
    /// log has enough free segments by now.
    #[must_use = "the file is not used any more"]
    pub(crate) fn add_cleaned(&mut self, cleaned: Option<PathBuf>) -> Option<PathBuf> {
        self.being_cleaned = self.being_cleaned.saturating_sub(1);
        if self.free_segments.len() >= self.free_segments_max {
            return cleaned;
        }
        self.free_segments.extend(cleaned.map(|path| FreeSegment { path, is_new: false }));
        None
    }

    /// Frees the segments that end at or before `lsn`, because their records are in durable tables, unless
    /// they are kept for readers of changes. A few files of the configured length are kept for reuse; the
    /// caller must remove the others.
    pub(crate) fn release(&mut self, lsn: Lsn) -> ReleasedSegments {
        let mut released = ReleasedSegments::default();
        let surplus = self.free_segments.len().saturating_sub(self.free_segments_max);
        released.removed.extend(self.free_segments.drain(..surplus).map(|free| free.path));
        let mut count = self.full.iter().take_while(|segment| segment.end <= lsn).count();
        // The segment that ended last is kept until the current header is durable. Otherwise a crash that
        // loses the header would leave no log at all.
        if count == self.full.len() && !self.is_header_durable() {
            count = count.saturating_sub(1);
        }
        if self.pins > 0 {
            return released;
        }
        let freed: Vec<FullSegment> = self.full.drain(..count).collect();
        let freed = match self.config.retention {
            None => freed,
            Some(_) => {
                let is_early = |segment: &FullSegment| segment.base < self.changes_from;
                let (mut freed, retained): (Vec<_>, Vec<_>) = freed.into_iter().partition(is_early);
                retained.into_iter().for_each(|segment| self.retained.push(segment));
                freed.extend(self.retained.take_expired(self.environment.clock.now_micros()));
                freed
            }
        };
        let Some(last) = freed.last() else { return released };
        // The files that are removed may make room for a free segment.
        self.creation_retry_at = 0;
        self.refusal = None;
        // Retained segments are synced, because readers of changes depend on them.
        let upto = if self.config.retention.is_some() { last.end } else { lsn };
        self.sync.forget(upto);
        for segment in freed {
            let is_usual = segment.file_bytes == self.config.segment_bytes;
            let is_linked = self.linked.remove(&segment.path);
            let is_kept = self.environment.segments.end(&segment.path);
            let may_reuse = is_usual && self.config.reuses_files && !is_linked && !is_kept;
            if may_reuse && self.free_segments.len() + self.being_cleaned < self.free_segments_max {
                self.being_cleaned += 1;
                released.reused.push(SegmentCleaning { path: segment.path });
            } else {
                released.removed.push(segment.path);
            }
        }
        released
    }
}
