//! The write rates that full merges sustain, by arithmetic (performance-stability §5.1.3).

use libm::pow;

/// Returns the maximum rate of writes under leveling, 2B / (T · L): each entry is merged T/2 times
/// in each level. The result is in entries a second if the bandwidth is in entries a second.
pub fn leveling_entries_per_second(bandwidth: f64, size_ratio: u32, levels: u32) -> f64 {
    2.0 * bandwidth / (f64::from(size_ratio.max(2)) * f64::from(levels.max(1)))
}

/// Returns the maximum rate of writes under tiering, B / L: each entry is merged once in each
/// level.
pub fn tiering_entries_per_second(bandwidth: f64, levels: u32) -> f64 {
    bandwidth / f64::from(levels.max(1))
}

/// Returns the flushed runs that accumulate during the largest merge into `level`, µ · T^i / B,
/// which a scheduler that runs one merge at a time must tolerate. `rate` is the arrival rate µ, in
/// the unit of the bandwidth.
pub fn tolerated_flushes(rate: f64, bandwidth: f64, size_ratio: u32, level: u32) -> f64 {
    rate * pow(f64::from(size_ratio.max(2)), f64::from(level)) / bandwidth
}
