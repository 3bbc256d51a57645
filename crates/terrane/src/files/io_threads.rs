//! Threads that read on behalf of readers, so that several reads of a device overlap.
//!
//! A device with a queue serves many reads in little more time than one. A reader that needs several
//! blocks starts their reads here and waits for all of them; a scan starts reading its next blocks
//! while its caller consumes the current ones.
//!
//! 1. A waiting reader never depends on a free thread: it runs its own read if no thread has begun
//!    it. Reads therefore cannot deadlock, and without threads they run one after the other.
//! 2. Threads start when reads wait for them, up to a maximum, and stay until the database is closed.
//! 3. A read from the page cache is quicker than the hand-over, so readers read alone unless many of
//!    the recent reads were slow ([`IoThreads::helps`]). A single slow read proves nothing: the
//!    thread may have been preempted.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A read that takes at least this long, and longer than a copy of its bytes, is worth another thread: a
/// sleeping thread begins after about 10 microseconds, and a fast device takes at least 40 for a block.
const SLOW_READ: Duration = Duration::from_micros(20);

/// The time that each of several reads from the page cache takes besides the copy: about half of the 0.6 µs for 4 KiB.
const READ_OVERHEAD: Duration = Duration::from_nanos(300);

/// The bytes that are copied from the page cache in a nanosecond, at least, and at most about. Between the two
/// a large read may come from either.
const COPIED_PER_NANO: u64 = 2;
const COPIED_PER_NANO_MAX: u64 = 8;

/// A slow read adds this to the score, and a quick read subtracts 1: threads help if at least about
/// one in eight reads is slow.
const SLOW_SCORE: u32 = 8;
const SCORE_MAX: u32 = 64;

/// The lowest score at which threads help.
const HELPS_FROM: u32 = 17;

/// The threads of a database that read for its readers.
#[derive(Debug)]
pub(crate) struct IoThreads {
    shared: Arc<Shared>,
    count_max: usize,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    /// Signals that a read waits, or that the threads must stop.
    changed: Condvar,
    /// How slow the recent reads were, up to [`SCORE_MAX`].
    score: AtomicU32,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Arc<dyn Run>>,
    /// The number of threads that wait for a read.
    idle: usize,
    threads: Vec<JoinHandle<()>>,
    is_stopping: bool,
}

/// A read that any thread may run.
trait Run: Send + Sync {
    /// Runs the read, unless it has begun or was abandoned.
    fn run(&self);
}

impl IoThreads {
    /// At most `count_max` threads, none of which runs yet.
    pub(crate) fn new(count_max: usize) -> Self {
        let (queue, changed) = (Mutex::default(), Condvar::new());
        // Reads count as slow until some were measured.
        let score = AtomicU32::new(SCORE_MAX / 2);
        Self { shared: Arc::new(Shared { queue, changed, score }), count_max }
    }

    /// Returns true if there are or may be other threads.
    pub(crate) fn may_start(&self) -> bool {
        self.count_max > 0
    }

    /// Returns true if reads are slow enough to use other threads.
    #[inline]
    pub(crate) fn helps(&self) -> bool {
        // Relaxed: with a stale value, only a few reads more or fewer use other threads.
        self.count_max > 0 && self.is_slow()
    }

    /// Returns true if many of the recent reads were slow.
    #[inline]
    pub(crate) fn is_slow(&self) -> bool {
        self.shared.score.load(Ordering::Relaxed) >= HELPS_FROM
    }

    /// Runs a read of a block on this thread, and records its duration.
    pub(crate) fn read_alone<T>(&self, read: impl FnOnce() -> T) -> T {
        self.read_much_alone(0, read)
    }

    /// Does the same for a read of about `bytes` bytes.
    pub(crate) fn read_much_alone<T>(&self, bytes: u64, read: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = read();
        self.shared.note_duration(begin.elapsed(), bytes);
        result
    }

    /// Runs several reads that begin together, of so many bytes in all, and records their duration as that of one.
    pub(crate) fn read_together<T>(
        &self,
        (reads, bytes): (usize, u64),
        read: impl FnOnce() -> T,
    ) -> T {
        let begin = Instant::now();
        let result = read();
        let begun = READ_OVERHEAD * u32::try_from(reads).unwrap_or(u32::MAX);
        self.shared.note_duration(begin.elapsed().saturating_sub(begun), bytes);
        result
    }

