//! When writers may proceed: the component constraint of a tree (performance-stability §4.1).
//!
//! A tree that takes writes faster than it merges them grows without bound, and its reads become
//! slower. Therefore a design's [`Constraint`](crate::design::Constraint) limits the number of runs
//! and of immutable memtables: [`Limit`](crate::design::Limit) says which runs are counted, and
//! [`Violation`] says what happens to writers at the limit, or before it ([`spread()`]). If values
//! are stored separately, the design also bounds the garbage in value files, for the same reason.

mod expected_end;
pub(crate) mod pressure;
mod spread;
#[cfg(test)]
mod tests;
mod value_space;

pub use expected_end::{mean_nanos_per_byte, nanos_left};
pub use pressure::{Pressure, StallCause};
use pressure::{count, run_pressure};
pub use spread::{Filling, Relief, Spread, spread};
use value_space::value_pressure;

use crate::design::{Design, Stall, Violation};
use crate::pick::{PickContext, due_by_shape};
use crate::shape::{SettledValues, TreeShape};

/// What a writer may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Write at full speed.
    Proceed,
    /// Write at a limited rate.
    Delay(Pressure),
    /// Wait until the pressure subsides.
    Stop(Pressure),
}

/// Decides whether writers of a tree proceed, slow down or stop, from its shape, its number of
/// immutable memtables and its design.
pub fn admit(shape: &TreeShape, immutable_memtables: usize, design: &Design) -> Admission {
    admit_with(shape, shape.settled_values(), immutable_memtables, design)
}

/// Like [`admit`], for a caller that already knows [`TreeShape::settled_values`], or that leaves
/// out files that cannot be collected.
pub fn admit_with(
    shape: &TreeShape,
    settled: SettledValues,
    immutable_memtables: usize,
    design: &Design,
) -> Admission {
    let limits = &design.constraint;
    let buffers = count(immutable_memtables);
    if buffers >= limits.stop_buffers {
        let (cause, stop_at) = (StallCause::ImmutableMemtables, limits.stop_buffers);
        return Admission::Stop(Pressure::new(cause, None, buffers, stop_at, stop_at));
    }
    let by_values = value_pressure(settled, design).map_or(Admission::Proceed, admit_under);
    let answer = stricter(admit_under(run_pressure(shape, design)), by_values);
    let answer = match (limits.violation, answer) {
        (Violation::None, _) | (Violation::Stop | Violation::Spread, Admission::Delay(_)) => {
            Admission::Proceed
        }
        (_, answer) => answer,
    };
    if limits.stall == Stall::Full && !matches!(answer, Admission::Stop(_)) {
        let due = due_by_shape(&PickContext::new(shape, design));
        if let Some(level) = due {
            let cause = StallCause::CompactionsDue;
            return Admission::Stop(Pressure::new(cause, Some(level), 0, 0, 0));
        }
    }
    answer
}

/// Returns the number of runs that count towards a design's limit, and the numbers at which it
/// delays and stops writers, even if neither is reached.
pub fn limited_runs(shape: &TreeShape, design: &Design) -> Pressure {
    run_pressure(shape, design)
}

/// Returns the number of runs that count towards a design's limit, divided by the number at which
/// writers stop.
pub fn share_of_limit(shape: &TreeShape, design: &Design) -> f64 {
    let pressure = run_pressure(shape, design);
    f64::from(pressure.measured) / f64::from(pressure.stop_at.max(1))
}

fn admit_under(pressure: Pressure) -> Admission {
    if pressure.measured >= pressure.stop_at {
        Admission::Stop(pressure)
    } else if pressure.measured >= pressure.threshold {
        Admission::Delay(pressure)
    } else {
        Admission::Proceed
    }
}

/// Returns the stricter of two decisions.
fn stricter(one: Admission, other: Admission) -> Admission {
    let strictness = |answer: &Admission| match answer {
        Admission::Proceed => (0, 0.0),
        Admission::Delay(pressure) => (1, pressure.strength()),
        Admission::Stop(_) => (2, 0.0),
    };
    if strictness(&other) > strictness(&one) { other } else { one }
}
