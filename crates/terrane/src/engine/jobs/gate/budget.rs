//! A token bucket that fills at the rate of the budget, and may be overdrawn by one chunk.
//!
//! Times are durations since an origin that the caller chooses.

use std::time::Duration;

use crate::base::io_budget::IoBudget;

/// The capacity of the bucket, in seconds of the budget.
const SAVED_SECONDS: f64 = 0.05;

/// The interval over which the users' rate is measured.
const MEASURE_FOR: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Bucket {
    budget: IoBudget,
    /// The bytes that may be written; negative while the bucket is overdrawn.
    bytes: f64,
    filled_at: Duration,
    /// The bytes that users had read and written at the last measurement, and its time.
    users: (u64, Duration),
    users_per_second: f64,
}

impl Bucket {
    pub(super) fn new(budget: IoBudget, user_bytes: u64, now: Duration) -> Self {
        Self { budget, bytes: 0.0, filled_at: now, users: (user_bytes, now), users_per_second: 0.0 }
    }

    pub(super) fn budget(&self) -> IoBudget {
        self.budget
    }

    /// The current rate in bytes per second; `None` without a limit.
    pub(super) fn rate(&self) -> Option<f64> {
        self.budget.bytes_per_second(self.users_per_second)
    }

    pub(super) fn is_limited(&self) -> bool {
        self.budget != IoBudget::Unlimited
    }

    /// Changes the budget at once. Debts to the old budget are forgiven.
    pub(super) fn set_budget(&mut self, budget: IoBudget, now: Duration) {
        (self.budget, self.bytes, self.filled_at) = (budget, 0.0, now);
    }

    /// Takes the written bytes from the bucket.
    pub(super) fn take(&mut self, bytes: u64) {
        self.bytes -= bytes as f64;
    }

    /// Returns the time until more may be written. `user_bytes` are the bytes that users have read
    /// and written so far.
    pub(super) fn wait(&mut self, user_bytes: u64, now: Duration) -> Option<Duration> {
        self.measure_users(user_bytes, now);
        let Some(rate) = self.rate() else {
            (self.bytes, self.filled_at) = (0.0, now);
            return None;
        };
        let seconds = now.saturating_sub(self.filled_at).as_secs_f64();
        self.bytes = (self.bytes + rate * seconds).min(rate * SAVED_SECONDS);
        self.filled_at = now;
        (self.bytes < 0.0).then(|| Duration::from_secs_f64(-self.bytes / rate))
    }

    fn measure_users(&mut self, user_bytes: u64, now: Duration) {
        if !matches!(self.budget, IoBudget::Leftover(_)) {
            return;
        }
        let (before, since) = self.users;
        let time = now.saturating_sub(since);
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
    fn writes_wait_until_the_bucket_is_refilled() {
        let start = Duration::from_secs(7);
        let at = |millis| start + Duration::from_millis(millis);
        let mut bucket = Bucket::new(IoBudget::Total(10 * MIB), 0, start);
        assert_eq!(bucket.wait(0, start), None);
        bucket.take(MIB);
        assert_eq!(bucket.wait(0, start), Some(Duration::from_millis(100)));
        assert_eq!(bucket.wait(0, at(60)), Some(Duration::from_millis(40)));
        assert_eq!(bucket.wait(0, at(101)), None);
        // The bucket does not accumulate the budget of an idle hour.
        assert_eq!(bucket.wait(0, at(3_600_000)), None);
        bucket.take(MIB);
        assert_eq!(bucket.wait(0, at(3_600_000)), Some(Duration::from_millis(50)));
        // A new budget inherits no debt, and no budget means no wait.
        bucket.set_budget(IoBudget::Total(MIB), at(3_600_000));
        assert_eq!(bucket.wait(0, at(3_600_000)), None);
        bucket.take(500 * MIB);
        bucket.set_budget(IoBudget::Unlimited, at(3_600_000));
        assert_eq!(bucket.wait(0, at(3_600_000)), None);
    }

    #[test]
    fn a_leftover_budget_is_reduced_by_the_rate_of_users() {
        let start = Duration::from_secs(7);
        let mut bucket = Bucket::new(IoBudget::Leftover(10 * MIB), 0, start);
        let later = start + Duration::from_millis(100);
        // Users cause five MiB per second.
        assert_eq!(bucket.wait(MIB / 2, later), None);
        bucket.take(MIB);
        let wait = bucket.wait(MIB / 2, later).unwrap().as_secs_f64();
        // The bucket is full, which shortens the wait.
        assert!((0.14..=0.2).contains(&wait), "{wait}");
    }
}
