//! Files of the log that are made in advance, freed, and written again.

use std::path::PathBuf;

use super::ahead::{Released, WantedClean, WantedSpare};
use super::next_segment::Ending;
use super::segment_file_name;
use super::writer::{GROWTH, LogWriter};
use crate::storage::Segment;
use crate::types::Lsn;

/// Segments that are kept to be written again.
const SPARES_MAX: usize = 2;

impl LogWriter {
    pub(super) fn take_spare(&mut self, needed: u64) -> Option<(PathBuf, Box<dyn Segment>)> {
        while let Some(path) = self.spares.pop() {
            let segment = self.environment.storage.open_segment(&path);
            match segment {
                Ok(segment) if segment.len() >= needed => return Some((path, segment)),
                // Too short, or gone: a new one will do.
                _ => drop(self.environment.storage.remove(&path)),
            }
        }
        None
    }

    /// What is needed to make a spare segment, if one should be made: so that the next writer to
    /// need one does not wait for the disk.
    pub(crate) fn wanted_spare(&mut self) -> Option<WantedSpare> {
        let is_half_full = self.current.offset > self.current.len / 2;
        let is_usual = self.current.len.saturating_mul(GROWTH) >= self.config.segment_bytes;
        let is_coming = self.spare_is_wanted || self.being_cleaned > 0;
        if !self.spares.is_empty() || is_coming || !is_half_full || !is_usual {
            return None;
        }
        Some(self.want(self.config.segment_bytes))
    }

    /// What is needed to make the file that the next segment goes into, if the one that is written
    /// ends as it is, and there is no file.
    pub(crate) fn wanted_to_end(&mut self) -> Option<WantedSpare> {
        let is_there = !self.spares.is_empty() || self.spare_is_wanted || self.being_cleaned > 0;
        (!is_there).then(|| self.want(self.next_len(Ending::Aged)))
    }

    fn want(&mut self, len: u64) -> WantedSpare {
        self.spare_is_wanted = true;
        let path = self.environment.dir.join(segment_file_name(self.next_file));
        self.next_file += 1;
        WantedSpare { path, len }
    }

    /// Takes the file that was made for [`LogWriter::wanted_spare`], or learns that none was.
    pub(crate) fn give_spare(&mut self, made: Option<PathBuf>) {
        self.spare_is_wanted = false;
        self.spares.extend(made);
    }

    /// Takes a file that is clean, or learns that there is one less to come.
    pub(crate) fn give_cleaned(&mut self, cleaned: Option<PathBuf>) {
        self.being_cleaned = self.being_cleaned.saturating_sub(1);
        self.spares.extend(cleaned);
    }

    /// Frees the segments that hold only records before `lsn`, which are in durable tables. Some
    /// files of the usual length are to be written again, the others to be removed.
    pub(crate) fn release(&mut self, lsn: Lsn) -> Released {
        let mut released = Released::default();
        let mut count = self.full.iter().take_while(|segment| segment.end <= lsn).count();
        // Without the last one the log would be missing if the header of the next one is lost.
        if count == self.full.len() && !self.is_header_durable() {
            count = count.saturating_sub(1);
        }
        if count == 0 || self.pins > 0 {
            return released;
        }
        self.sync.forget(lsn);
        for segment in self.full.drain(..count) {
            let len = self.environment.storage.len(&segment.path);
            let is_usual = len.is_ok_and(|len| len == self.config.segment_bytes);
            let may_reuse = is_usual && self.config.reuses_files;
            if may_reuse && self.spares.len() + self.being_cleaned < SPARES_MAX {
                self.being_cleaned += 1;
                released.reused.push(WantedClean { path: segment.path });
            } else {
                released.removed.push(segment.path);
            }
        }
        released
    }
}