    /// Starts a read of a block on another thread.
    pub(crate) fn start<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Pending<T> {
        self.start_much(0, read)
    }

    /// Does the same for a read of about `bytes` bytes.
    pub(crate) fn start_much<T: Send + 'static>(
        &self,
        bytes: u64,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Pending<T> {
        let shared = Arc::clone(&self.shared);
        let progress = Mutex::new(Progress::Waiting(Box::new(read)));
        let task = Arc::new(Task { shared, bytes, progress, done: Condvar::new() });
        self.offer(Arc::clone(&task) as Arc<dyn Run>);
        Pending(task)
    }

    /// Runs work for which no reader waits on another thread, if there are threads.
    pub(crate) fn run(&self, work: impl FnOnce() + Send + 'static) {
        if self.count_max > 0 {
            self.offer(Arc::new(Work(Mutex::new(Some(Box::new(work))))));
        }
    }

    fn offer(&self, task: Arc<dyn Run>) {
        let mut queue = self.shared.lock();
        if queue.is_stopping {
            return;
        }
        queue.waiting.push_back(task);
        if queue.waiting.len() > queue.idle && queue.threads.len() < self.count_max {
            let shared = Arc::clone(&self.shared);
            let name = format!("terrane-io-{}", queue.threads.len());
            #[allow(clippy::disallowed_methods, reason = "a place that starts threads")]
            let started = std::thread::Builder::new().name(name).spawn(move || shared.serve());
            // Without the thread, the reader that waits runs the read.
            queue.threads.extend(started);
        }
        drop(queue);
        self.shared.changed.notify_one();
    }

    /// Ends the threads once they have finished their reads. Readers continue without them.
    pub(crate) fn stop(&self) {
        let threads = self.shared.stop();
        let current = std::thread::current().id();
        for thread in threads.into_iter().filter(|thread| thread.thread().id() != current) {
            // A panic in a read does not end the thread.
            let _ = thread.join();
        }
    }
}

impl Drop for IoThreads {
    fn drop(&mut self) {
        // The threads end by themselves; one of them may be dropping this.
        drop(self.shared.stop());
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) -> Vec<JoinHandle<()>> {
        let mut queue = self.lock();
        queue.is_stopping = true;
        let waiting = std::mem::take(&mut queue.waiting);
        let threads = std::mem::take(&mut queue.threads);
        drop(queue);
        self.changed.notify_all();
        // Dropped without the lock, because a read may own the last reference to a table.
        drop(waiting);
        threads
    }

    fn note_duration(&self, took: Duration, bytes: u64) {
        let score = self.score.load(Ordering::Relaxed);
        let copied_at = |per_nano| SLOW_READ + Duration::from_nanos(bytes / per_nano);
        let next = if took >= copied_at(COPIED_PER_NANO) {
            (score + SLOW_SCORE).min(SCORE_MAX)
        } else if took < copied_at(COPIED_PER_NANO_MAX) {
            score.saturating_sub(1)
        } else {
            score
        };
        // An unchanged value is not stored, because all readers share the cache line.
        if next != score {
            self.score.store(next, Ordering::Relaxed);
        }
    }

    /// Runs a thread.
    fn serve(&self) {
        while let Some(task) = self.next() {
            task.run();
        }
    }

