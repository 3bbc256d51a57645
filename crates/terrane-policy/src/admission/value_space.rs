//! The pressure of value files: how much more space they take than the design allows.

use super::pressure::{Pressure, StallCause};
use crate::design::Design;
use crate::shape::SettledValues;

/// Garbage worth this many value files is ignored, so that small trees do not stall.
const FILES_OF_SLACK: u64 = 4;

/// Returns the pressure of garbage in value files, in percent of the live values; `None` if the
/// design sets no bound. Writers slow down at the space bound, and stop when garbage reaches 1.5
/// times what the bound allows.
pub(super) fn value_pressure(mut settled: SettledValues, design: &Design) -> Option<Pressure> {
    let separation = design.values.separation()?;
    let slack = separation.file_bytes.saturating_mul(FILES_OF_SLACK);
    settled.bytes = settled.bytes.saturating_sub(slack);
    let measured = u32::try_from(settled.percent()).unwrap_or(u32::MAX);
    let threshold = separation.space_percent;
    let stop_at = threshold + (threshold.saturating_sub(100) / 2).max(5);
    Some(Pressure::new(StallCause::ValueSpace, None, measured, threshold, stop_at))
}
