//! When the jobs that make room for the writers of a tree will end, and the schedule by which writers
//! use the room that is left until then.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use terrane_policy::admission::{mean_nanos_per_byte, nanos_left};

use super::pace::Pace;

/// The number of levels whose merges are timed apart; deeper levels count as the last of them.
const LEVELS: usize = 8;

/// The shortest time that a running job is expected to need.
const LEFT_NANOS_MIN: u64 = 1_000_000;

/// How a job ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum JobEnd {
    /// It failed, so that the next one may fail as well.
    Failed,
    /// It succeeded, but was so small that its syncs took most of the time.
    Small,
    /// It succeeded after this time.
    Large(Duration),
}

/// When a tree has more room for writers. Its numbers publish no other memory, so all accesses are
/// relaxed.
#[derive(Debug)]
pub(crate) struct Relief {
    epoch: Instant,
    flush: JobClock,
    /// By the level that a merge takes tables from. Most trees of a large database never merge.
    merges: OnceLock<Box<[JobClock; LEVELS]>>,
    schedule: Pace,
}

impl Relief {
    pub(super) fn new() -> Self {
        let (flush, merges, schedule) = (JobClock::default(), OnceLock::new(), Pace::new());
        Self { epoch: Instant::now(), flush, merges, schedule }
    }

    fn now(&self) -> u64 {
        nanos(self.epoch.elapsed())
    }

    fn merges(&self, level: usize) -> &JobClock {
        &self.merges.get_or_init(Box::default)[level.min(LEVELS - 1)]
    }

    /// Notes that a flush of `bytes` begins.
    pub(crate) fn begin_flush(&self, bytes: u64) {
        self.flush.begin(self.now(), bytes);
    }

    /// Notes that a part `done` of a flush of `bytes`, which began `took` ago, is done.
    pub(crate) fn note_flushed(&self, took: Duration, bytes: u64, done: f64) {
        self.flush.progress(self.now(), (took, bytes), done);
    }

    /// Notes that a flush of `bytes` has ended.
    pub(crate) fn end_flush(&self, end: JobEnd, bytes: u64) {
        self.flush.end(end, bytes);
        self.schedule.clear();
    }

    /// Notes that a merge of `bytes` begins.
    pub(crate) fn begin_merge(&self, level: usize, bytes: u64) {
        // Tables that only move take no time.
        if bytes > 0 {
            self.merges(level).begin(self.now(), bytes);
        }
    }

    /// Notes that a part `done` of a merge of `bytes`, which began `took` ago, is done.
    pub(crate) fn note_merged(&self, level: usize, took: Duration, bytes: u64, done: f64) {
        self.merges(level).progress(self.now(), (took, bytes), done);
    }

    /// Notes that a merge of `bytes` has ended.
    pub(crate) fn end_merge(&self, level: usize, end: JobEnd, bytes: u64) {
        if bytes > 0 {
            self.merges(level).end(end, bytes);
        }
        self.schedule.clear();
    }

    /// Returns the expected time, in nanoseconds, until the running flush ends, or one of `bytes` if none
    /// runs; `None` if no flush has been timed, or the last one failed.
    pub(crate) fn flush_nanos_left(&self, bytes: u64) -> Option<u64> {
        self.flush.nanos_left(self.now(), bytes)
    }

    /// Returns the expected time, in nanoseconds, until a merge out of `level` ends, or, if none runs, until one
    /// of `due_bytes` does; `None` if nothing says so. Without a level, it is the running merge of any level that
    /// ends first.
    pub(crate) fn merge_nanos_left(
        &self,
        level: Option<usize>,
        due_bytes: Option<u64>,
    ) -> Option<u64> {
        let (now, clocks) = (self.now(), self.merges.get()?);
        let of_level = level.map(|level| std::slice::from_ref(&clocks[level.min(LEVELS - 1)]));
        let asked = of_level.unwrap_or(&clocks[..]).iter();
        let running = asked.filter(|clock| clock.is_running());
        let first = running.filter_map(|clock| clock.nanos_left(now, 0)).min();
        first.or_else(|| clocks[level.unwrap_or(0).min(LEVELS - 1)].nanos_left(now, due_bytes?))
    }

    /// Adds writes that together take `nanos` to the schedule. Returns how far writers are ahead of it.
    pub(crate) fn schedule(&self, nanos: u64) -> Duration {
        self.schedule.add(nanos)
    }

    /// Returns how far writers are ahead of the schedule.
    pub(crate) fn ahead(&self) -> Duration {
        self.schedule.ahead()
    }
}

/// Expects when a job of one kind will end.
#[derive(Debug, Default)]
struct JobClock {
    /// When the running job is expected to end, in nanoseconds since the tree was opened; 0 if none runs,
    /// or nothing says when it ends.
    ends_at: AtomicU64,
    /// The mean time of a job per byte, in picoseconds; 0 if no job has been timed.
    picos_per_byte: AtomicU64,
    /// The last job failed. Nothing says when the next one succeeds, so writers are not delayed for it: they
    /// get the error sooner.
    has_failed: AtomicBool,
}

impl JobClock {
    fn begin(&self, now: u64, bytes: u64) {
        self.progress(now, (Duration::ZERO, bytes), 0.0);
    }

