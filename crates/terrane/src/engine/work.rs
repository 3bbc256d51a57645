//! Who does what next in the background.
//!
//! One thread flushes, so that no flush waits for a compaction; others compact. Each looks for
//! something to do, does it, and sleeps when there is nothing until it is woken by a change. With
//! inline background work there are no threads, and whoever waits does the work.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use terrane_policy::Compaction;

use super::gate::Pass;
use super::health::Trouble;
use super::priority::give_way;
use super::slow_down::Delays;
use super::tree::TreeJobs;
use super::{Engine, JobKind, Tree};
use crate::error::{Error, Result};
use crate::wal::{Ahead, HeaderSync, WantedClean, WantedPages, WantedSpare};

/// How long work that failed rests before it is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Compactions that may have begun at the same time, those at rest included, if there are not more
/// threads than that anyway.
const SCHEDULED_MAX: usize = 8;

/// A state of a tree that was replaced and is in use is looked at again after this time.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Errors in a row after which work that fails for a reason of the operating system, other than a
/// full disk, is given up.
const TRIES_MAX: u32 = 50;

/// What threads of a database share.
#[derive(Debug, Default)]
pub(super) struct Work {
    state: Mutex<WorkState>,
    /// Something may have come up.
    came_up: Condvar,
    /// Something may have come up for the thread of the log.
    log_came_up: Condvar,
    /// Something may have come up for a compacting thread beyond those that have places.
    spare_came_up: Condvar,
    /// Something was done.
    done: Condvar,
    /// Threads that are at a compaction.
    compacting: AtomicUsize,
    is_stopping: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// How many callers are at work for the database, in threads of their own.
    helpers: Mutex<usize>,
    /// Told when there is none left.
    no_helpers: Condvar,
    /// By how much writers should have been slowed down, and were not yet.
    pub(super) delays: Delays,
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
    /// What of the log will be written to soon.
    pages: Option<WantedPages>,
    /// The header of the segment that is written.
    header: Option<Arc<HeaderSync>>,
    /// Segments of the log that are to be written again.
    unclean: Vec<WantedClean>,
    /// When the log must be synced next.
    sync_due: Option<Instant>,
    /// Files that nothing needs.
    unneeded: Vec<PathBuf>,
}

impl Work {
    fn lock(&self) -> MutexGuard<'_, WorkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_helpers(&self) -> MutexGuard<'_, usize> {
        self.helpers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The caller is at work until it lets go of the answer. Whether the database is still open is
    /// asked afterwards.
    pub(super) fn help(&self) -> Helping<'_> {
        *self.lock_helpers() += 1;
        Helping { work: self }
    }

    /// Returns once no caller is at work.
    pub(super) fn wait_for_helpers(&self) {
        let mut helpers = self.lock_helpers();
        while *helpers > 0 {
            helpers = self.no_helpers.wait(helpers).unwrap_or_else(PoisonError::into_inner);
        }
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
        if self.compacting.load(Ordering::Relaxed) > 0 {
            self.spare_came_up.notify_all();
        }
    }

    /// Has the flushing thread make a spare segment of the log.
    pub(super) fn make_spare(&self, spare: WantedSpare) {
        self.lock().spare = Some(spare);
        self.wake();
    }

    /// Has the thread of the log do what is to be done before a segment is written further. Where
    /// there is none, the writer does it when it has to.
    pub(super) fn make_ready(&self, ahead: Ahead) {
        let mut state = self.lock();
        state.pages = ahead.pages;
        if ahead.header.is_some() {
            state.header = ahead.header;
        }
        drop(state);
        self.log_came_up.notify_all();
    }

