//! Who does what next in the background.
//!
//! One thread flushes, so that no flush waits for a compaction; others compact. Each looks for
//! something to do, does it, and sleeps when there is nothing until it is woken by a change. With
//! inline background work there are no threads, and whoever waits does the work.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use terrane_policy::{Compaction, PickInput, pick};

use super::compact::busy;
use super::{Engine, Tree};
use crate::error::{Error, Result};
use crate::wal::WantedSpare;

/// How long work that failed rests before it is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Errors in a row after which work that fails for a reason of the operating system, other than a
/// full disk, is given up.
const TRIES_MAX: u32 = 50;

/// What threads of a database share.
#[derive(Debug, Default)]
pub(super) struct Work {
    state: Mutex<WorkState>,
    /// Something may have come up.
    came_up: Condvar,
    /// Something was done.
    done: Condvar,
    is_stopping: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// By how much writers should have been slowed down, and were not yet.
    pub(super) delay_owed_nanos: AtomicU64,
    /// A sync of the log is due at some time.
    is_sync_due: AtomicBool,
    /// Tables may be kept for a snapshot only, and can go when it does.
    pub(super) wants_fewer_snapshots: AtomicBool,
}

#[derive(Debug, Default)]
struct WorkState {
    /// Rises whenever something may have come up.
    changes: u64,
    spare: Option<WantedSpare>,
    /// When the log must be synced next.
    sync_due: Option<Instant>,
    /// Files that nothing needs.
    unneeded: Vec<PathBuf>,
}

impl Work {
    fn lock(&self) -> MutexGuard<'_, WorkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Jobs may be done again, by whoever asks for them.
    pub(super) fn resume(&self) {
        self.is_stopping.store(false, Ordering::Release);
    }

    /// Something may have come up.
    pub(super) fn wake(&self) {
        self.lock().changes += 1;
        self.came_up.notify_all();
    }

    /// Has the flushing thread make a spare segment of the log.
    pub(super) fn make_spare(&self, spare: WantedSpare) {
        self.lock().spare = Some(spare);
        self.wake();
    }

    /// Has the flushing thread remove files.
    pub(super) fn remove_later(&self, paths: Vec<PathBuf>) {
        self.lock().unneeded.extend(paths);
        self.wake();
    }

    fn next_unneeded(&self) -> Option<PathBuf> {
        self.lock().unneeded.pop()
    }

    /// Has the log synced within `interval`.
    #[inline]
    pub(super) fn sync_within(&self, interval: Duration) {
        // Acquire pairs with the release of the thread that syncs: who finds it due was written
        // before that sync.
        if !self.is_sync_due.swap(true, Ordering::AcqRel) {
            self.lock().sync_due = Some(Instant::now() + interval);
            self.wake();
        }
    }

    fn tell_done(&self) {
        drop(self.lock());
        self.done.notify_all();
        self.wake();
    }