    fn next(&self) -> Option<Arc<dyn Run>> {
        let mut queue = self.lock();
        loop {
            if queue.is_stopping {
                return None;
            }
            if let Some(task) = queue.waiting.pop_front() {
                return Some(task);
            }
            queue.idle += 1;
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({} waiting, {} threads)", self.waiting.len(), self.threads.len())
    }
}

/// Work for which nobody waits.
struct Work(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Run for Work {
    fn run(&self) {
        let work = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(work) = work {
            // A panic must not end the thread.
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
    }
}

struct Task<T> {
    shared: Arc<Shared>,
    bytes: u64,
    progress: Mutex<Progress<T>>,
    done: Condvar,
}

enum Progress<T> {
    Waiting(Box<dyn FnOnce() -> T + Send>),
    Running,
    Done(T),
    /// The read panicked or was abandoned.
    Over,
}

impl<T> Task<T> {
    fn lock(&self) -> MutexGuard<'_, Progress<T>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send> Run for Task<T> {
    fn run(&self) {
        let read = {
            let mut progress = self.lock();
            if !matches!(*progress, Progress::Waiting(_)) {
                return;
            }
            match std::mem::replace(&mut *progress, Progress::Running) {
                Progress::Waiting(read) => read,
                _ => return,
            }
        };
        let begin = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(read));
        self.shared.note_duration(begin.elapsed(), self.bytes);
        *self.lock() = result.map_or(Progress::Over, Progress::Done);
        self.done.notify_all();
    }
}

/// A read that was started. Dropping this abandons the read unless it has begun.
pub(crate) struct Pending<T: Send>(Arc<Task<T>>);

impl<T: Send> Pending<T> {
    /// Waits for the read, or runs it if no thread has begun it. Returns none if it panicked.
    pub(crate) fn wait(self) -> Option<T> {
        self.0.run();
        let mut progress = self.0.lock();
        while matches!(*progress, Progress::Running) {
            progress = self.0.done.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
        match std::mem::replace(&mut *progress, Progress::Over) {
            Progress::Done(result) => Some(result),
            _ => None,
        }
    }
}

impl<T: Send> Drop for Pending<T> {
    fn drop(&mut self) {
        let mut progress = self.0.lock();
        if !matches!(*progress, Progress::Running) {
            let over = std::mem::replace(&mut *progress, Progress::Over);
            drop(progress);
            drop(over);
        }
    }
}

impl<T: Send> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pending")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn reads_run_at_the_same_time() {
        let threads = IoThreads::new(3);
        // Passes only if three threads run at once, including this one.
        let barrier = Arc::new(Barrier::new(3));
        let pending: Vec<_> = (0..3)
            .map(|number| {
                let barrier = Arc::clone(&barrier);
                threads.start(move || {
                    barrier.wait();
                    number
                })
            })
            .collect();
        let results: Vec<_> = pending.into_iter().map(|read| read.wait().unwrap()).collect();
        assert_eq!(results, [0, 1, 2]);
        threads.stop();
    }

    #[test]
    fn readers_need_no_threads() {
        for threads in [IoThreads::new(0), IoThreads::new(2)] {
            threads.stop();
            let pending: Vec<_> = (0..5).map(|number| threads.start(move || number)).collect();
            let results: Vec<_> = pending.into_iter().filter_map(Pending::wait).collect();
            assert_eq!(results, [0, 1, 2, 3, 4]);
        }
    }

    #[test]
    fn a_panic_in_a_read_harms_no_other() {
        let threads = IoThreads::new(1);
        assert_eq!(threads.start(|| -> u8 { panic!("on purpose") }).wait(), None);
        assert_eq!(threads.start(|| 1).wait(), Some(1));
        threads.stop();
    }

    #[test]
    fn dropped_reads_are_not_begun() {
        let threads = IoThreads::new(1);
        let (busy, begun) = (Arc::new(Barrier::new(2)), Arc::new(AtomicUsize::new(0)));
        let (meets, counts) = (Arc::clone(&busy), Arc::clone(&begun));
        let first = threads.start(move || meets.wait().is_leader());
        // `first` is awaited only after it has begun, so that the only thread runs it.
        let second = threads.start(move || counts.fetch_add(1, Ordering::Relaxed));
        drop(second);
        busy.wait();
        first.wait();
        threads.stop();
        assert_eq!(begun.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn quick_reads_need_no_threads_until_several_are_slow() {
        let threads = IoThreads::new(1);
        assert!(threads.helps());
        (0..SCORE_MAX).for_each(|_| threads.shared.note_duration(Duration::ZERO, 0));
        assert!(!threads.helps());
        threads.read_alone(|| std::thread::sleep(SLOW_READ));
        assert!(!threads.helps());
        (0..2).for_each(|_| threads.shared.note_duration(SLOW_READ, 0));
        assert!(threads.helps());
        assert!(!IoThreads::new(0).helps());
    }

    /// Large reads from the page cache used to count as slow, whatever their length.
    #[test]
    fn a_large_read_is_slow_if_it_takes_longer_than_a_copy() {
        let threads = IoThreads::new(1);
        let score_after = |micros| {
            threads.shared.score.store(40, Ordering::Relaxed);
            threads.shared.note_duration(Duration::from_micros(micros), 256 << 10);
            threads.shared.score.load(Ordering::Relaxed)
        };
        // From the page cache, from either, from a device.
        assert_eq!([40, 100, 160].map(score_after), [39, 40, 48]);
    }
}
