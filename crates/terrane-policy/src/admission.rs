//! When writers may go on: the component constraint of a tree (performance-stability §4.1).
//!
//! A tree that takes writes faster than it merges them grows without bound, and its reads slow down
//! with it. So a design's [`Constraint`](crate::design::Constraint) limits the number of runs and of
//! immutable memtables: [`Limit`](crate::design::Limit) says which runs count, [`Violation`] what
//! happens to writers when there are too many.

pub(crate) mod pressure;
#[cfg(test)]
mod tests;

pub use pressure::{Pressure, StallCause};
use pressure::{count, run_pressure};

use crate::design::{Design, Stall, Violation};
use crate::pick::{PickInput, due_by_shape};
use crate::shape::TreeShape;

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
    let limits = &design.constraint;
    let buffers = count(full_buffers);
    if buffers >= limits.stop_buffers {
        return Admission::Stop(Pressure {
            cause: StallCause::ImmutableMemtables,
            level: None,
            measured: buffers,
            threshold: limits.stop_buffers,
            stop_at: limits.stop_buffers,
            newest_percent: None,
        });
    }
    let answer = match (limits.violation, admit_by_runs(shape, design)) {
        (Violation::None, _) | (Violation::Stop, Admission::Delay(_)) => Admission::Proceed,
        (_, answer) => answer,
    };
    if limits.stall == Stall::Full && !matches!(answer, Admission::Stop(_)) {
        let due = due_by_shape(&PickInput::new(shape, design));
        if let Some(level) = due {
            return Admission::Stop(Pressure {
                cause: StallCause::CompactionsDue,
                level: Some(level),
                measured: 0,
                threshold: 0,
                stop_at: 0,
                newest_percent: None,
            });
        }
    }
    answer
}

fn admit_by_runs(shape: &TreeShape, design: &Design) -> Admission {
    let pressure = run_pressure(shape, design);
    if pressure.measured >= pressure.stop_at {
        Admission::Stop(pressure)
    } else if pressure.measured >= pressure.threshold {
        Admission::Delay(pressure)
    } else {
        Admission::Proceed
    }
}