    /// Sleeps until something comes up that was not there at `seen`.
    fn sleep(&self, seen: u64) {
        let guard = self.lock();
        if guard.changes == seen && !self.is_stopping() {
            drop(self.came_up.wait(guard).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Rests, unless told to stop.
    fn rest(&self) {
        let guard = self.lock();
        if !self.is_stopping() {
            drop(
                self.done.wait_timeout(guard, RETRY_AFTER).unwrap_or_else(PoisonError::into_inner),
            );
        }
    }
}

impl Engine {
    /// Starts the threads of a database that has them.
    pub(super) fn start_threads(self: &Arc<Self>) -> Result<()> {
        if self.is_inline() {
            return Ok(());
        }
        self.start_thread("terrane-flush".into(), Self::flush_loop)?;
        self.start_thread("terrane-sync".into(), Self::sync_loop)?;
        for number in 0..self.settings.compaction_threads {
            self.start_thread(format!("terrane-compact-{number}"), Self::compact_loop)?;
        }
        self.start_drain_threads()
    }

    pub(super) fn start_thread(self: &Arc<Self>, name: String, run: fn(&Engine)) -> Result<()> {
        let mut threads = self.work.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let engine = Arc::clone(self);
        #[allow(clippy::disallowed_methods, reason = "the one place that starts threads")]
        let thread = std::thread::Builder::new().name(name).spawn(move || run(&engine));
        threads.push(thread.map_err(|error| Error::io("start a thread for", &self.dir, error))?);
        Ok(())
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.work.is_stopping()
    }

    /// Has all threads end, and waits for them. Jobs are given up where they are.
    pub(super) fn stop_threads(&self) {
        self.work.is_stopping.store(true, Ordering::Release);
        self.work.wake();
        self.work.tell_done();
        self.room.notify_all();
        self.drains.wake_all();
        let threads =
            std::mem::take(&mut *self.work.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A thread that panicked has nothing more to say.
            let _ = thread.join();
        }
        if let Some(pool) = &self.read_pool {
            pool.stop();
        }
    }

    fn flush_loop(&self) {
        let mut failures = 0;
        while !self.work.is_stopping() {
            let seen = self.work.lock().changes;
            self.make_spare();
            match self.find_flush() {
                Some(tree) => {
                    let result = self.flush_found(&tree);
                    self.judge(result, &mut failures);
                }
                // Quickly done, and so not left to a thread that may be at a long compaction.
                None => match self.find_drop() {
                    Some((tree, tables)) => {
                        let result = self.drop_tables(&tree, &tables);
                        self.judge(result, &mut failures);
                    }
                    None => match self.work.next_unneeded() {
                        Some(path) => self.remove_files(vec![path]),
                        None => self.work.sleep(seen),
                    },
                },
            }
        }
    }

    fn make_spare(&self) {
        let spare = self.work.lock().spare.take();
        if let Some(spare) = spare {
            let made = spare.make(&*self.storage, &self.dir).ok();
            if let Some(log) = &mut self.lock_writer().log {
                log.give_spare(made);
            }
        }
    }

    /// Syncs the log when that is due.
    fn sync_loop(&self) {
        while !self.work.is_stopping() {
            let guard = self.work.lock();
            let left = guard.sync_due.map(|due| due.saturating_duration_since(Instant::now()));
            match left {
                None => drop(self.work.came_up.wait(guard).unwrap_or_else(PoisonError::into_inner)),
                Some(Duration::ZERO) => {
                    let mut guard = guard;
                    guard.sync_due = None;
                    drop(guard);
                    self.work.is_sync_due.store(false, Ordering::Release);
                    // A failure is kept where writers find it.
                    let _ = self.sync_log();
                }
                Some(left) => {
                    let waited = self.work.came_up.wait_timeout(guard, left);
                    drop(waited.unwrap_or_else(PoisonError::into_inner));
                }
            }
        }
        // No one will be there when it is due.
        let is_owed = self.work.lock().sync_due.take().is_some();
        if is_owed {
            let _ = self.sync_log();
        }
    }

    fn compact_loop(&self) {
        let mut failures = 0;
        while !self.work.is_stopping() {
            let seen = self.work.lock().changes;
            match self.find_compaction() {
                Some((tree, compaction)) => {
                    let result = self.compact(&tree, &compaction);
                    self.judge(result, &mut failures);
                }
                None => self.work.sleep(seen),
            }
        }
    }

    /// What the outcome of a job means for the database.
    fn judge(&self, result: Result<()>, failures: &mut u32) {
        match result {
            Ok(()) => {
                *failures = 0;
                self.health.set_trouble(None);
                self.work.tell_done();
            }
            // Told to stop, or the tree is gone.
            Err(Error::Closed) => self.work.tell_done(),
            Err(error @ (Error::DiskFull(_) | Error::Io(_))) => {
                *failures += 1;
                let is_full = matches!(error, Error::DiskFull(_));
                if !is_full && *failures > TRIES_MAX {
                    self.health.fail(error);
                } else {
                    self.health.set_trouble(Some(error));
                }
                self.work.tell_done();
                self.tell_room();
                self.work.rest();
            }
            // The tables are left alone; the rest goes on.
            Err(error @ Error::Corruption(_)) => {
                self.health.set_trouble(Some(error));
                self.work.tell_done();
            }
            Err(error) => {
                self.health.fail(error);
                self.work.tell_done();
                self.tell_room();
                self.work.rest();
            }
        }
    }

    /// A tree with a full memtable that no one flushes; it is marked as being flushed.
    fn find_flush(&self) -> Option<Arc<Tree>> {
        let trees = self.trees();
        let mut waiting: Vec<&Arc<Tree>> =
            trees.values().filter(|tree| !tree.state().full.is_empty()).collect();
        // The one furthest behind first.
        waiting.sort_by_key(|tree| std::cmp::Reverse(tree.state().full.len()));
        waiting
            .into_iter()
            .find(|tree| !std::mem::replace(&mut tree.jobs().is_flushing, true))
            .cloned()
    }

    fn flush_found(&self, tree: &Arc<Tree>) -> Result<()> {
        let result = self.flush_oldest(tree);
        tree.jobs().is_flushing = false;
        result
    }

    /// A compaction that some tree needs; it is entered in the tree's jobs.
    fn find_compaction(&self) -> Option<(Arc<Tree>, Compaction)> {
        let trees = self.trees();
        trees.values().find_map(|tree| {
            let compaction = self.pick(tree)?;
            Some((Arc::clone(tree), compaction))
        })
    }

    fn pick(&self, tree: &Arc<Tree>) -> Option<Compaction> {
        let mut jobs = tree.jobs();
        let compaction = next_compaction(tree, &jobs)?;
        jobs.cursors.advance(&compaction);
        jobs.compactions.push(compaction.clone());
        Some(compaction)
    }

    /// Does one job that is waiting to be done; false if there is none.
    pub(crate) fn run_one_job(&self) -> Result<bool> {
        match self.do_one_job() {
            // The tree is gone; the database goes on.
            Err(Error::Closed) if self.health.check_open().is_ok() => Ok(true),
            other => other,
        }
    }

    fn do_one_job(&self) -> Result<bool> {
        self.make_spare();
        if let Some(tree) = self.find_flush() {
            return self.flush_found(&tree).map(|()| true);
        }
        if let Some((tree, tables)) = self.find_drop() {
            return self.drop_tables(&tree, &tables).map(|()| true);
        }
        let Some((tree, compaction)) = self.find_compaction() else { return Ok(false) };
        match self.compact(&tree, &compaction) {
            // The tables are left alone from now on; the rest goes on.
            Err(error @ Error::Corruption(_)) => {
                self.health.set_trouble(Some(error));
                Ok(true)
            }
            other => other.map(|()| true),
        }
    }

    /// Waits, or works where background work is inline, until `is_done`.
    pub(super) fn work_until(&self, is_done: impl Fn() -> bool) -> Result<()> {
        while !is_done() {
            self.health.check_writable()?;
            if let Some(error @ Error::DiskFull(_)) = self.health.trouble() {
                return Err(error);
            }
            self.work_a_little()?;
        }
        Ok(())
    }

    /// Waits for a job to be done, or does one.
    pub(super) fn work_a_little(&self) -> Result<()> {
        if self.is_inline() {
            self.run_one_job()?;
        } else {
            self.work.wake();
            self.work.rest();
        }
        Ok(())
    }

    /// Returns once there is nothing left to flush, to drop or to compact.
    pub(crate) fn wait_for_compactions(&self) -> Result<()> {
        self.work_until(|| {
            self.trees().values().all(|tree| {
                let jobs = self.lock_jobs_with_covered(tree);
                tree.state().full.is_empty()
                    && !jobs.is_flushing
                    && jobs.dropping.is_empty()
                    && self.due_drop(&jobs).is_empty()
                    && jobs.compactions.is_empty()
                    && next_compaction(tree, &jobs).is_none()
            })
        })
    }
}

fn next_compaction(tree: &Arc<Tree>, jobs: &super::tree::TreeJobs) -> Option<Compaction> {
    let state = tree.state();
    let shape = state.version.shape();
    let in_progress = busy(shape, jobs);
    let design = tree.design();
    let input =
        PickInput { shape, design: &design, in_progress: &in_progress, cursors: &jobs.cursors };
    pick(&input)
}
