//! Takes a memtable's large values from the log, so that the flush need not rewrite them.
//!
//! A log segment whose records are mostly large values of one tree gets a second name and becomes a
//! value file of the tree, and the tables point into it. The order of steps makes that safe:
//!
//! 1. From now on the log does not reuse the segments' files ([`LogWriter::files_for_values`]). It
//!    does not remove them either, because the tree needs them until it is flushed.
//! 2. The segments get their second names, which are synced together with the tables' names.
//! 3. The log is synced up to the end of the memtable, after most of it was written back.
//! 4. The manifest records the tables and the value files. From now on the log may remove its own
//!    names.
//!
//! A crash before the last step leaves unreferenced names, which the next opening removes. Several
//! flushes may use a segment, so its value file is settled only once the tree is flushed beyond the
//! segment's end, at the latest by the next opening.
//!
//! With `delete_persistence` values are always written to separate value files, because a log file
//! must be removed in time.
//!
//! [`LogWriter::files_for_values`]: crate::files::wal::LogWriter::files_for_values

use std::path::PathBuf;
use std::sync::Arc;

use terrane_policy::{ValueFileId, ValueFileInfo, ValueFileState};

use crate::base::error::{Error, Result};
use crate::base::types::Lsn;
use crate::engine::catalog::Catalog;
use crate::engine::context::Context;
use crate::engine::merge::{LOGGED_VALUES_MAX, LoggedValue, LoggedValues};
use crate::engine::pipeline::Pipeline;
use crate::engine::tree::{ImmutableMemtable, LoggedValueRef, Tree, ValueSegment};
use crate::files::manifest::ValueFileRecord;
use crate::files::storage::Storage;
use crate::files::table::{FinishedTable, filter_hash};
use crate::files::value_pointer::{ValueFileName, record_bytes};
use crate::files::wal::{LogFile, SegmentPart, values_in_segment};

/// The segments from which a flush takes values.
#[derive(Debug, Default)]
pub(super) struct LoggedSegments {
    segments: Vec<UsableSegment>,
}

/// The values of a memtable in the log.
#[derive(Debug, Default)]
pub(super) struct FoundValues {
    /// The values that stay in the log.
    pub(super) logged: LoggedValues,
    pub(super) segments: LoggedSegments,
    /// The names of the segments to which entries of the memtable point and which are not worth keeping.
    /// Their values move to value files.
    pub(super) moved: Vec<ValueFileId>,
}

/// A log segment that is a value file of the tree, or may become one.
#[derive(Debug)]
struct UsableSegment {
    segment: ValueSegment,
    /// True if an earlier flush has recorded the file in the manifest.
    was_recorded: bool,
    /// True if the record differs from the one in the manifest.
    is_changed: bool,
}

/// A segment with large values, before it is known whether it can be used.
struct ScannedSegment {
    file: LogFile,
    part: SegmentPart,
    values: Vec<LoggedValue>,
    /// The size that the values would have in a value file, in bytes.
    value_bytes: u64,
    known: Option<ValueSegment>,
}

impl ScannedSegment {
    /// Returns true if the garbage in the segment, which is everything except the tree's large
    /// values, is below the share at which the file would be collected at once.
    fn is_worth_linking(&self, garbage_percent: u32) -> bool {
        let garbage = self.part.record_bytes.saturating_sub(self.value_bytes);
        let limit = self.part.record_bytes.saturating_mul(garbage_percent.into());
        !self.values.is_empty() && garbage.saturating_mul(100) < limit
    }
}

/// Finds the values of a memtable in the log.
pub(super) struct LoggedValueFinder<'a> {
    pub(super) context: &'a Context,
    pub(super) pipeline: &'a Pipeline,
    pub(super) catalog: &'a Catalog,
}

