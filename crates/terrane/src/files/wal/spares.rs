//! Spare files of the log: files that are preallocated, or freed and reused.

use std::path::PathBuf;

use super::ahead::{FreedSegments, WantedClean, WantedSpare};
use super::format::HEADER_BYTES;
use super::next_segment::Ending;
use super::segment::Spare;
use super::segment_file_name;
use super::writer::{FIRST_SEGMENT_BYTES, FullSegment, GROWTH, LogWriter, SPARES_MAX};
use crate::base::types::Lsn;
use crate::files::storage::Segment;

/// After a failed attempt to create a spare, this part of the segment is filled before the next one.
const RETRY_PARTS: u64 = 8;

impl LogWriter {
    pub(super) fn take_spare(&mut self, needed: u64) -> Option<(Spare, Box<dyn Segment>)> {
        while let Some(spare) = self.spares.pop() {
            let path = &spare.path;
            let segment = self.environment.storage.open_segment(path);
            match segment {
                Ok(segment) if segment.len() >= needed => return Some((spare, segment)),
                // The spare file is too short or missing, so the next spare is tried. If there is
                // none, the caller creates a new file.
                _ => drop(self.environment.storage.remove(path)),
            }
        }
        None
    }

    /// Returns a request for a spare segment, if one is due. With a spare, the writer that ends the
    /// current segment does not wait for the disk.
    pub(crate) fn wanted_spare(&mut self) -> Option<WantedSpare> {
        let is_half_full = self.current.offset > self.current.len / 2;
        let is_usual = self.current.len.saturating_mul(GROWTH) >= self.config.segment_bytes;
        let is_coming = self.spare_is_wanted || self.being_cleaned > 0;
        let is_resting = self.current.offset < self.spare_retry_at;
        if !self.spares.is_empty() || is_coming || is_resting || !is_half_full || !is_usual {
            return None;
        }
        Some(self.want(self.config.segment_bytes))
    }

    /// Returns a request for a file that becomes the next segment if the current segment ends
    /// early. Returns `None` if a spare exists or is being created.
    pub(crate) fn wanted_to_end(&mut self, ending: Ending) -> Option<WantedSpare> {
        let is_there = !self.spares.is_empty() || self.spare_is_wanted || self.being_cleaned > 0;
        (!is_there).then(|| self.want(self.next_len(ending)))
    }

    /// Returns true if records are needed only from `needed` on, all records are before it, and the
    /// files that the log keeps take more than `bytes_max`.
    pub(crate) fn is_oversized(&self, needed: Lsn, bytes_max: u64) -> bool {
        let spares =
            (self.spares.len() + self.being_cleaned) as u64 + u64::from(self.spare_is_wanted);
        let full: u64 = self.full.iter().map(|segment| segment.bytes).sum();
        let kept = self.current.len + full + spares * self.config.segment_bytes;
        self.end() <= needed && self.pins == 0 && kept > bytes_max
    }

    /// Returns true if the current segment is longer than the first segment of a log, and is in use.
    pub(crate) fn is_long(&self) -> bool {
        self.current.len > FIRST_SEGMENT_BYTES && self.current.offset > HEADER_BYTES
    }

    /// Keeps no spare files from now on, until the next segment is full.
    pub(crate) fn keep_no_spares(&mut self) {
        self.spares_max = 0;
    }

    fn want(&mut self, len: u64) -> WantedSpare {
        self.spare_is_wanted = true;
        self.spares_max = SPARES_MAX;
        let path = self.environment.dir.join(segment_file_name(self.next_file));
        self.next_file += 1;
        WantedSpare { path, len }
    }

    /// Takes the file created for [`LogWriter::wanted_spare`] or [`LogWriter::wanted_to_end`]; `None` if
    /// creating it failed. Returns it to be removed, if the log keeps no spares meanwhile.
    #[must_use = "the file is not used"]
    pub(crate) fn give_spare(&mut self, made: Option<PathBuf>) -> Option<PathBuf> {
        self.spare_is_wanted = false;
        if made.is_none() {
            // On a full disk every write would otherwise create a file and remove it again.
            self.spare_retry_at = self.current.offset + self.current.len / RETRY_PARTS;
        }
        if self.spares.len() >= self.spares_max {
            return made;
        }
        self.spares.extend(made.map(|path| Spare { path, is_new: true }));
        None
    }

    /// Takes a freed file that was synced; `None` if the sync failed. Returns a file to be removed, if
    /// there are enough spares meanwhile.
    #[must_use = "the file is not used any more"]
    pub(crate) fn give_cleaned(&mut self, cleaned: Option<PathBuf>) -> Option<PathBuf> {
        self.being_cleaned = self.being_cleaned.saturating_sub(1);
        if self.spares.len() >= self.spares_max {
            return cleaned;
        }
        self.spares.extend(cleaned.map(|path| Spare { path, is_new: false }));
        None
    }

    /// Frees the segments that end at or before `lsn`, because their records are in durable tables,
    /// unless they are kept for readers of changes. A few files of the configured length are kept for
    /// reuse; the others are to be removed.
    pub(crate) fn release(&mut self, lsn: Lsn) -> FreedSegments {
        let mut released = FreedSegments::default();
        let surplus = self.spares.len().saturating_sub(self.spares_max);
        released.removed.extend(self.spares.drain(..surplus).map(|spare| spare.path));
        let mut count = self.full.iter().take_while(|segment| segment.end <= lsn).count();
        // The segment that ended last stays until the current header is durable. Otherwise a crash
        // that loses the header would leave no log at all.
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
                let (mut freed, kept): (Vec<_>, Vec<_>) = freed.into_iter().partition(is_early);
                kept.into_iter().for_each(|segment| self.kept.push(segment));
                freed.extend(self.kept.take_expired(self.environment.clock.now_micros()));
                freed
            }
        };
        let Some(last) = freed.last() else { return released };
        // The files that are removed may make room for a spare.
        self.spare_retry_at = 0;
        // Segments that are kept are synced, because readers of changes depend on them.
        let upto = if self.config.retention.is_some() { last.end } else { lsn };
        self.sync.forget(upto);
        for segment in freed {
            let is_usual = segment.file_bytes == self.config.segment_bytes;
            let is_linked = self.linked.remove(&segment.path);
            let may_reuse = is_usual && self.config.reuses_files && !is_linked;
            if may_reuse && self.spares.len() + self.being_cleaned < self.spares_max {
                self.being_cleaned += 1;
                released.reused.push(WantedClean { path: segment.path });
            } else {
                released.removed.push(segment.path);
            }
        }
        released
    }
}
