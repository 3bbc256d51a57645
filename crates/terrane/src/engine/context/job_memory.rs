//! The memory of the buffers of jobs, and how many jobs run concurrently within it.
//!
//! Each job is granted its memory before it allocates. A running job keeps its grant until it ends, and
//! every job that may still begin has a minimum that no other job gets. So a job that began never waits
//! for memory, even if it is paused for another one.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::memory_plan::JobShare;
use crate::base::memory_ledger::{Charge, MemoryLedger};

/// How often, at least, a caller that waits checks whether it should stop.
const WAIT_MAX: Duration = Duration::from_millis(50);

/// The memory of all jobs of a kind.
#[derive(Debug)]
pub(crate) struct JobMemory {
    share: JobShare,
    ledger: Arc<MemoryLedger>,
    state: Mutex<JobMemoryState>,
    /// A job has ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct JobMemoryState {
    jobs: usize,
    /// Callers that wait to begin a job.
    waiting: usize,
    granted_bytes: usize,
}

/// The memory of one job, until this is dropped.
#[derive(Debug)]
pub(crate) struct JobGrant {
    memory: Arc<JobMemory>,
    bytes: usize,
    charge: Option<Charge>,
}

impl JobMemory {
    pub(crate) fn new(share: JobShare, ledger: &Arc<MemoryLedger>) -> Arc<Self> {
        let (state, ended) = (Mutex::default(), Condvar::new());
        Arc::new(Self { share, ledger: Arc::clone(ledger), state, ended })
    }

    fn lock(&self) -> MutexGuard<'_, JobMemoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The memory that every job gets.
    fn bytes_min(&self) -> usize {
        self.share.bytes / 2 / self.share.jobs_max
    }

    /// Returns the number of jobs that may run concurrently.
    pub(crate) fn jobs_max(&self) -> usize {
        self.share.jobs_max
    }

    /// Begins a job with the minimum of memory, unless too many are running. Callers that wait come first.
    pub(crate) fn try_begin(self: &Arc<Self>) -> Option<JobGrant> {
        let state = self.lock();
        (state.jobs + state.waiting < self.share.jobs_max).then(|| self.begin_with(state))
    }

    /// Begins a job as soon as few enough are running. Returns `None` once `should_stop` holds.
    pub(crate) fn begin(self: &Arc<Self>, should_stop: impl Fn() -> bool) -> Option<JobGrant> {
        let mut state = self.lock();
        state.waiting += 1;
        while state.jobs >= self.share.jobs_max && !should_stop() {
            let waited = self.ended.wait_timeout(state, WAIT_MAX);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.waiting -= 1;
        (state.jobs < self.share.jobs_max).then(|| self.begin_with(state))
    }

    /// Begins a job however many are running, because its caller has decided that it runs.
    pub(crate) fn begin_at_once(self: &Arc<Self>) -> JobGrant {
        self.begin_with(self.lock())
    }

    fn begin_with(self: &Arc<Self>, mut state: MutexGuard<'_, JobMemoryState>) -> JobGrant {
        let bytes = self.bytes_min();
        state.jobs += 1;
        state.granted_bytes += bytes;
        JobGrant { memory: Arc::clone(self), bytes, charge: None }
    }
}

impl JobGrant {
    /// Asks for `wanted` bytes in place of the bytes granted before, whose buffers were freed. Returns
    /// the bytes that are granted now: at least the minimum, and more if the jobs that may still begin do
    /// not need it.
    pub(crate) fn request(&mut self, wanted: usize) -> usize {
        self.charge = None;
        let memory = &*self.memory;
        let (least, mut state) = (memory.bytes_min(), memory.lock());
        let of_others = state.granted_bytes - self.bytes;
        let for_later = memory.share.jobs_max.saturating_sub(state.jobs) * least;
        let most = memory.share.bytes.saturating_sub(of_others + for_later);
        let granted = wanted.min(most).max(least);
        state.granted_bytes = of_others + granted;
        self.bytes = granted;
        granted
    }

    /// Charges the bytes that the job is about to allocate. They exceed the grant if it does not suffice
    /// for the smallest buffers; the block cache then shrinks by more.
    pub(crate) fn charge(&mut self, bytes: usize) {
        self.charge = Some(Charge::new(&self.memory.ledger, |ledger| &ledger.jobs, bytes));
    }
}

impl Drop for JobGrant {
    fn drop(&mut self) {
        let mut state = self.memory.lock();
        state.jobs -= 1;
        state.granted_bytes -= self.bytes;
        drop(state);
        self.memory.ended.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    fn memory() -> Arc<JobMemory> {
        JobMemory::new(JobShare { bytes: 1200, jobs_max: 3 }, &Arc::default())
    }

    #[test]
    fn a_job_gets_what_later_jobs_do_not_need() {
        let memory = memory();
        let mut one = memory.try_begin().unwrap();
        // Two more may begin, with 200 bytes each.
        assert_eq!(one.request(5000), 800);
        let mut two = memory.try_begin().unwrap();
        assert_eq!(two.request(5000), 200);
        assert_eq!(one.request(500), 500);
        assert_eq!(two.request(5000), 500);
        assert_eq!(one.request(0), 200);
        let three = memory.try_begin().unwrap();
        assert!(memory.try_begin().is_none());
        drop(three);
        assert!(memory.try_begin().is_some());
    }

    #[test]
    fn a_job_that_must_run_gets_the_minimum() {
        let memory = memory();
        let mut jobs: Vec<JobGrant> = (0..4).map(|_| memory.begin_at_once()).collect();
        assert_eq!(jobs[3].request(5000), 600, "only the minimum of the others is taken");
        assert_eq!(jobs[0].request(5000), 200);
    }

    #[test]
    fn charged_bytes_are_in_the_ledger_until_the_job_ends() {
        let memory = memory();
        let charged = || memory.ledger.jobs.load(Ordering::Relaxed);
        let mut one = memory.try_begin().unwrap();
        one.charge(300);
        assert_eq!(charged(), 300);
        one.request(100);
        assert_eq!(charged(), 0, "the buffers of the first request were freed");
        one.charge(100);
        drop(one);
        assert_eq!(charged(), 0);
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test waits in a thread")]
    fn a_job_waits_for_another_to_end_or_stops() {
        let memory = memory();
        let mut running: Vec<JobGrant> = (0..3).map(|_| memory.begin(|| false).unwrap()).collect();
        assert!(memory.begin(|| true).is_none());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| memory.begin(|| false).unwrap());
            while memory.lock().waiting == 0 {
                std::thread::yield_now();
            }
            running.pop();
            // It comes before jobs that do not wait.
            assert!(memory.try_begin().is_none());
            assert_eq!(waiting.join().unwrap().request(0), 200);
        });
    }
}
