//! Creates, cleans and ends log segments, and syncs the log.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{LogTask, Pipeline};
use crate::base::error::{Error, Result};
use crate::base::event::Event;
use crate::base::types::{Lsn, SeqNo};
use crate::engine::tree::Tree;
use crate::files::wal::{
    EndedEarly, Ending, HeaderSync, LogSync, LogWriter, SegmentCleaning, SegmentCreation,
    SegmentRequests,
};

/// Reports that the operating system refused to map the log, once per opening. The caller holds no lock,
/// because a listener may write.
pub(crate) fn report_map_refusal(pipeline: &Pipeline) {
    let error = pipeline.lock().log.as_mut().and_then(LogWriter::take_map_refusal);
    if let Some(error) = error {
        let path = pipeline.context.log_dir.display().to_string();
        pipeline.context.events.emit(Event::LogNotMapped { path, error });
    }
}

impl Pipeline {
    /// Begins to accept writes, with sequence numbers from `next_seq`.
    pub(crate) fn start(&self, mut log: LogWriter, next_seq: SeqNo) {
        let mut state = self.lock();
        log.set_complete();
        state.next_seq = next_seq;
        state.log = Some(log);
    }

    /// Returns the sync state, which the log shares with its syncers.
    pub(crate) fn log_sync(&self) -> Arc<LogSync> {
        Arc::clone(&self.log_sync)
    }

    /// Returns the end of the log.
    pub(crate) fn log_end(&self) -> Lsn {
        self.lock().log.as_ref().map_or(Lsn(0), LogWriter::end)
    }

    /// Adds or removes a pin of the log. No segment is freed while pins exist.
    pub(crate) fn pin_log(&self, is_pinned: bool) {
        if let Some(log) = &mut self.lock().log {
            log.pin(is_pinned);
        }
    }

    /// Makes the log durable up to `end`. Syncs are shared among writers.
    pub(crate) fn sync_to(&self, end: Lsn) -> Result<()> {
        self.log_sync.sync(end, |synced| self.commits.note_synced(synced.0))
    }

    /// Makes the whole log durable. A failure is final for the database.
    pub(crate) fn sync_log(&self) -> Result<()> {
        let written = self.log_sync.written().max(Lsn(self.commits.log_end()));
        let synced = self.sync_to(written);
        synced.inspect_err(|error| self.context.health.fail(error.clone()))?;
        if let Some(log) = &mut self.lock().log {
            // A failure is harmless, because the records themselves are durable.
            let _ = log.note_durable();
        }
        Ok(())
    }

    /// Fails the database after an append that failed with `error`, if a log sync has failed, or the
    /// lock or a part of the log was lost: the database then accepts no more writes. The caller holds the writer lock,
    /// and reports the failure after releasing it.
    #[cold]
    pub(crate) fn check_log(&self, error: &Error) {
        let is_lost = error.is_directory_lost() || matches!(error, Error::LogLost { .. });
        let failure = self.log_sync.failure().or_else(|| is_lost.then(|| error.clone()));
        failure.into_iter().for_each(|error| self.context.health.note_failure(error));
    }

    /// Requests a free segment from the flush thread.
    pub(crate) fn request_creation(&self, creation: SegmentCreation) {
        self.tasks.request_creation(creation);
        self.context.signals.wake();
    }

    /// Requests the preparations for the next segment writes from the log thread.
    pub(crate) fn prepare(&self, requests: SegmentRequests) {
        if !self.context.is_inline() {
            self.tasks.prepare(requests);
        }
    }

    /// Requests the next memtable of a tree from the log thread, if there is one.
    pub(crate) fn prepare_memtable(&self, tree: &Arc<Tree>) {
        if !self.context.is_inline() {
            self.tasks.prepare_memtable(Arc::clone(tree));
        }
    }

    /// Requests a block of memtable memory from the log thread, if there is one and the pool has
    /// few blocks.
    pub(crate) fn prepare_block(&self) {
        if !self.context.is_inline() && self.context.memtables.pool().needs_block() {
            self.tasks.prepare_block();
        }
    }

