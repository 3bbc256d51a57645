//! When a job is expected to end, from its progress and from the time that earlier jobs took.

/// The latest job counts in the mean time per byte with this weight.
const LATEST_WEIGHT: f64 = 0.25;

/// The part of a job after which only its own progress counts.
const TRUSTED_AT: f64 = 0.25;

/// The part of a job that must be done before its progress alone says when it ends.
const KNOWN_AT: f64 = 0.0005;

/// The shortest time that a running job is expected to need, as a part of its whole time: a job may take longer
/// than expected, and then writers must not proceed at any rate.
const LEFT_MIN: f64 = 1.0 / 16.0;

/// Returns the mean time of jobs per byte, in nanoseconds, after a job of `bytes` took `took` nanoseconds. Without
/// an earlier job, `before` is 0.
pub fn mean_nanos_per_byte(before: f64, took: f64, bytes: u64) -> f64 {
    let latest = took / bytes.max(1) as f64;
    if before <= 0.0 { latest } else { before + LATEST_WEIGHT * (latest - before) }
}

/// Returns the expected time in nanoseconds until a job ends that began `took` nanoseconds ago and is `done` in
/// part, if earlier jobs would take `whole` nanoseconds for it; `None` if nothing says so. `whole` is 0 if no
/// job has been timed.
pub fn nanos_left(took: f64, done: f64, whole: f64) -> Option<f64> {
    let left = 1.0 - done.clamp(0.0, 1.0);
    let by_progress = if done > 0.0 { took * left / done } else { 0.0 };
    let expected = match whole > 0.0 {
        false if done < KNOWN_AT => return None,
        false => by_progress,
        true => {
            let trust = (done / TRUSTED_AT).clamp(0.0, 1.0);
            // Of a job that has not progressed, the time that has passed is not left.
            let by_earlier = if done > 0.0 { whole * left } else { whole - took };
            by_progress * trust + by_earlier * (1.0 - trust)
        }
    };
    Some(expected.max(whole * LEFT_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_expected_only_if_something_says_so() {
        assert_eq!(nanos_left(5.0, 0.0, 0.0), None);
        assert_eq!(nanos_left(5.0, 0.0001, 0.0), None);
        assert_eq!(nanos_left(10.0, 0.25, 0.0), Some(30.0));
        assert_eq!(nanos_left(3.0, 0.0, 10.0), Some(7.0));
    }

    #[test]
    fn progress_replaces_what_earlier_jobs_say() {
        // Half by progress, which says 35, and half by what is left of 10.
        assert_eq!(nanos_left(5.0, 0.125, 10.0), Some(21.875));
        assert_eq!(nanos_left(20.0, 0.5, 10.0), Some(20.0));
    }

    #[test]
    fn an_overdue_job_still_needs_time() {
        assert_eq!(nanos_left(100.0, 0.0, 16.0), Some(1.0));
        assert_eq!(nanos_left(100.0, 1.0, 16.0), Some(1.0));
    }

    #[test]
    fn later_jobs_change_the_mean() {
        let first = mean_nanos_per_byte(0.0, 100.0, 100);
        assert_eq!((first, mean_nanos_per_byte(first, 500.0, 100)), (1.0, 2.0));
    }
}
