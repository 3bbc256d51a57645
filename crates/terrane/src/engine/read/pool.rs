//! Threads that search several places at the same time for one reader (Dent §2.4.2, §2.6.2).
//!
//! A reader hands over its parts, newest first, and works on them itself; threads that are free
//! join in. All of them take the next part that nobody has taken, as with Dent's shared counter,
//! until one has an answer that makes older parts pointless. The reader waits for the parts before
//! the answer only.
//!
//! Invariants:
//! 1. A reader never waits for a thread that has not begun: what nobody takes it does itself. So a
//!    pool that is busy, or has stopped, makes reads slower and not impossible.
//! 2. What is returned are the results of the first parts in order, as if one thread had done them
//!    one by one. Work on later parts may have been begun; its results, errors too, are dropped.
//! 3. A part whose search panics in a thread of the pool ends the read with an error; the thread
//!    goes on with other readers.
//!
//! Waking a thread costs as much as dozens of searches of tables that are in memory. So readers hand
//! over only while reads are slow ([`ReadPool::helps`]): after [`QUICK_READS`] in a row that took
//! less than [`SLOW_READ`] they search alone, until one of them is slow again.
//!
//! Offers that nobody has taken up are bounded ([`OFFERS_PER_THREAD`]).

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// More offers than this are not taken up before their readers are done.
const OFFERS_PER_THREAD: usize = 2;

/// What one thread takes for a read that is worth waking others for: a sleeping thread begins some
/// 10 microseconds later, a read from a fast device takes 50 and more.
const SLOW_READ: Duration = Duration::from_micros(50);

/// Reads in a row that were quick, before readers search alone.
const QUICK_READS: u32 = 64;

/// The threads of a database that help its readers.
#[derive(Debug)]
pub(crate) struct ReadPool {
    offers: Arc<Offers>,
    count: usize,
    /// Reads in a row that were quick, up to [`QUICK_READS`].
    quick_reads: AtomicU32,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Searches that threads may join.
#[derive(Default)]
struct Offers {
    queue: Mutex<Queue>,
    /// There is an offer, or the end.
    came_up: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Arc<dyn Join>>,
    is_stopping: bool,
}

/// A search that any thread may take part in.
trait Join: Send + Sync {
    /// Works on parts until none is left.
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

    /// Has the threads end, once they are done with the parts that they have begun.
    pub(crate) fn stop(&self) {
        {
            let mut queue = self.offers.lock();
            queue.is_stopping = true;
            queue.waiting.clear();
        }
        self.offers.came_up.notify_all();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A thread that panicked has nothing more to say.
            let _ = thread.join();
        }
    }

    /// Whether reads are slow enough to be handed over.
    #[inline]
    pub(crate) fn helps(&self) -> bool {
        // Relaxed: who reads it late hands over a read too many, or one too few.
        self.quick_reads.load(Ordering::Relaxed) < QUICK_READS
    }

    /// Remembers what one thread took for a read, or would have taken.
    #[inline]
    pub(crate) fn note(&self, took: Duration) {
        let quick = self.quick_reads.load(Ordering::Relaxed);
        let next = if took >= SLOW_READ { 0 } else { (quick + 1).min(QUICK_READS) };
        // Where nothing changes, nothing is written to a line that all readers share.
        if next != quick {
            self.quick_reads.store(next, Ordering::Relaxed);
        }
    }

    /// Does `search` for all `parts` at the same time. Returns the results in the order of the
    /// parts, up to the first one for which `ends` holds; the others are dropped.
    ///
    /// # Errors
    /// The search of a part panicked in a thread of the pool.
    pub(crate) fn search<T, R, F>(
        &self,
        parts: Vec<T>,
        ends: fn(&R) -> bool,
        search: F,
    ) -> Result<Vec<R>>
    where
        T: Send + 'static,
        R: Send + 'static,
        F: Fn(T) -> R + Send + Sync + 'static,
    {
        let helpers = self.count.min(parts.len().saturating_sub(1));
        let shared = Arc::new(Search::new(parts, ends, search));
        self.offers.offer(&shared, helpers, self.count * OFFERS_PER_THREAD);
        shared.join();
        let (results, took) = shared.results();
        self.note(took);
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
        (0..wanted).for_each(|_| self.came_up.notify_one());
    }

