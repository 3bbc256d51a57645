//! Threads that search several runs at the same time for one reader (Dent §2.4.2, §2.6.2).
//!
//! A reader offers its tasks, newest first, and works on them itself; idle threads join. As with
//! Dent's shared counter, each thread takes the next task that is not taken, until a task has an
//! answer that makes older tasks pointless. The reader waits only for the tasks before the answer.
//!
//! Invariants:
//! 1. A reader never waits for a thread that has not begun, because the reader itself runs every
//!    task that no thread has taken. So a busy or stopped pool makes reads slower, not impossible.
//! 2. A search returns the results of the first tasks in order, as if one thread had run them one by
//!    one. The results of later tasks, including errors, are dropped.
//! 3. A task that panics in a thread of the pool ends the read with an error; the thread continues with
//!    other readers.
//!
//! Waking a thread costs as much as dozens of searches in tables that are in memory. So readers use
//! the pool only while reads are slow ([`ReadPool::helps`]): after [`QUICK_READS`] consecutive
//! reads faster than [`SLOW_READ`] they search alone, until a read is slow again.
//!
//! The number of pending offers is bounded ([`OFFERS_PER_THREAD`]).

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// The maximum number of pending offers per thread. If there were more, their readers would be done
/// before a thread takes the offers.
const OFFERS_PER_THREAD: usize = 2;

/// If a read by one thread takes at least this long, it is worth waking other threads: a sleeping
/// thread begins after about 10 microseconds, and a read from a fast device takes at least 50.
const SLOW_READ: Duration = Duration::from_micros(50);

/// The number of consecutive quick reads after which readers search alone.
const QUICK_READS: u32 = 64;

/// The threads of a database that help its readers.
#[derive(Debug)]
pub(crate) struct ReadPool {
    offers: Arc<Offers>,
    count: usize,
    /// The number of consecutive quick reads, up to [`QUICK_READS`].
    quick_reads: AtomicU32,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Searches that threads may join.
#[derive(Default)]
struct Offers {
    queue: Mutex<Queue>,
    /// There is an offer, or the pool is stopping.
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Arc<dyn Join>>,
    is_stopping: bool,
}

/// A search that any thread may join.
trait Join: Send + Sync {
    /// Runs tasks until all are taken.
    fn join(&self);
}

impl ReadPool {
    /// Starts `count` threads.
    pub(crate) fn start(count: usize) -> std::io::Result<Arc<Self>> {
        let pool = Arc::new(Self {
            offers: Arc::default(),
            count,
            quick_reads: AtomicU32::new(0),
            threads: Mutex::default(),
        });
        for number in 0..count {
            let offers = Arc::clone(&pool.offers);
            let name = format!("terrane-read-{number}");
            #[allow(clippy::disallowed_methods, reason = "a place that starts threads")]
            let thread = std::thread::Builder::new().name(name).spawn(move || offers.serve())?;
            pool.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        }
        Ok(pool)
    }

    /// Ends the threads once they have finished their tasks.
    pub(crate) fn stop(&self) {
        {
            let mut queue = self.offers.lock();
            queue.is_stopping = true;
            queue.waiting.clear();
        }
        self.offers.changed.notify_all();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A panic in a task fails only its read and does not end the thread.
            let _ = thread.join();
        }
    }

    /// Returns true if reads are slow enough to use the pool.
    #[inline]
    pub(crate) fn helps(&self) -> bool {
        // Relaxed: because of a stale value, at most one read more, or one read fewer, uses the
        // pool.
        self.quick_reads.load(Ordering::Relaxed) < QUICK_READS
    }

    /// Records the time that one thread took for a read, or would have taken.
    #[inline]
    pub(crate) fn record(&self, took: Duration) {
        let quick = self.quick_reads.load(Ordering::Relaxed);
        let next = if took >= SLOW_READ { 0 } else { (quick + 1).min(QUICK_READS) };
        // An unchanged value is not stored, because all readers share the cache line.
        if next != quick {
            self.quick_reads.store(next, Ordering::Relaxed);
        }
    }

    /// Runs `search` for all `tasks`, in parallel. Returns the results in the order of the tasks,
    /// up to the first result for which `ends` holds; the other results are dropped.
    ///
    /// # Errors
    /// [`Error::Internal`] if a task panicked in a thread of the pool.
    pub(crate) fn search<T, R, F>(
        &self,
        tasks: Vec<T>,
        ends: fn(&R) -> bool,
        search: F,
    ) -> Result<Vec<R>>
    where
        T: Send + 'static,
        R: Send + 'static,
        F: Fn(T) -> R + Send + Sync + 'static,
    {
        let helpers = self.count.min(tasks.len().saturating_sub(1));
        let shared = Arc::new(Search::new(tasks, ends, search));
        self.offers.offer(&shared, helpers, self.count * OFFERS_PER_THREAD);
        shared.join();
        let (results, took) = shared.results();
        self.record(took);
        results
    }
}

