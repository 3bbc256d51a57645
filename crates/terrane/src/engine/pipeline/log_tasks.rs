//! The log thread's work: syncs that are due, and preparations before writers need them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::context::Signals;
use crate::engine::tree::Tree;
use crate::files::wal::{
    EndedSegment, HeaderSync, PagePrefault, SegmentCleaning, SegmentCreation, SegmentRequests,
};

/// Work that writers leave to the log thread and the flush thread.
#[derive(Debug, Default)]
pub(super) struct LogTasks {
    queue: Mutex<Queue>,
    /// Notified when there may be a task for the log thread.
    changed: Condvar,
    /// `Queue::sync_due` is set, or about to be.
    is_sync_due: AtomicBool,
}

#[derive(Debug, Default)]
struct Queue {
    /// A free segment that the flush thread is to create.
    creation: Option<SegmentCreation>,
    /// Pages of the log that writers will soon fill.
    pages: Option<PagePrefault>,
    /// The header of the current segment.
    header: Option<Arc<HeaderSync>>,
    /// Segments that have ended and are to be unmapped.
    ended: Vec<EndedSegment>,
    /// Segments to be cleaned, so that the log can reuse them.
    unclean: Vec<SegmentCleaning>,
    /// Trees whose next memtable is to be created.
    memtables: Vec<Arc<Tree>>,
    /// A block of memory for memtables is to be prepared.
    needs_block: bool,
    /// When the log must be synced next.
    sync_due: Option<Instant>,
}

/// A task of the log thread.
pub(crate) enum LogTask {
    PrefaultPages(PagePrefault),
    SyncHeader(Arc<HeaderSync>),
    Clean(SegmentCleaning),
    Drop(EndedSegment),
    PrepareMemtable(Arc<Tree>),
    PrepareBlock,
    Sync,
}

impl LogTasks {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the log thread.
    pub(super) fn wake(&self) {
        // Taking the lock ensures that the thread is not between its check and its wait.
        drop(self.lock());
        self.changed.notify_all();
    }

    /// Requests a free segment.
    pub(super) fn request_creation(&self, creation: SegmentCreation) {
        self.lock().creation = Some(creation);
    }

    pub(super) fn take_creation(&self) -> Option<SegmentCreation> {
        self.lock().creation.take()
    }

    /// Requests the preparations for the next segment writes. Without a log thread, nothing is
    /// prepared in advance: writers write zeros in small steps, and switching segments syncs the
    /// header.
    pub(super) fn prepare(&self, requests: SegmentRequests) {
        let SegmentRequests { ended, pages, header } = requests;
        let mut queue = self.lock();
        queue.pages = pages;
        queue.ended.extend(ended);
        if header.is_some() {
            queue.header = header;
        }
        drop(queue);
        self.changed.notify_all();
    }

    /// Requests the next memtable of a tree.
    pub(super) fn prepare_memtable(&self, tree: Arc<Tree>) {
        self.lock().memtables.push(tree);
        self.changed.notify_all();
    }

    /// Requests a block of memory for memtables.
    pub(super) fn prepare_block(&self) {
        self.lock().needs_block = true;
        self.changed.notify_all();
    }

    /// Requests that segments be cleaned.
    pub(super) fn clean(&self, segments: Vec<SegmentCleaning>) {
        if !segments.is_empty() {
            self.lock().unclean.extend(segments);
            self.changed.notify_all();
        }
    }

    /// Requests a sync of the log within `interval`.
    #[inline]
    pub(super) fn sync_within(&self, interval: Duration) {
        // SeqCst, like the earlier publication of the write, the exchange in `next`, and the load
        // of the visible position after that: if a sync is already due, the log thread clears the
        // flag after this load, sees the write, and syncs its record. The flag is loaded before it
        // is exchanged, because all writers share it.
        let is_due = self.is_sync_due.load(Ordering::SeqCst);
        if !is_due && !self.is_sync_due.swap(true, Ordering::SeqCst) {
            self.lock().sync_due = Some(Instant::now() + interval);
            self.changed.notify_all();
        }
    }

    /// Returns true if a sync was due. From now on, no sync is due.
    pub(super) fn take_sync(&self) -> bool {
        self.lock().sync_due.take().is_some()
    }

    /// Waits for the next task of the log thread. Returns `None` if the database is stopping.
    pub(super) fn next(&self, signals: &Signals) -> Option<LogTask> {
        while !signals.is_stopping() {
            let mut queue = self.lock();
            if let Some(pages) = queue.pages.take() {
                return Some(LogTask::PrefaultPages(pages));
            }
            if let Some(header) = queue.header.take() {
                return Some(LogTask::SyncHeader(header));
            }
            if let Some(ended) = queue.ended.pop() {
                return Some(LogTask::Drop(ended));
            }
            if let Some(tree) = queue.memtables.pop() {
                return Some(LogTask::PrepareMemtable(tree));
            }
            if std::mem::take(&mut queue.needs_block) {
                return Some(LogTask::PrepareBlock);
            }
            let is_due = queue.sync_due.is_some_and(|due| due <= Instant::now());
            if !is_due && let Some(segment) = queue.unclean.pop() {
                return Some(LogTask::Clean(segment));
            }
            let left = queue.sync_due.map(|due| due.saturating_duration_since(Instant::now()));
            match left {
                // Checked again with the lock, which `wake` takes after the flag is set, because
                // its notification could otherwise be missed.
                _ if signals.is_stopping() => {}
                None => {
                    let waited = self.changed.wait(queue);
                    drop(waited.unwrap_or_else(PoisonError::into_inner));
                }
                Some(Duration::ZERO) => {
                    queue.sync_due = None;
                    drop(queue);
                    // The sync covers every write that found it due: see `sync_within`.
                    self.is_sync_due.swap(false, Ordering::SeqCst);
                    return Some(LogTask::Sync);
                }
                Some(left) => {
                    let waited = self.changed.wait_timeout(queue, left);
                    drop(waited.unwrap_or_else(PoisonError::into_inner));
                }
            }
        }
        None
    }
}