    fn progress(&self, now: u64, (took, bytes): (Duration, u64), done: f64) {
        let left = nanos_left(nanos(took) as f64, done, self.whole(bytes) as f64);
        let ends_at = left.map_or(0, |left| now.saturating_add(left as u64));
        self.ends_at.store(ends_at, Ordering::Relaxed);
    }

    fn end(&self, end: JobEnd, bytes: u64) {
        self.ends_at.store(0, Ordering::Relaxed);
        self.has_failed.store(matches!(end, JobEnd::Failed), Ordering::Relaxed);
        let JobEnd::Large(took) = end else { return };
        if bytes == 0 {
            return;
        }
        let before = self.picos_per_byte.load(Ordering::Relaxed) as f64 / 1e3;
        let mean = mean_nanos_per_byte(before, nanos(took) as f64, bytes);
        self.picos_per_byte.store((mean * 1e3).max(1.0) as u64, Ordering::Relaxed);
    }

    fn is_running(&self) -> bool {
        self.ends_at.load(Ordering::Relaxed) > 0
    }

    fn nanos_left(&self, now: u64, bytes: u64) -> Option<u64> {
        match self.ends_at.load(Ordering::Relaxed) {
            0 if self.has_failed.load(Ordering::Relaxed) => None,
            0 => Some(self.whole(bytes)).filter(|whole| *whole > 0),
            ends_at => {
                // An overdue job needs at least as long as one that is done but for its end.
                let least = nanos_left(0.0, 1.0, self.whole(bytes) as f64);
                let least = least.map_or(0, |least| least as u64).max(LEFT_NANOS_MIN);
                Some(ends_at.saturating_sub(now).max(least))
            }
        }
    }

    /// Returns the time that a job of `bytes` takes, in nanoseconds; 0 if no job has been timed.
    fn whole(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(self.picos_per_byte.load(Ordering::Relaxed)) / 1000
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn seconds(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    #[test]
    fn an_end_is_expected_only_once_a_job_was_timed() {
        let clock = JobClock::default();
        clock.begin(0, 100);
        assert_eq!(clock.nanos_left(0, 100), None);
        clock.end(JobEnd::Large(seconds(1)), 100);
        assert_eq!(clock.nanos_left(0, 300), Some(3 * SECOND));
        clock.begin(5 * SECOND, 100);
        assert_eq!(clock.nanos_left(5 * SECOND + SECOND / 4, 100), Some(SECOND * 3 / 4));
    }

    #[test]
    fn an_overdue_job_still_needs_time() {
        let clock = JobClock::default();
        clock.end(JobEnd::Large(seconds(16)), 100);
        clock.begin(0, 100);
        assert_eq!(clock.nanos_left(20 * SECOND, 100), Some(SECOND));
    }

    #[test]
    fn later_jobs_change_the_mean_and_failed_jobs_do_not() {
        let clock = JobClock::default();
        clock.end(JobEnd::Large(seconds(1)), 100);
        clock.end(JobEnd::Large(seconds(5)), 100);
        clock.begin(0, 100);
        clock.end(JobEnd::Failed, 100);
        // Nothing is expected until a job succeeds, except of the running one.
        assert_eq!(clock.nanos_left(0, 100), None);
        clock.begin(0, 100);
        assert_eq!(clock.nanos_left(0, 100), Some(2 * SECOND));
        clock.end(JobEnd::Small, 1);
        assert_eq!(clock.nanos_left(0, 100), Some(2 * SECOND));
    }

    #[test]
    fn without_a_level_the_first_merge_to_end_counts() {
        let relief = Relief::new();
        assert_eq!(relief.merge_nanos_left(None, Some(100)), None);
        relief.end_merge(0, JobEnd::Large(seconds(7)), 100);
        assert_eq!(relief.merge_nanos_left(None, Some(100)), Some(7 * SECOND));
        assert_eq!(relief.merge_nanos_left(None, None), None);
        for (level, took) in [(3, 9), (2, 5)] {
            relief.end_merge(level, JobEnd::Large(seconds(took)), 100);
            relief.begin_merge(level, 100);
        }
        let left = relief.merge_nanos_left(None, None).unwrap();
        assert!((4 * SECOND..=5 * SECOND).contains(&left), "{left}");
        assert_eq!(relief.merge_nanos_left(Some(0), Some(100)), Some(7 * SECOND));
    }

    #[test]
    fn tables_that_only_move_do_not_change_what_is_expected_of_a_merge() {
        let relief = Relief::new();
        relief.end_merge(0, JobEnd::Large(seconds(9)), 100);
        relief.begin_merge(0, 100);
        relief.begin_merge(0, 0);
        relief.end_merge(0, JobEnd::Large(seconds(1)), 0);
        let left = relief.merge_nanos_left(Some(0), None).unwrap();
        assert!((8 * SECOND..=9 * SECOND).contains(&left), "{left}");
    }

    #[test]
    fn the_schedule_ends_with_every_job() {
        let relief = Relief::new();
        let flushed = |end| relief.end_flush(end, 100);
        let merged = || relief.end_merge(0, JobEnd::Small, 100);
        let ends: [&dyn Fn(); 3] =
            [&|| flushed(JobEnd::Failed), &|| flushed(JobEnd::Large(seconds(1))), &merged];
        for end in ends {
            assert!(relief.schedule(100 * SECOND) > seconds(90));
            assert!(relief.ahead() > seconds(90));
            end();
            assert_eq!(relief.ahead(), Duration::ZERO);
        }
    }
}