impl Drop for ReadPool {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Offers {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn offer<J: Join + 'static>(&self, search: &Arc<J>, helpers: usize, limit: usize) {
        let wanted = {
            let mut queue = self.lock();
            if queue.is_stopping {
                return;
            }
            let wanted = helpers.min(limit.saturating_sub(queue.waiting.len()));
            for _ in 0..wanted {
                queue.waiting.push_back(Arc::clone(search) as Arc<dyn Join>);
            }
            wanted
        };
        (0..wanted).for_each(|_| self.changed.notify_one());
    }

    /// Runs a thread of the pool.
    fn serve(&self) {
        while let Some(search) = self.next() {
            // The guard of the task reports the panic to its reader; the thread continues.
            let _ = catch_unwind(AssertUnwindSafe(|| search.join()));
        }
    }

    fn next(&self) -> Option<Arc<dyn Join>> {
        let mut queue = self.lock();
        loop {
            if queue.is_stopping {
                return None;
            }
            if let Some(search) = queue.waiting.pop_front() {
                return Some(search);
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl std::fmt::Debug for Offers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Offers({} waiting)", self.lock().waiting.len())
    }
}

/// The search of one reader.
struct Search<T, R, F> {
    progress: Mutex<Progress<T, R>>,
    /// A task has finished.
    done: Condvar,
    ends: fn(&R) -> bool,
    search: F,
}

struct Progress<T, R> {
    tasks: Vec<Task<T, R>>,
    /// The first task that is not taken.
    next: usize,
    /// Tasks from this index on are not needed.
    end: usize,
    /// The total time of all tasks.
    took: Duration,
}

enum Task<T, R> {
    Waiting(T),
    Taken,
    Done(R),
    /// The search panicked.
    Lost,
}

impl<T, R, F: Fn(T) -> R> Search<T, R, F> {
    fn new(tasks: Vec<T>, ends: fn(&R) -> bool, search: F) -> Self {
        let tasks: Vec<_> = tasks.into_iter().map(Task::Waiting).collect();
        let progress = Progress { next: 0, end: tasks.len(), tasks, took: Duration::ZERO };
        Self { progress: Mutex::new(progress), done: Condvar::new(), ends, search }
    }

    fn lock(&self) -> MutexGuard<'_, Progress<T, R>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<(RunningTask<'_, T, R, F>, T)> {
        let mut progress = self.lock();
        if progress.next >= progress.end {
            return None;
        }
        let index = progress.next;
        progress.next += 1;
        let task = std::mem::replace(progress.tasks.get_mut(index)?, Task::Taken);
        match task {
            Task::Waiting(task) => {
                let begin = Instant::now();
                Some((RunningTask { search: self, index, begin, result: None }, task))
            }
            _ => None,
        }
    }

    /// Waits for the tasks that other threads have taken. Returns the results and the total time.
    fn results(&self) -> (Result<Vec<R>>, Duration) {
        let mut progress = self.lock();
        let is_open = |progress: &Progress<T, R>| {
            let mut wanted = progress.tasks.iter().take(progress.end);
            wanted.any(|task| matches!(task, Task::Waiting(_) | Task::Taken))
        };
        while is_open(&progress) {
            progress = self.done.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
        let mut tasks = std::mem::take(&mut progress.tasks);
        tasks.truncate(std::mem::take(&mut progress.end));
        let took = progress.took;
        drop(progress);
        let result = |task| match task {
            Task::Done(result) => Ok(result),
            _ => Err(Error::internal("a search panicked in a thread of the read pool")),
        };
        (tasks.into_iter().map(result).collect(), took)
    }
}

impl<T: Send, R: Send, F: Fn(T) -> R + Send + Sync> Join for Search<T, R, F> {
    fn join(&self) {
        while let Some((mut taken, task)) = self.take() {
            taken.result = Some((self.search)(task));
        }
    }
}

/// A task that a thread is running. The task ends when this value is dropped, even by a panic.
struct RunningTask<'a, T, R, F: Fn(T) -> R> {
    search: &'a Search<T, R, F>,
    index: usize,
    begin: Instant,
    result: Option<R>,
}

impl<T, R, F: Fn(T) -> R> Drop for RunningTask<'_, T, R, F> {
    fn drop(&mut self) {
        let result = self.result.take();
        let is_last = result.as_ref().is_none_or(self.search.ends);
        let took = self.begin.elapsed();
        let mut progress = self.search.lock();
        progress.took += took;
        if is_last {
            progress.end = progress.end.min(self.index + 1);
        }
        // The reader may have returned with the results of earlier tasks.
        if let Some(task) = progress.tasks.get_mut(self.index) {
            *task = result.map_or(Task::Lost, Task::Done);
        }
        drop(progress);
        self.search.done.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    fn never<R>(_: &R) -> bool {
        false
    }

    #[test]
    fn results_are_in_order_regardless_of_the_thread() {
        for count in [0, 1, 3] {
            let pool = ReadPool::start(count).unwrap();
            for len in [0, 1, 2, 40] {
                let results = pool.search((0..len).collect(), never, |task: usize| task * 2);
                assert_eq!(results.unwrap(), (0..len).map(|task| task * 2).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn tasks_run_at_the_same_time() {
        let pool = ReadPool::start(2).unwrap();
        // Passes only if the reader and both threads work at once.
        let barrier = Barrier::new(3);
        let waits = move |task: usize| barrier.wait().is_leader().then_some(task);
        let results = pool.search(vec![0, 1, 2], never, waits).unwrap();
        assert_eq!(results.iter().flatten().count(), 1);
    }

    #[test]
    fn the_first_answer_wins_over_later_ones_that_finish_sooner() {
        let pool = ReadPool::start(3).unwrap();
        for _ in 0..50 {
            let answers = |task: usize| {
                std::thread::sleep(Duration::from_micros(if task == 1 { 300 } else { 0 }));
                if task == 0 {
                    Ok(None)
                } else if task == 1 {
                    Ok(Some(1))
                } else {
                    Err(task)
                }
            };
            let ends = |result: &std::result::Result<Option<usize>, usize>| *result != Ok(None);
            let results = pool.search((0..9).collect(), ends, answers).unwrap();
            assert_eq!(results, [Ok(None), Ok(Some(1))]);
        }
    }

    #[test]
    #[cfg_attr(invariants, ignore = "internal errors are panics")]
    fn a_panic_in_the_pool_is_an_error_and_the_threads_continue() {
        let pool = ReadPool::start(2).unwrap();
        let reader = std::thread::current().id();
        for _ in 0..5 {
            let meet = Barrier::new(2);
            let panics = move |_: usize| {
                meet.wait();
                assert_eq!(std::thread::current().id(), reader, "on purpose");
            };
            let error = pool.search(vec![0, 1], never, panics).unwrap_err();
            assert!(error.to_string().contains("panicked"), "{error}");
        }
        assert_eq!(pool.search(vec![1, 2], never, |task| task).unwrap(), [1, 2]);
    }

    #[test]
    fn readers_work_alone_after_the_pool_has_stopped() {
        let pool = ReadPool::start(2).unwrap();
        pool.stop();
        assert_eq!(pool.search(vec![1, 2, 3], never, |task| task).unwrap(), [1, 2, 3]);
        pool.stop();
    }

    #[test]
    fn stopping_while_readers_wait_loses_no_result() {
        for _ in 0..20 {
            let pool = ReadPool::start(2).unwrap();
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..50 {
                            let slow = |task: usize| {
                                std::thread::sleep(Duration::from_micros(10));
                                task
                            };
                            let results = pool.search((0..5).collect(), never, slow).unwrap();
                            assert_eq!(results, [0, 1, 2, 3, 4]);
                        }
                    });
                }
                std::thread::sleep(Duration::from_millis(2));
                pool.stop();
            });
        }
    }

    #[test]
    fn quick_reads_do_not_use_the_pool_until_one_is_slow() {
        let pool = ReadPool::start(1).unwrap();
        assert!(pool.helps());
        (0..QUICK_READS).for_each(|_| pool.record(Duration::from_micros(1)));
        assert!(!pool.helps());
        let slow = |_: usize| std::thread::sleep(Duration::from_millis(1));
        pool.search(vec![1, 2], never, slow).unwrap();
        assert!(pool.helps());
        (0..QUICK_READS - 1).for_each(|_| pool.record(Duration::ZERO));
        assert!(pool.helps());
        pool.record(SLOW_READ);
        (0..QUICK_READS - 1).for_each(|_| pool.record(Duration::ZERO));
        assert!(pool.helps());
    }

    #[test]
    fn tasks_after_the_answer_do_not_begin() {
        let pool = ReadPool::start(1).unwrap();
        let begun = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&begun);
        let count = move |_: usize| counted.fetch_add(1, Ordering::Relaxed);
        pool.search((0..1000).collect(), |_| true, count).unwrap();
        pool.stop();
        // Each of the two workers has begun at most its first task.
        assert!(begun.load(Ordering::Relaxed) <= 2);
    }
}