    /// Has the thread of the log clean segments.
    pub(super) fn clean_later(&self, segments: Vec<WantedClean>) {
        if !segments.is_empty() {
            self.lock().unclean.extend(segments);
            self.log_came_up.notify_all();
        }
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
            self.log_came_up.notify_all();
        }
    }

    fn tell_done(&self) {
        drop(self.lock());
        self.done.notify_all();
        self.wake();
    }

    /// Sleeps until something comes up that was not there at `seen`, or for `most`.
    fn sleep_at_most(&self, seen: u64, most: Option<Duration>) {
        self.sleep_on(&self.came_up, seen, most);
    }

    fn sleep_on(&self, came_up: &Condvar, seen: u64, most: Option<Duration>) {
        let guard = self.lock();
        if guard.changes != seen || self.is_stopping() {
            return;
        }
        match most {
            None => drop(came_up.wait(guard).unwrap_or_else(PoisonError::into_inner)),
            Some(most) => {
                let waited = came_up.wait_timeout(guard, most);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    /// Rests, unless told to stop.
    pub(super) fn rest(&self) {
        let guard = self.lock();
        if !self.is_stopping() {
            drop(
                self.done.wait_timeout(guard, RETRY_AFTER).unwrap_or_else(PoisonError::into_inner),
            );
        }
    }
}

/// A caller that does work of the database itself. Closing waits for it: it may be making or
/// removing files, which may be those of the next opening afterwards.
pub(super) struct Helping<'a> {
    work: &'a Work,
}

impl Drop for Helping<'_> {
    fn drop(&mut self) {
        *self.work.lock_helpers() -= 1;
        self.work.no_helpers.notify_all();
    }
}

/// A thread at its work. If a panic ends it, its work is left for ever, and who waits is told.
struct Working<'a> {
    engine: &'a Engine,
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let what = "a thread of the database panicked; see the panic".into();
        self.engine.health.fail(Error::Internal { what });
        self.engine.work.tell_done();
        self.engine.tell_room();
    }
}

impl Engine {
    /// Starts the threads of a database that has them.
    pub(super) fn start_threads(self: &Arc<Self>) -> Result<()> {
        if self.is_inline() {
            return Ok(());
        }
        self.trees().values().for_each(|tree| tree.retired().keep());
        self.start_thread("terrane-flush".into(), Self::flush_loop)?;
        self.start_thread("terrane-log".into(), Self::log_loop)?;
        for number in 0..self.settings.compaction_threads.max(SCHEDULED_MAX) {
            let run = move |engine: &Engine| engine.compact_loop(number);
            self.start_thread(format!("terrane-compact-{number}"), run)?;
        }
        self.start_drain_threads()
    }

