//! When writers may go on: the component constraint of a tree (performance-stability §4.1).
//!
//! A tree that takes writes faster than it merges them grows without bound, and reads with it. So
//! the number of runs in level 0 and the number of full write buffers are limited; near the limit
//! writers are slowed down a little at a time rather than stopped all at once.

use std::fmt;

use crate::shape::TreeShape;

/// The limits of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constraint {
    /// Runs in level 0 from which on writers are delayed, more with each further run.
    pub delay_runs: u32,
    /// Runs in level 0 at which writers wait.
    pub stop_runs: u32,
    /// Full write buffers, waiting to be flushed, at which writers wait.
    pub stop_buffers: u32,
}

/// What holds writers up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StallCause {
    /// Merging falls behind: level 0 holds too many runs.
    Level0Runs,
    /// Flushing falls behind: too many full write buffers.
    ImmutableMemtables,
}

impl StallCause {
    /// All causes.
    pub const ALL: [StallCause; 2] = [Self::Level0Runs, Self::ImmutableMemtables];
}

impl fmt::Display for StallCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Level0Runs => "level-0-runs",
            Self::ImmutableMemtables => "immutable-memtables",
        })
    }
}

/// A cause with the number that was found and the limit that it met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pressure {
    /// What is behind.
    pub cause: StallCause,
    /// Runs or buffers found.
    pub measured: u32,
    /// Runs or buffers at which this answer starts.
    pub threshold: u32,
    /// Runs or buffers at which writers stop.
    pub stop_at: u32,
}

impl Pressure {
    /// How far the tree is from its first delay (0) to its stop (1).
    pub fn strength(&self) -> f64 {
        let span = self.stop_at.saturating_sub(self.threshold) + 1;
        let steps = self.measured.saturating_sub(self.threshold) + 1;
        (f64::from(steps) / f64::from(span)).clamp(0.0, 1.0)
    }
}

impl fmt::Display for Pressure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cause, measured, threshold, stop_at } = self;
        write!(f, "{cause}: {measured} (delay at {threshold}, stop at {stop_at})")
    }
}

/// What a writer may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Go on.
    Proceed,
    /// Go on slowly.
    Delay(Pressure),
    /// Wait until the pressure is gone.
    Stop(Pressure),
}

/// What writers of a tree may do, by its shape and its number of full write buffers.
pub fn admit(shape: &TreeShape, full_buffers: usize, constraint: &Constraint) -> Admission {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let buffers = count(full_buffers);
    if buffers >= constraint.stop_buffers {
        return Admission::Stop(Pressure {
            cause: StallCause::ImmutableMemtables,
            measured: buffers,
            threshold: constraint.stop_buffers,
            stop_at: constraint.stop_buffers,
        });
    }
    let runs = count(shape.level(0).runs.len());
    let pressure = Pressure {
        cause: StallCause::Level0Runs,
        measured: runs,
        threshold: constraint.delay_runs,
        stop_at: constraint.stop_runs,
    };
    if runs >= constraint.stop_runs {
        Admission::Stop(pressure)
    } else if runs >= constraint.delay_runs {
        Admission::Delay(pressure)
    } else {
        Admission::Proceed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSTRAINT: Constraint = Constraint { delay_runs: 3, stop_runs: 5, stop_buffers: 2 };

    fn with_runs(runs: u64) -> TreeShape {
        (1..=runs)
            .map(|run| format!("L0 r{run}: {run}=a..=z:1\n"))
            .collect::<String>()
            .parse()
            .unwrap()
    }

    #[test]
    fn writers_slow_down_before_they_stop() {
        assert_eq!(admit(&with_runs(2), 1, &CONSTRAINT), Admission::Proceed);
        let strength = |runs| match admit(&with_runs(runs), 0, &CONSTRAINT) {
            Admission::Delay(pressure) => pressure.strength(),
            other => panic!("{other:?}"),
        };
        assert!(0.0 < strength(3) && strength(3) < strength(4) && strength(4) < 1.0);
        assert!(matches!(admit(&with_runs(5), 0, &CONSTRAINT), Admission::Stop(_)));
    }

    #[test]
    fn full_buffers_stop_writers_whatever_the_shape() {
        let answer = admit(&TreeShape::default(), 2, &CONSTRAINT);
        let Admission::Stop(pressure) = answer else { panic!("{answer:?}") };
        assert_eq!(pressure.to_string(), "immutable-memtables: 2 (delay at 2, stop at 2)");
    }
}
