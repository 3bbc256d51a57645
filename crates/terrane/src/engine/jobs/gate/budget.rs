//! A bucket that fills at the rate of the budget, and may be overdrawn by one piece.

use std::time::{Duration, Instant};

use crate::io_budget::IoBudget;

/// What may be saved up while nothing is written, in seconds of the budget.
const SAVED_SECONDS: f64 = 0.05;

/// How long the rate of the users is measured.
const MEASURE_FOR: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct Bucket {
    budget: IoBudget,
    /// Bytes that may be written; negative after more was.
    bytes: f64,
    filled_at: Instant,
    /// What users had done by themselves when that was last looked at, and when.
    users: (u64, Instant),
    users_per_second: f64,
}

impl Bucket {
    pub(crate) fn new(budget: IoBudget, user_bytes: u64, now: Instant) -> Self {
        Self { budget, bytes: 0.0, filled_at: now, users: (user_bytes, now), users_per_second: 0.0 }
    }

    pub(crate) fn budget(&self) -> IoBudget {
        self.budget
    }

    /// Bytes a second, at the moment; `None` without a limit.
    pub(crate) fn rate(&self) -> Option<f64> {
        self.budget.bytes_per_second(self.users_per_second)
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.budget != IoBudget::Unlimited
    }

    /// Another budget, from now on: nothing is owed to the old one.
    pub(crate) fn set_budget(&mut self, budget: IoBudget, now: Instant) {
        (self.budget, self.bytes, self.filled_at) = (budget, 0.0, now);
    }

    /// So much was written.
    pub(crate) fn take(&mut self, bytes: u64) {
        self.bytes -= bytes as f64;
    }

    /// How long to wait until more may be written; `user_bytes` is what users have done by
    /// themselves so far.
    pub(crate) fn wait(&mut self, user_bytes: u64, now: Instant) -> Option<Duration> {
        self.measure_users(user_bytes, now);
        let Some(rate) = self.rate() else {
            (self.bytes, self.filled_at) = (0.0, now);
            return None;
        };
        let seconds = now.saturating_duration_since(self.filled_at).as_secs_f64();
        self.bytes = (self.bytes + rate * seconds).min(rate * SAVED_SECONDS);
        self.filled_at = now;
        (self.bytes < 0.0).then(|| Duration::from_secs_f64(-self.bytes / rate))
    }

    fn measure_users(&mut self, user_bytes: u64, now: Instant) {
        if !matches!(self.budget, IoBudget::Leftover(_)) {
            return;
        }
        let (before, since) = self.users;
        let time = now.saturating_duration_since(since);
        if time >= MEASURE_FOR {
            self.users_per_second = user_bytes.saturating_sub(before) as f64 / time.as_secs_f64();
            self.users = (user_bytes, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn what_is_written_is_waited_for() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut bucket = Bucket::new(IoBudget::Total(10 * MIB), 0, start);
        assert_eq!(bucket.wait(0, start), None);
        bucket.take(MIB);
        assert_eq!(bucket.wait(0, start), Some(Duration::from_millis(100)));
        assert_eq!(bucket.wait(0, at(60)), Some(Duration::from_millis(40)));
        assert_eq!(bucket.wait(0, at(101)), None);
        // An hour of rest is not saved up.
        assert_eq!(bucket.wait(0, at(3_600_000)), None);
        bucket.take(MIB);
        assert_eq!(bucket.wait(0, at(3_600_000)), Some(Duration::from_millis(50)));
        // Another budget owes nothing to the one before, and none has no one wait.
        bucket.set_budget(IoBudget::Total(MIB), at(3_600_000));
        assert_eq!(bucket.wait(0, at(3_600_000)), None);
        bucket.take(500 * MIB);
        bucket.set_budget(IoBudget::Unlimited, at(3_600_000));
        assert_eq!(bucket.wait(0, at(3_600_000)), None);
    }

    #[test]
    fn users_go_first_where_only_what_they_leave_is_given() {
        let start = Instant::now();
        let mut bucket = Bucket::new(IoBudget::Leftover(10 * MIB), 0, start);
        let later = start + Duration::from_millis(100);
        // Five MiB a second are the users' own.
        assert_eq!(bucket.wait(MIB / 2, later), None);
        bucket.take(MIB);
        let wait = bucket.wait(MIB / 2, later).unwrap().as_secs_f64();
        // What was saved up before is taken off.
        assert!((0.14..=0.2).contains(&wait), "{wait}");
    }
}