impl LoggedValueFinder<'_> {
    /// Finds the values of a memtable in the log, and gives their segments second names. Adds these
    /// names to `paths`.
    pub(super) fn find(
        &self,
        tree: &Tree,
        immutable: &ImmutableMemtable,
        paths: &mut Vec<PathBuf>,
    ) -> Result<FoundValues> {
        let known = tree.value_segments().list();
        let design = tree.design();
        let separation = design.values.separation();
        let threshold = self.context.values_in_log(&design).map(|values| values.noted_from);
        let pointed = immutable.logged_files();
        let garbage_percent = separation.map_or(0, |separation| separation.garbage_percent);
        if threshold.is_none() && known.is_empty() && pointed.is_empty() {
            return Ok(Default::default());
        }
        let files = {
            let mut writer = self.pipeline.lock();
            let log = writer.log.as_mut();
            log.map(|log| log.files_for_values(immutable.begins)).unwrap_or_default()
        };
        let scanned = match threshold {
            Some(threshold) => match &immutable.logged_values {
                Some(refs) if refs.lengths().noted_from <= threshold => {
                    self.take_refs(&refs.list(threshold), immutable, &files, &known)?
                }
                _ => self.scan(tree, immutable, threshold, &files, &known)?,
            },
            None => Vec::new(),
        };
        let (mut names, mut values) = (Vec::new(), Vec::new());
        let mut segments = Vec::new();
        for one in scanned {
            let limits = (garbage_percent, immutable.ends);
            let Some(usable) = self.usable(tree, &one, limits, paths) else { continue };
            let index = names.len() as u32;
            names.push(usable.segment.record.name);
            values.extend(one.values.iter().map(|value| LoggedValue { segment: index, ..*value }));
            segments.push(usable);
        }
        // Earlier segments that contain no further values may be complete now.
        for segment in known {
            let is_listed = segments.iter().any(|one| one.segment.path == segment.path);
            if !is_listed {
                let file = files.iter().find(|file| file.path == segment.path);
                let is_over = file.is_none_or(|file| is_over(file, immutable.ends));
                segments.push(settled(segment, is_over));
            }
        }
        let is_linked = |name: &ValueFileName| names.contains(name);
        let moved = pointed.into_iter().filter(|name| !is_linked(name)).map(ValueFileName::id);
        let moved = moved.collect();
        Ok(FoundValues {
            logged: LoggedValues::new(names, values),
            segments: LoggedSegments { segments },
            moved,
        })
    }

    /// Groups the noted values by segment.
    fn take_refs(
        &self,
        refs: &[LoggedValueRef],
        immutable: &ImmutableMemtable,
        files: &[LogFile],
        known: &[ValueSegment],
    ) -> Result<Vec<ScannedSegment>> {
        let mut found = Vec::new();
        for file in files {
            let end = file.end.map_or(immutable.ends, |end| end.min(immutable.ends));
            let begin = file.base.max(immutable.begins);
            let first = refs.partition_point(|value| value.at < begin);
            let last = refs.partition_point(|value| value.at < end);
            let refs = refs.get(first..last).unwrap_or_default();
            if refs.is_empty() {
                continue;
            }
            let bytes =
                |value: &LoggedValueRef| record_bytes(value.key_len as usize, value.len as usize);
            let value_bytes = refs.iter().map(bytes).sum();
            let values = refs.iter().map(|value| LoggedValue {
                seq: value.seq,
                hash: value.hash,
                segment: 0,
                len: value.len,
                offset: file.offset_of(value.at),
            });
            let (file, values) = (file.clone(), values.collect());
            let file_bytes = self.context.storage.len(&file.path);
            let file_bytes = file_bytes.map_err(|error| Error::io("check", &file.path, error))?;
            let part = SegmentPart { file_bytes, record_bytes: end.0 - begin.0 };
            let known = known.iter().find(|segment| segment.path == file.path).cloned();
            found.push(ScannedSegment { file, part, values, value_bytes, known });
        }
        Ok(found)
    }

    /// Reads the values from the log, if they were not noted.
    fn scan(
        &self,
        tree: &Tree,
        immutable: &ImmutableMemtable,
        threshold: u64,
        files: &[LogFile],
        known: &[ValueSegment],
    ) -> Result<Vec<ScannedSegment>> {
        let storage = &*self.context.storage;
        let mut scanned = Vec::new();
        let mut total = 0;
        for file in files {
            let (mut values, mut value_bytes) = (Vec::new(), 0);
            let range = immutable.begins..immutable.ends;
            let wanted = (tree.id, threshold);
            let part = values_in_segment(storage, &file.path, wanted, range, |found| {
                value_bytes += record_bytes(found.key.len(), found.len as usize);
                if values.len() <= LOGGED_VALUES_MAX {
                    values.push(LoggedValue {
                        seq: found.seq,
                        hash: filter_hash(found.key),
                        segment: 0,
                        len: found.len,
                        offset: found.offset,
                    });
                }
            })?;
            let Some(part) = part else { continue };
            total += values.len();
            if total > LOGGED_VALUES_MAX {
                return Ok(Vec::new());
            }
            let known = known.iter().find(|segment| segment.path == file.path).cloned();
            let file = file.clone();
            scanned.push(ScannedSegment { file, part, values, value_bytes, known });
        }
        Ok(scanned)
    }

    /// Makes a segment usable: gives it a second name, unless an earlier flush did. Returns `None`
    /// if the segment is not worth linking, or the storage does not support it.
    fn usable(
        &self,
        tree: &Tree,
        scanned: &ScannedSegment,
        (garbage_percent, flushed): (u32, Lsn),
        paths: &mut Vec<PathBuf>,
    ) -> Option<UsableSegment> {
        let Context { storage, clock, .. } = self.context;
        let was_recorded = scanned.known.is_some();
        let mut segment = match &scanned.known {
            Some(known) => known.clone(),
            None if !must_stay(tree, scanned, garbage_percent) => return None,
            None => {
                // Entries of the memtable may refer to the segment by this name.
                let version = &tree.state().version;
                let (name, path) = match version.values().logged().take_name(&scanned.file.path) {
                    Some(name) => (name, self.context.dir.join(name.file_name())),
                    None => self.catalog.next_value_file(),
                };
                storage.hard_link(&scanned.file.path, &path).ok()?;
                paths.push(path);
                let created_micros = clock.now_micros();
                let info = ValueFileInfo { created_micros, ..ValueFileInfo::new(name.number, 0) };
                let record = ValueFileRecord {
                    name,
                    is_segment: true,
                    size_bytes: scanned.part.file_bytes,
                    info: Arc::new(info),
                };
                ValueSegment { path: scanned.file.path.clone(), record }
            }
        };
        let info = Arc::make_mut(&mut segment.record.info);
        info.bytes += scanned.value_bytes;
        info.values += scanned.values.len() as u64;
        info.state = ValueFileState::Unflushed;
        let usable = settled(segment, is_over(&scanned.file, flushed));
        Some(UsableSegment { was_recorded, is_changed: true, ..usable })
    }
}