    /// What a thread of the pool does.
    fn serve(&self) {
        while let Some(search) = self.next() {
            // The part tells its reader; the thread is still good.
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
            queue = self.came_up.wait(queue).unwrap_or_else(PoisonError::into_inner);
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
    /// A part is done.
    done: Condvar,
    ends: fn(&R) -> bool,
    search: F,
}

struct Progress<T, R> {
    parts: Vec<Part<T, R>>,
    /// The first part that nobody has taken.
    next: usize,
    /// Parts from here on are of no interest.
    end: usize,
    /// Time spent on all parts together.
    took: Duration,
}

enum Part<T, R> {
    Waiting(T),
    Taken,
    Done(R),
    /// Its search panicked.
    Lost,
}

impl<T, R, F: Fn(T) -> R> Search<T, R, F> {
    fn new(parts: Vec<T>, ends: fn(&R) -> bool, search: F) -> Self {
        let parts: Vec<_> = parts.into_iter().map(Part::Waiting).collect();
        let progress = Progress { next: 0, end: parts.len(), parts, took: Duration::ZERO };
        Self { progress: Mutex::new(progress), done: Condvar::new(), ends, search }
    }

    fn lock(&self) -> MutexGuard<'_, Progress<T, R>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<(Taken<'_, T, R, F>, T)> {
        let mut progress = self.lock();
        if progress.next >= progress.end {
            return None;
        }
        let index = progress.next;
        progress.next += 1;
        let part = std::mem::replace(progress.parts.get_mut(index)?, Part::Taken);
        match part {
            Part::Waiting(part) => {
                let begin = Instant::now();
                Some((Taken { search: self, index, begin, result: None }, part))
            }
            _ => None,
        }
    }

    /// Waits for the parts that others have taken, and takes the results; and what they took.
    fn results(&self) -> (Result<Vec<R>>, Duration) {
        let mut progress = self.lock();
        let is_open = |progress: &Progress<T, R>| {
            let mut wanted = progress.parts.iter().take(progress.end);
            wanted.any(|part| matches!(part, Part::Waiting(_) | Part::Taken))
        };
        while is_open(&progress) {
            progress = self.done.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
        let mut parts = std::mem::take(&mut progress.parts);
        parts.truncate(std::mem::take(&mut progress.end));
        let took = progress.took;
        drop(progress);
        let result = |part| match part {
            Part::Done(result) => Ok(result),
            _ => Err(Error::internal("a search panicked in a thread of the read pool")),
        };
        (parts.into_iter().map(result).collect(), took)
    }
}

impl<T: Send, R: Send, F: Fn(T) -> R + Send + Sync> Join for Search<T, R, F> {
    fn join(&self) {
        while let Some((mut taken, part)) = self.take() {
            taken.result = Some((self.search)(part));
        }
    }
}

/// A part that someone works on. It is done when this goes, also by a panic.
struct Taken<'a, T, R, F: Fn(T) -> R> {
    search: &'a Search<T, R, F>,
    index: usize,
    begin: Instant,
    result: Option<R>,
}

impl<T, R, F: Fn(T) -> R> Drop for Taken<'_, T, R, F> {
    fn drop(&mut self) {
        let result = self.result.take();
        let is_last = result.as_ref().is_none_or(self.search.ends);
        let took = self.begin.elapsed();
        let mut progress = self.search.lock();
        progress.took += took;
        if is_last {
            progress.end = progress.end.min(self.index + 1);
        }
        // The reader may have gone with the parts before.
        if let Some(part) = progress.parts.get_mut(self.index) {
            *part = result.map_or(Part::Lost, Part::Done);
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
    fn results_come_in_order_whoever_works() {
        for count in [0, 1, 3] {
            let pool = ReadPool::start(count).unwrap();
            for len in [0, 1, 2, 40] {
                let results = pool.search((0..len).collect(), never, |part: usize| part * 2);
                assert_eq!(results.unwrap(), (0..len).map(|part| part * 2).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn parts_are_worked_on_at_the_same_time() {
        let pool = ReadPool::start(2).unwrap();
        // Passes only if three work at once: the reader and both threads.
        let barrier = Barrier::new(3);
        let waits = move |part: usize| barrier.wait().is_leader().then_some(part);
        let results = pool.search(vec![0, 1, 2], never, waits).unwrap();
        assert_eq!(results.iter().flatten().count(), 1);
    }

    #[test]
    fn the_first_answer_wins_over_later_ones_that_come_sooner() {
        let pool = ReadPool::start(3).unwrap();
        for _ in 0..50 {
            let answers = |part: usize| {
                std::thread::sleep(Duration::from_micros(if part == 1 { 300 } else { 0 }));
                if part == 0 {
                    Ok(None)
                } else if part == 1 {
                    Ok(Some(1))
                } else {
                    Err(part)
                }
            };
            let ends = |result: &std::result::Result<Option<usize>, usize>| *result != Ok(None);
            let results = pool.search((0..9).collect(), ends, answers).unwrap();
            assert_eq!(results, [Ok(None), Ok(Some(1))]);
        }
    }

    #[test]
    #[cfg_attr(invariants, ignore = "internal errors are panics")]
    fn a_panic_in_the_pool_is_an_error_and_the_threads_go_on() {
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
        assert_eq!(pool.search(vec![1, 2], never, |part| part).unwrap(), [1, 2]);
    }

    #[test]
    fn a_pool_that_stopped_leaves_the_work_to_readers() {
        let pool = ReadPool::start(2).unwrap();
        pool.stop();
        assert_eq!(pool.search(vec![1, 2, 3], never, |part| part).unwrap(), [1, 2, 3]);
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
                            let slow = |part: usize| {
                                std::thread::sleep(Duration::from_micros(10));
                                part
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
    fn reads_that_are_quick_are_not_handed_over_until_one_is_slow() {
        let pool = ReadPool::start(1).unwrap();
        assert!(pool.helps());
        (0..QUICK_READS).for_each(|_| pool.note(Duration::from_micros(1)));
        assert!(!pool.helps());
        let slow = |_: usize| std::thread::sleep(Duration::from_millis(1));
        pool.search(vec![1, 2], never, slow).unwrap();
        assert!(pool.helps());
        (0..QUICK_READS - 1).for_each(|_| pool.note(Duration::ZERO));
        assert!(pool.helps());
        pool.note(SLOW_READ);
        (0..QUICK_READS - 1).for_each(|_| pool.note(Duration::ZERO));
        assert!(pool.helps());
    }

    #[test]
    fn parts_after_the_answer_are_not_begun_later() {
        let pool = ReadPool::start(1).unwrap();
        let begun = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&begun);
        let count = move |_: usize| counted.fetch_add(1, Ordering::Relaxed);
        pool.search((0..1000).collect(), |_| true, count).unwrap();
        pool.stop();
        // The first part of each that worked, at most.
        assert!(begun.load(Ordering::Relaxed) <= 2);
    }
}