    pub(super) fn start_thread(
        self: &Arc<Self>,
        name: String,
        run: impl FnOnce(&Engine) + Send + 'static,
    ) -> Result<()> {
        let mut threads = self.work.threads.lock().unwrap_or_else(PoisonError::into_inner);
        // Closing says so before it takes the threads to end them: one that began after that would
        // never be told to end.
        self.health.check_open()?;
        let engine = Arc::clone(self);
        #[allow(clippy::disallowed_methods, reason = "the one place that starts threads")]
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            let _working = Working { engine: &engine };
            run(&engine);
        });
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
        self.work.spare_came_up.notify_all();
        self.gate.wake();
        self.work.log_came_up.notify_all();
        self.room.notify_all();
        self.drains.wake_all();
        let threads =
            std::mem::take(&mut *self.work.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A thread that panicked has nothing more to say.
            let _ = thread.join();
        }
        self.trees().values().for_each(|tree| tree.retired().keep_no_more());
        if let Some(pool) = &self.read_pool {
            pool.stop();
        }
    }

    fn flush_loop(&self) {
        let mut failures = 0;
        while !self.work.is_stopping() {
            let seen = self.work.lock().changes;
            self.make_spare();
            self.rotate_aged();
            match self.find_flush() {
                Some(tree) => {
                    let result = self.flush_found(&tree);
                    self.judge(JobKind::Flush, result, &mut failures);
                    self.let_go_of_retired();
                }
                None => {
                    self.health.end_trouble(JobKind::Flush);
                    let look_again = self.let_go_of_retired().then_some(LOOK_AGAIN);
                    self.do_small_work(seen, look_again, &mut failures);
                }
            }
        }
    }

    /// What is quickly done, and so not left to a thread that may be at a long compaction.
    fn do_small_work(&self, seen: u64, look_again: Option<Duration>, failures: &mut u32) {
        if let Some((tree, tables)) = self.find_drop() {
            let result = self.drop_tables(&tree, &tables);
            return self.judge(JobKind::Drop, result, failures);
        }
        self.health.end_trouble(JobKind::Drop);
        match self.work.next_unneeded() {
            Some(path) => self.remove_files(vec![path]),
            None => {
                let most = [self.next_aged(), look_again].into_iter().flatten().min();
                self.work.sleep_at_most(seen, most);
            }
        }
    }

    /// Lets go of states that were replaced, as far as no one uses them. True if someone does.
    pub(super) fn let_go_of_retired(&self) -> bool {
        let trees = self.trees();
        trees.values().filter(|tree| tree.retired().let_go()).count() > 0
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

    /// Syncs the log when that is due, readies what of it will be written to next, and cleans what
    /// will be written again.
    fn log_loop(&self) {
        while !self.work.is_stopping() {
            let mut guard = self.work.lock();
            if let Some(pages) = guard.pages.take() {
                drop(guard);
                pages.make();
                self.pool.prepare();
                continue;
            }
            if let Some(header) = guard.header.take() {
                drop(guard);
                let synced = self.log_sync.sync_header(&header);
                let _ = synced.inspect_err(|error| self.health.fail(error.clone()));
                continue;
            }
            let is_due = guard.sync_due.is_some_and(|due| due <= Instant::now());
            if !is_due && let Some(segment) = guard.unclean.pop() {
                drop(guard);
                self.clean_segment(segment);
                continue;
            }
            let left = guard.sync_due.map(|due| due.saturating_duration_since(Instant::now()));
            match left {
                // Told to stop since this was asked, or not: no one tells it twice.
                _ if self.work.is_stopping() => {}
                None => {
                    let waited = self.work.log_came_up.wait(guard);
                    drop(waited.unwrap_or_else(PoisonError::into_inner));
                }
                Some(Duration::ZERO) => {
                    guard.sync_due = None;
                    drop(guard);
                    self.work.is_sync_due.store(false, Ordering::Release);
                    // A failure is kept where writers find it.
                    let _ = self.sync_log();
                }
                Some(left) => {
                    let waited = self.work.log_came_up.wait_timeout(guard, left);
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

    /// As many threads as there are places look for compactions; a further one does when all before
    /// it are at one, as that may come to rest for the sake of a smaller one.
    fn compact_loop(&self, number: usize) {
        give_way();
        let mut failures = 0;
        while !self.work.is_stopping() {
            let seen = self.work.lock().changes;
            let is_spare = number >= self.settings.compaction_threads;
            if is_spare && self.work.compacting.load(Ordering::Relaxed) < number {
                self.work.sleep_on(&self.work.spare_came_up, seen, None);
                continue;
            }
            match self.find_compaction() {
                Some((tree, compaction, pass)) => {
                    self.work.compacting.fetch_add(1, Ordering::Relaxed);
                    // The next one may have something to do beside it.
                    self.work.spare_came_up.notify_all();
                    let result = self.compact(&tree, &compaction, pass);
                    self.work.compacting.fetch_sub(1, Ordering::Relaxed);
                    self.judge(JobKind::Compaction, result, &mut failures);
                }
                None if is_spare => {
                    self.work.sleep_on(&self.work.spare_came_up, seen, None);
                }
                None => {
                    self.health.end_trouble(JobKind::Compaction);
                    self.trees().values().for_each(|tree| self.tell_late_deletes(tree));
                    self.work.sleep_at_most(seen, self.next_due());
                }
            }
        }
    }

    /// What the outcome of a job means for the database.
    fn judge(&self, kind: JobKind, result: Result<()>, failures: &mut u32) {
        match result {
            Ok(()) => {
                *failures = 0;
                self.health.end_trouble(kind);
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
                    self.health.set_trouble(kind, error);
                }
                self.work.tell_done();
                self.tell_room();
                self.work.rest();
            }
            // The tables are left alone, and the tree says why; the rest goes on.
            Err(Error::Corruption(_)) if kind == JobKind::Compaction => self.work.tell_done(),
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

    /// A compaction that some tree needs and that would go on at once; it is entered in the tree's
    /// jobs.
    fn find_compaction(&self) -> Option<(Arc<Tree>, Compaction, Pass<'_>)> {
        let trees = self.trees();
        trees.values().find_map(|tree| {
            let (compaction, pass) = self.pick(tree)?;
            Some((Arc::clone(tree), compaction, pass))
        })
    }

    fn pick(&self, tree: &Arc<Tree>) -> Option<(Compaction, Pass<'_>)> {
        let mut jobs = tree.jobs();
        let compaction = self.next_compaction(tree, &jobs)?;
        let merge = self.as_merge(tree, &jobs, &compaction);
        let from = compaction.from_level();
        if !self.gate.takes(&merge, from) {
            return None;
        }
        jobs.cursors.advance(&compaction);
        jobs.compactions.push(compaction.clone());
        Some((compaction, self.gate.enter(merge, from)))
    }

    /// Does one job that is waiting to be done; false if there is none.
    pub(crate) fn run_one_job(&self) -> Result<bool> {
        let done = self.do_one_job();
        // Threads, if there are any, may have something to do after it.
        self.work.tell_done();
        match done {
            // The tree is gone; the database goes on.
            Err(Error::Closed) if self.health.check_open().is_ok() => Ok(true),
            other => other,
        }
    }

    fn do_one_job(&self) -> Result<bool> {
        let _helping = self.work.help();
        self.health.check_open()?;
        self.make_spare();
        self.rotate_aged();
        if let Some(tree) = self.find_flush() {
            return self.flush_found(&tree).map(|()| true);
        }
        if let Some((tree, tables)) = self.find_drop() {
            return self.drop_tables(&tree, &tables).map(|()| true);
        }
        let Some((tree, compaction, pass)) = self.find_compaction() else {
            self.trees().values().for_each(|tree| self.tell_late_deletes(tree));
            return Ok(false);
        };
        match self.compact(&tree, &compaction, pass) {
            // The tables are left alone from now on, and the tree says why; the rest goes on.
            Err(Error::Corruption(_)) => Ok(true),
            other => other.map(|()| true),
        }
    }

    /// Whether another thread is carrying out a job.
    pub(super) fn is_working(&self) -> bool {
        self.trees().values().any(|tree| {
            let jobs = tree.jobs();
            jobs.is_flushing || !jobs.compactions.is_empty() || !jobs.dropping.is_empty()
        })
    }

    /// Waits, or works where background work is inline, until `is_done`.
    ///
    /// # Errors
    /// There was no room on the disk for work of these kinds, since the wait began.
    pub(super) fn work_until(
        &self,
        kinds: &[JobKind],
        is_done: impl Fn() -> Result<bool>,
    ) -> Result<()> {
        let before = self.health.failures();
        while !is_done()? {
            self.health.check_writable()?;
            let mut troubles = kinds.iter().filter_map(|kind| self.health.trouble(*kind));
            let full = troubles.find_map(|trouble| match trouble {
                Trouble { error: error @ Error::DiskFull(_), number } if number > before => {
                    Some(error)
                }
                _ => None,
            });
            if let Some(error) = full {
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
    ///
    /// # Errors
    /// What is left cannot be done, as a table cannot be read.
    pub(crate) fn wait_for_compactions(&self) -> Result<()> {
        self.work_until(&[JobKind::Flush, JobKind::Drop, JobKind::Compaction], || {
            let trees = self.trees();
            let mut damage = None;
            for tree in trees.values() {
                let jobs = self.lock_jobs_with_covered(tree);
                if !self.is_quiet(tree, &jobs)
                    || self.has_aged(tree)
                    || self.next_compaction(tree, &jobs).is_some()
                {
                    return Ok(false);
                }
                let wanted = self.wanted_compaction(tree, &jobs);
                damage = damage.or_else(|| jobs.damage_to(&wanted?));
            }
            damage.map_or(Ok(true), Err)
        })
    }

    /// Whether there is nothing to be flushed or dropped in a tree, and no job goes on.
    pub(super) fn is_quiet(&self, tree: &Tree, jobs: &TreeJobs) -> bool {
        tree.state().full.is_empty()
            && !jobs.is_flushing
            && jobs.dropping.is_empty()
            && self.due_drop(jobs).is_empty()
            && jobs.compactions.is_empty()
    }
}
