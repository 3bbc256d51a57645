//! When writers may go on: the component constraint of a tree (performance-stability §4.1).
//!
//! A tree that takes writes faster than it merges them grows without bound, and reads with it. So
//! the number of runs in level 0 and the number of full write buffers are limited; near the limit
//! writers are slowed down a little at a time rather than stopped all at once.

use std::fmt;
use std::str::FromStr;

use crate::design::Design;
use crate::error::ParseError;
use crate::pick::{PickInput, due_by_shape};
use crate::shape::TreeShape;

/// A number of runs that is never reached: level 0 may grow perpetually, as that of a system that
/// puts writes before compactions (compaction paper §3.1.2).
pub const NEVER: u32 = u32::MAX;

/// What else writers wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stall {
    /// Only runs and buffers, as production systems do.
    Runs,
    /// Every compaction that the shape of the tree asks for: the compaction paper puts compactions
    /// before writes, so that no measurement sees a tree out of shape (§4.1).
    Full,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Runs => "runs",
            Self::Full => "full",
        })
    }
}

impl FromStr for Stall {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "runs" => Ok(Self::Runs),
            "full" => Ok(Self::Full),
            _ => Err(ParseError::new("stall", text, "runs or full")),
        }
    }
}

/// The limits of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constraint {
    /// Runs in level 0 from which on writers are delayed, more with each further run.
    pub delay_runs: u32,
    /// Runs in level 0 at which writers wait.
    pub stop_runs: u32,
    /// Full write buffers, waiting to be flushed, at which writers wait.
    pub stop_buffers: u32,
    /// What else writers wait for.
    pub stall: Stall,
}

/// What holds writers up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StallCause {
    /// Merging falls behind: level 0 holds too many runs.
    Level0Runs,
    /// Flushing falls behind: too many full write buffers.
    ImmutableMemtables,
    /// The tree is out of shape, and its design has writers wait for that.
    CompactionsDue,
}

impl StallCause {
    /// All causes.
    pub const ALL: [StallCause; 3] =
        [Self::Level0Runs, Self::ImmutableMemtables, Self::CompactionsDue];
}

impl fmt::Display for StallCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Level0Runs => "level-0-runs",
            Self::ImmutableMemtables => "immutable-memtables",
            Self::CompactionsDue => "compactions-due",
        })
    }
}

/// A cause with the number that was found and the limit that it met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pressure {
    /// What is behind.
    pub cause: StallCause,
    /// Runs or buffers found; the level that is out of shape for
    /// [`StallCause::CompactionsDue`].
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
        if *cause == StallCause::CompactionsDue {
            return write!(f, "{cause}: level {measured} is out of shape");
        }
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

/// What writers of a tree may do, by its shape, its number of full write buffers and its design.
pub fn admit(shape: &TreeShape, full_buffers: usize, design: &Design) -> Admission {
    let answer = admit_by_count(shape, full_buffers, &design.constraint);
    let is_full = design.constraint.stall == Stall::Full;
    if !matches!(answer, Admission::Stop(_)) && is_full {
        let level = due_by_shape(&PickInput::new(shape, design));
        if let Some(level) = level.map(|level| u32::try_from(level).unwrap_or(u32::MAX)) {
            return Admission::Stop(Pressure {
                cause: StallCause::CompactionsDue,
                measured: level,
                threshold: level,
                stop_at: level,
            });
        }
    }
    answer
}

fn admit_by_count(shape: &TreeShape, full_buffers: usize, constraint: &Constraint) -> Admission {
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

    fn design() -> Design {
        "tiering L0=2 T=2; delay=3; stop=5; buffers=2".parse().unwrap()
    }

    fn with_runs(runs: u64) -> TreeShape {
        (1..=runs)
            .map(|run| format!("L0 r{run}: {run}=a..=z:1\n"))
            .collect::<String>()
            .parse()
            .unwrap()
    }

    #[test]
    fn writers_slow_down_before_they_stop() {
        assert_eq!(admit(&with_runs(2), 1, &design()), Admission::Proceed);
        let strength = |runs| match admit(&with_runs(runs), 0, &design()) {
            Admission::Delay(pressure) => pressure.strength(),
            other => panic!("{other:?}"),
        };
        assert!(0.0 < strength(3) && strength(3) < strength(4) && strength(4) < 1.0);
        assert!(matches!(admit(&with_runs(5), 0, &design()), Admission::Stop(_)));
    }

    #[test]
    fn writers_wait_for_every_compaction_where_they_are_told_to() {
        let mut design: Design = "tiering T=3; stall=full".parse().unwrap();
        assert_eq!(admit(&with_runs(2), 0, &design), Admission::Proceed);
        let Admission::Stop(pressure) = admit(&with_runs(3), 0, &design) else { panic!() };
        assert_eq!(pressure.to_string(), "compactions-due: level 0 is out of shape");
        design.constraint.stall = Stall::Runs;
        assert_eq!(admit(&with_runs(3), 0, &design), Admission::Proceed);
    }

    #[test]
    fn full_buffers_stop_writers_whatever_the_shape() {
        let answer = admit(&TreeShape::default(), 2, &design());
        let Admission::Stop(pressure) = answer else { panic!("{answer:?}") };
        assert_eq!(pressure.to_string(), "immutable-memtables: 2 (delay at 2, stop at 2)");
    }
}