    /// Requests a sync of the log within `interval`.
    #[inline]
    pub(crate) fn sync_within(&self, interval: Duration) {
        self.tasks.sync_within(interval);
    }

    /// Creates the free segment that was requested, if any.
    pub(crate) fn create_requested(&self) {
        if let Some(creation) = self.tasks.take_creation() {
            self.create_free_segment(creation);
        }
    }

    fn create_free_segment(&self, creation: SegmentCreation) {
        let context = &self.context;
        let run = || creation.run(&*context.storage, &context.log_dir);
        let created = context.reserve.run_beside(run);
        let surplus = self.lock().log.as_mut().and_then(|log| log.add_created(created));
        self.remove_surplus(surplus);
    }

    /// Removes a file that the log does not use.
    fn remove_surplus(&self, surplus: Option<PathBuf>) {
        if let Some(path) = surplus {
            // If that fails, the next opening removes the file.
            let _ = self.context.storage.remove(&path);
        }
    }

    /// Cleans freed segments, or leaves the cleaning to the log thread if there is one.
    pub(crate) fn clean_segments(&self, segments: Vec<SegmentCleaning>) {
        if self.context.is_inline() {
            segments.into_iter().for_each(|segment| self.clean_segment(segment));
        } else {
            self.tasks.clean(segments);
        }
    }

    /// Cleans a segment, so that the log can reuse it.
    fn clean_segment(&self, segment: SegmentCleaning) {
        let cleaned = segment.run(&*self.context.storage).ok();
        let surplus = self.lock().log.as_mut().and_then(|log| log.add_cleaned(cleaned));
        self.remove_surplus(surplus);
    }

    /// Ends the current segment if `is_due` holds for it. A failure is retried by a later call.
    /// Returns true if the segment has ended.
    pub(crate) fn end_segment_if(
        &self,
        ending: Ending,
        is_due: impl Fn(&LogWriter) -> bool,
    ) -> bool {
        // On a full disk the next segment must be short, as for a write.
        let context = &self.context;
        let is_released = !context.health.is_sound() && context.reserve.is_released();
        let wanted = match &mut self.lock().log {
            Some(log) if is_due(log) => {
                log.set_short(is_released);
                log.creation_to_end(ending)
            }
            _ => return false,
        };
        // Created without the lock, because creating it with the lock would stall writers.
        if let Some(creation) = wanted {
            self.create_free_segment(creation);
        }
        let ended = match &mut self.lock().log {
            Some(log) if is_due(log) && !self.is_broken() => log.end_segment(ending),
            _ => return false,
        };
        match ended {
            Ok(None) => false,
            Ok(Some(EndedEarly { header, ended })) => {
                self.sync_header(&header);
                drop(ended);
                true
            }
            Err(error) => {
                self.check_log(&error);
                self.context.health.report_failure();
                false
            }
        }
    }

    fn sync_header(&self, header: &Arc<HeaderSync>) {
        if let Err(error) = self.log_sync.sync_header(header) {
            self.context.health.fail(error);
        }
    }

    /// The log thread: syncs the log when a sync is due, prepares the pages that writers fill next,
    /// and cleans segments for reuse.
    pub(crate) fn run_log_thread(&self) {
        while let Some(task) = self.tasks.next(&self.context.signals) {
            match task {
                LogTask::PrefaultPages(pages) => pages.run(),
                LogTask::PrepareBlock => self.context.memtables.pool().prepare(),
                LogTask::SyncHeader(header) => self.sync_header(&header),
                LogTask::Clean(segment) => self.clean_segment(segment),
                LogTask::Drop(ended) => ended.unmap(),
                LogTask::PrepareMemtable(tree) => tree.prepare_memtable(&self.context.memtables),
                // A failure fails the database, where writers find it.
                LogTask::Sync => drop(self.sync_log()),
            }
        }
        // Only this thread performs due syncs, so a pending sync would otherwise be lost.
        if self.tasks.take_sync() {
            drop(self.sync_log());
        }
    }
}