/// Returns true if a segment is worth linking, or if its values cannot be moved because one cannot be read. A
/// reader of that value gets the error, and the flush goes on.
fn must_stay(tree: &Tree, scanned: &ScannedSegment, garbage_percent: u32) -> bool {
    let is_unreadable = || tree.state().version.values().logged().is_unreadable(&scanned.file.path);
    scanned.is_worth_linking(garbage_percent) || is_unreadable()
}

/// Returns true if a segment has ended and all its records are before `flushed`.
fn is_over(file: &LogFile, flushed: Lsn) -> bool {
    file.end.is_some_and(|end| end <= flushed)
}

/// Returns a recorded segment, and settles it if it is over: from then on the whole file counts.
fn settled(mut segment: ValueSegment, is_over: bool) -> UsableSegment {
    if is_over {
        segment.record.settle();
    }
    UsableSegment { segment, was_recorded: true, is_changed: is_over }
}

impl LoggedSegments {
    /// Removes the unrecorded segments to which no table of the flush refers. Returns their names.
    pub(super) fn keep_used(&mut self, tables: &[FinishedTable]) -> Vec<String> {
        let refers = |segment: &ValueSegment| {
            let id = [segment.record.name.id()];
            tables.iter().any(|table| table.info.refers_to(&id))
        };
        let (used, unused): (Vec<_>, Vec<_>) = std::mem::take(&mut self.segments)
            .into_iter()
            .partition(|one| one.was_recorded || refers(&one.segment));
        self.segments = used;
        unused.into_iter().map(|one| one.segment.record.name.file_name()).collect()
    }

    /// Writes the segments to the device. The log sync that follows is then short, so that it does
    /// not delay other log syncs, such as the one for the next segment's header.
    pub(super) fn write_back(&self, storage: &dyn Storage) {
        for one in self.segments.iter().filter(|one| one.is_changed) {
            let file = storage.open_segment(&one.segment.path);
            // The sync that follows goes through the log's own file, and reports any failure.
            let _ = file.and_then(|file| file.syncer().sync());
        }
    }

    /// Returns the records that differ from those in the manifest.
    pub(super) fn changed(&self) -> impl Iterator<Item = &ValueFileRecord> {
        self.segments.iter().filter(|one| one.is_changed).map(|one| &one.segment.record)
    }

    /// Returns the segments that later flushes may also use.
    pub(super) fn unsettled(self) -> Vec<ValueSegment> {
        let segments = self.segments.into_iter().map(|one| one.segment);
        segments.filter(|one| one.record.info.state != ValueFileState::Settled).collect()
    }
}
